#!/usr/bin/env python3
"""Requests as people really send them, over every way in: what is malformed, odd or at an edge is refused the same everywhere.

Each test ends with the same small request, which must still be answered.
"""
import http.client
import json
import subprocess
import time
import unittest

from serving import TANDEM, Server, made
from ways import WebSocket, sse

LENGTH = 256
VOCABULARY = 259  # of the made models
BODY_LIMIT = 64 << 20
DEPTHS = (100, 1000, 10_000, 100_000, 1_000_000)
MEMORY_KIB = 300 << 10  # what parsers of megabytes may keep for the next ones
POSTS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/generate", "/tokenize", "/detokenize")
STREAMS = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/generate")
GBK = "中文".encode("gbk")


def least(path):
    """The least fields of an endpoint; of a frame for /ws."""
    if path == "/detokenize":
        return {"tokens": [97]}
    if path == "/v1/responses":
        return {"input": [{"role": "user", "content": "abc"}]}
    if path == "/v1/chat/completions":
        return {"messages": [{"role": "user", "content": "abc"}], "max_tokens": 2}
    return {"prompt": "abc", **({} if path == "/tokenize" else {"max_tokens": 2}), **({"id": 1} if path == "/ws" else {})}


class HttpCases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("cycle"), "--max-model-len", str(LENGTH), "--speculative-config", '{"method": "ngram"}')

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def tearDown(self):
        self.assertEqual(self.server.complete("abc", max_tokens=5, temperature=0)["text"], "defgh")
        self.server.wait_idle()

    # --- every way in -------------------------------------------------------------------------------------------

    def over_http(self, path, body):
        """(status, the error or None)"""
        status, _, answer = self.server.send("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode())
        if status == 200:
            return status, None
        problem = json.loads(answer)["error"]
        self.assertEqual(set(problem), {"message", "type", "param", "code"})
        self.assertIsInstance(problem["message"], str)
        return status, problem

    def over_socket(self, frames):
        """Of each frame the error, or None where it was answered."""
        lane = WebSocket(self.server)
        try:
            told = []
            for frame in frames:
                lane.send(frame if isinstance(frame, bytes) else json.dumps(frame))
                answer = json.loads(lane.receive())
                while "error" not in answer and "usage" not in answer:
                    answer = json.loads(lane.receive())
                told.append(answer.get("error"))
            return told
        finally:
            lane.close()

    def everywhere(self, change):
        """What each way says of its least request with these changes; {way: error or None}."""
        told = {}
        for path in STREAMS:
            for stream in (False, True):
                told[path, stream] = self.over_http(path, {**least(path), "stream": stream, **change})[1]
        told["/ws", True] = self.over_socket([{**least("/ws"), **change}])[0]
        chat = {**least("/v1/chat/completions"), "id": 1, **change}
        told["/ws chat", True] = self.over_socket([chat])[0]
        return told

    def refused_everywhere(self, field, value):
        for way, problem in self.everywhere({field: value}).items():
            with self.subTest(way=way, field=field, value=str(value)[:50]):
                self.assertIsNotNone(problem)
                self.assertIn(field, (problem["param"] or "") + problem["message"])

    def taken_everywhere(self, change):
        for way, problem in self.everywhere(change).items():
            with self.subTest(way=way, change=str(change)[:80]):
                self.assertIsNone(problem)

    # --- D1: null, unknown, list-shaped ---------------------------------------------------------------------------

    def test_D1_unknown_fields_are_ignored_and_null_is_absent(self):
        self.taken_everywhere({"no_such_field": {"deep": [1, None]}, "user": "me"})
        self.taken_everywhere({name: None for name in ("temperature", "stop", "n", "seed", "logprobs", "top_p", "logit_bias",
                                                       "speculative", "stop_token_ids", "max_completion_tokens", "priority")})

    def test_D1_content_comes_in_every_shape(self):
        text = {"type": "text", "text": "ab"}
        for content, fine in (("abc", True), ([text], True), ([text, text, text], True), (None, False), (5, False), ([5], False),
                              ([{"type": "image_url", "image_url": {"url": "data:,"}}], False), ([{"type": "text"}], False)):
            fields = {"messages": [{"role": "user", "content": content, "no_such_field": 1}], "max_tokens": 2}
            with self.subTest(content=content):
                self.assertEqual(self.over_http("/v1/chat/completions", fields)[0], 200 if fine else 400)
                self.assertEqual(self.over_socket([{"id": 1, **fields}])[0] is None, fine)
        assistant = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None}, {"role": "user", "content": "b"}]
        self.assertEqual(self.over_http("/v1/chat/completions", {"messages": assistant, "max_tokens": 2}), (200, None))

    def test_D1_both_token_limits_count_and_may_not_differ(self):
        self.taken_everywhere({"max_tokens": 3, "max_completion_tokens": 3})
        for way, problem in self.everywhere({"max_tokens": 3, "max_completion_tokens": 4}).items():
            self.assertEqual(problem["param"], "max_completion_tokens", way)

    # --- D4: broken text ------------------------------------------------------------------------------------------

    def test_D4_broken_bodies_are_400_with_a_readable_error(self):
        whole = {path: json.dumps(least(path)).encode() for path in POSTS}
        for path in POSTS:
            body = whole[path]
            broken = [b"", b"{", body + b"{}", body[:-1] + b",}", body[:-1] + b',"x":NaN}', b"\xef\xbb\xbf" + body,
                      body.decode().encode("utf-16"), body[:-1] + b',"\xff":1}', body[:-1] + b',"x":"' + GBK + b'"}',
                      body[:-1] + b',"model":"\xff"}', body.replace(b"abc", b"\xff") if b"abc" in body else b"\xff",
                      body.replace(b"user", b"\xff") if b"user" in body else b"[]", b"null", b'"text"', b"5"]
            for surrogate in ("\\ud83d", "\\ude00", "\\ude00\\ud83d"):
                broken.append(body[:-1] + b',"x":"' + surrogate.encode() + b'"}')
            for each in broken:
                with self.subTest(path=path, body=each[:60]):
                    self.assertEqual(self.over_http(path, each)[0], 400)

    def test_D4_broken_frames_are_answered_and_the_socket_stays(self):
        good = json.dumps({**least("/ws"), "temperature": 0}).encode()
        broken = [b"{", good + b"{}", good[:-1] + b",}", good[:-1] + b',"x":NaN}', b"\xef\xbb\xbf" + good, b"[]", b"5",
                  good[:-1] + b',"x":"\\ud83d"}']
        self.assertTrue(all(self.over_socket([*broken, good])[:-1]))
        for bytes_of_no_text in (good.replace(b"abc", b"\xff"), good.replace(b"abc", GBK), json.dumps({}).encode("utf-16")):
            with self.assertRaisesRegex(http.client.RemoteDisconnected, r"x03\\xef"):  # 1007
                self.over_socket([bytes_of_no_text])

    def test_D4_pairs_are_one_character_nul_is_kept_and_the_last_of_equal_keys_wins(self):
        _, _, answer = self.server.send("POST", "/generate", b'{"prompt": "a\\ud83d\\ude00b", "max_tokens": 1}')
        self.assertTrue(json.loads(answer)["text"][0].startswith("a\N{GRINNING FACE}b"))
        _, _, answer = self.server.send("POST", "/generate", b'{"prompt": "a\\u0000b", "max_tokens": 1}')
        self.assertTrue(json.loads(answer)["text"][0].startswith("a\0b"))
        _, _, answer = self.server.send("POST", "/tokenize", b'{"prompt": "x", "prompt": "abc"}')
        self.assertEqual(json.loads(answer)["count"], 3)

    # --- D5: deep nesting -----------------------------------------------------------------------------------------

    def test_D5_deep_nesting_is_refused_and_keeps_no_memory(self):
        before = None
        for place in ("unknown", "messages", "response_format", "tools", "chat_template_kwargs", "speculative"):
            for depth in DEPTHS:
                for opening, closing in (("[", "]"), ('{"a":', "}")):
                    for value in (opening * depth, opening * depth + "1" + closing * depth):
                        self.deep(place, value.encode(), depth == DEPTHS[0])
            before = before or self.server.resident_kib()
        self.assertLess(self.server.resident_kib() - before, MEMORY_KIB)

    def deep(self, place, value, also_elsewhere):
        body = b'{"id": 1, "prompt": "abc", "' + place.encode() + b'": ' + value + b"}"
        self.assertEqual(self.over_http("/v1/chat/completions", body)[0], 400)
        if len(body) < 16 << 20:
            self.assertIsNotNone(self.over_socket([body])[0])
        for path in POSTS if also_elsewhere else ():
            self.assertEqual(self.over_http(path, body)[0], 400)

    # --- D7: statuses ---------------------------------------------------------------------------------------------

    def test_D7_models_that_are_not_served_are_404_everywhere(self):
        for name in ("no-such-model", " " + self.server.name, self.server.name + " ", self.server.name.upper(), ""):
            for path in POSTS:
                status, problem = self.over_http(path, {**least(path), "model": name})
                self.assertEqual((status, problem["code"], problem["param"]), (404, "model_not_found", "model"), (path, name))
            for problem in self.everywhere({"model": name}).values():
                self.assertEqual(problem["code"], "model_not_found")
        self.taken_everywhere({"model": self.server.name})

    def test_D7_wrong_methods_paths_and_types(self):
        for path in POSTS:
            for method in ("PUT", "DELETE", "PATCH") if path == "/v1/responses" else ("GET", "PUT", "DELETE", "PATCH"):
                status, headers, _ = self.server.send(method, path)
                self.assertEqual(status, 405, (method, path))
                self.assertIn("POST", headers["Allow"])
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx"):
                status, _, _ = self.server.send("POST", path, json.dumps(least(path)).encode(), {"Content-Type": kind})
                self.assertEqual(status, 415, (path, kind))
            self.assertEqual(self.server.send("POST", path + "/", b"{}")[0], 404)
        for path in ("/v1", "/v2/completions", "/v1/embeddings", "//v1/models", "/v1/completions/x"):
            self.assertEqual(self.server.send("POST", path, b"{}")[0], 404, path)

    def test_D7_too_long_a_prompt_is_refused_with_its_numbers_never_cut(self):
        for path in STREAMS:
            for stream in (False, True):
                fields = {**least(path), "stream": stream}
                said = "a" * (LENGTH + 1)
                if "prompt" in fields:
                    fields["prompt"] = said
                else:
                    (fields.get("messages") or fields["input"])[0]["content"] = said
                status, problem = self.over_http(path, fields)
                self.assertEqual(status, 400, path)
                self.assertIn(str(LENGTH), problem["message"])
        told = self.over_socket([{"id": 1, "prompt": "a" * (LENGTH + 1)}, {"id": 2, "prompt": "a" * (LENGTH - 5), "max_tokens": 6}])
        self.assertTrue(all(str(LENGTH) in problem["message"] for problem in told), told)

    # --- D8: bodies -----------------------------------------------------------------------------------------------

    def test_D8_bodies_up_to_the_limit_are_read_and_one_byte_more_is_413(self):
        body = json.dumps(least("/v1/completions")).encode()
        for size in (900_000, 1_100_000, 8_000_000, BODY_LIMIT - 1, BODY_LIMIT):
            self.assertEqual(self.over_http("/v1/completions", body + b" " * (size - len(body)))[0], 200, size)
        self.assertEqual(self.over_http("/v1/completions", body + b" " * (BODY_LIMIT + 1 - len(body)))[0], 413)

    def test_D8_a_slow_sender_is_answered(self):
        text = json.dumps(least("/v1/completions")).encode()
        connection = self.server.connect()
        self.addCleanup(connection.close)
        connection.putrequest("POST", "/v1/completions")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(text)))
        connection.endheaders()
        for byte in text:
            connection.send(bytes([byte]))
            time.sleep(0.01)
        self.assertEqual(connection.getresponse().status, 200)

    # --- also expected --------------------------------------------------------------------------------------------

    def test_several_choices_of_several_prompts_each_come_once(self):
        for drafted in (False, {"method": "ngram", "num_speculative_tokens": 4}):
            fields = {"prompt": ["abc", "xyz", "a"], "n": 2, "best_of": 2, "max_tokens": 7, "seed": 5, "temperature": 0.9,
                      "ignore_eos": True, "speculative": drafted}
            status, answer = self.server.post("/v1/completions", fields)
            self.assertEqual(status, 200, answer)
            self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(6)))
            self.assertEqual(answer["usage"]["prompt_tokens"], 7)
            self.assertEqual(answer["usage"]["completion_tokens"], 42)
            texts, ends = [""] * 6, [0] * 6
            for event in sse(self.server, "/v1/completions", {**fields, "stream": True}):
                for choice in event["choices"]:
                    texts[choice["index"]] += choice["text"]
                    ends[choice["index"]] += choice["finish_reason"] is not None
            self.assertEqual(ends, [1] * 6)
            self.assertEqual(texts, [choice["text"] for choice in answer["choices"]])
            generated = self.server.post("/generate", fields)[1]["text"]
            self.assertEqual(generated, [fields["prompt"][i // 2] + text for i, text in enumerate(texts)])

    def test_odd_stops(self):
        for stop in ("", [""], ["a", ""], 5, [5], [None], {}, ["x"] * 65, "x" * 1025):
            self.refused_everywhere("stop", stop)
        for stop in ([], "<|im_end|>", ["<|endoftext|>", "\0"], ["x"] * 64, "x" * 1024, "\N{GRINNING FACE}"):
            self.taken_everywhere({"stop": stop})

    def test_ids_at_and_past_the_edge_of_the_vocabulary(self):
        last = VOCABULARY - 1
        for field in ("stop_token_ids", "allowed_token_ids"):
            self.taken_everywhere({field: [0, last]})
            for value in ([last + 1], [-1], [2 ** 31], [2 ** 63], [1.5], ["1"], "1"):
                self.refused_everywhere(field, value)
        self.taken_everywhere({"logit_bias": {"0": 1, str(last): -1}})
        for value in ({str(last + 1): 1}, {"-1": 1}, {"x": 1}, {"1": 101}, {"1": "1"}, {"99999999999": 1}, []):
            self.refused_everywhere("logit_bias", value)
        for path, field in (("/v1/completions", "prompt"), ("/generate", "prompt"), ("/detokenize", "tokens")):
            self.assertEqual(self.over_http(path, {**least(path), field: [0, last]})[0], 200)
            for value in ([last + 1], [-1], [2 ** 31], [2 ** 64]):
                self.assertEqual(self.over_http(path, {**least(path), field: value})[0], 400, (path, value))

    def test_empty_prompts_in_every_shape(self):
        for prompt in ("", [], [""], [[]], ["a", ""], [[97], []], None, {}):
            for path in ("/v1/completions", "/generate"):
                self.assertEqual(self.over_http(path, {"prompt": prompt, "max_tokens": 2})[0], 400, (path, prompt))
            self.assertIsNotNone(self.over_socket([{"id": 1, "prompt": prompt, "max_tokens": 2}])[0], prompt)
        self.assertEqual(self.over_http("/v1/chat/completions", {"messages": []})[0], 400)

    def test_the_command_line_refuses_what_the_server_refuses(self):
        wrong = [{"temperature": -1}, {"temperature": "1"}, {"top_p": 0}, {"top_k": -2}, {"n": 0}, {"n": 129}, {"max_tokens": -1},
                 {"max_tokens": LENGTH + 1}, {"stop": [""]}, {"stop_token_ids": [VOCABULARY]}, {"logit_bias": {"x": 1}},
                 {"allowed_token_ids": []}, {"seed": 1.5}, {"min_p": 2}, {"repetition_penalty": 0}, {"presence_penalty": 3},
                 {"prompt": ""}, {"prompt": None}, {"prompt": 5}, {"max_tokens": 3, "max_completion_tokens": 4}, {"logprobs": 21}]
        for fields in wrong:
            request = {"prompt": "abc", "max_tokens": 2, **fields}
            with self.subTest(fields=fields):
                self.assertEqual(self.over_http("/v1/completions", request)[0], 400)
                finished = subprocess.run([TANDEM, "generate", made("cycle"), "--prompts", "-", "--output", "jsonl",
                                           "--max-model-len", str(LENGTH)], input=json.dumps(request), capture_output=True,
                                          text=True, timeout=120, check=False)
                self.assertEqual(finished.returncode, 1, finished.stdout)
                # A line that cannot be read ends the command, one that is refused has its error.
                told = json.loads(finished.stdout)["error"]["message"] if finished.stdout else finished.stderr
                self.assertIn(list(fields)[-1], told)
                self.assertNotIn("outputs", finished.stdout)


if __name__ == "__main__":
    unittest.main()
