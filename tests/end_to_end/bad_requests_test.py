#!/usr/bin/env python3
"""What clients get wrong: the right status, a clear message, and the server goes on."""
import json
import unittest

from serving import Server, made

MODEL_LENGTH = 64


class BadRequests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("cycle"), "--max-model-len", str(MODEL_LENGTH))

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def tearDown(self):
        self.assertEqual(self.server.complete("abc", max_tokens=5, temperature=0)["text"], "defgh")
        self.server.wait_idle()

    def refused(self, status, part, body, path="/v1/completions", **headers):
        got, _, answer = self.server.send("POST", path, body, headers)
        self.assertEqual(got, status, answer[:300])
        problem = json.loads(answer)["error"]
        self.assertEqual(set(problem), {"message", "type", "param", "code"})
        self.assertIn(part, problem["message"])

    def test_truncated_json(self):
        whole = json.dumps({"model": self.server.name, "prompt": "abc", "max_tokens": 3}).encode()
        for cut in range(len(whole)):
            self.refused(400, "", whole[:cut])

    def test_a_body_of_ten_megabytes_that_is_too_long_a_prompt(self):
        self.refused(400, str(MODEL_LENGTH), json.dumps({"model": self.server.name, "prompt": "a" * 10_000_000}).encode())

    def test_lists_and_texts_that_no_model_could_hold(self):
        self.refused(400, "tokens", b'{"tokens":[' + b"1," * (1 << 20) + b"1]}", "/detokenize")
        text = json.dumps({"prompt": "a" * 10_000_000}).encode()
        self.refused(400, "10000000 bytes", text, "/tokenize")

    def test_a_body_over_the_limit(self):
        self.refused(413, "", b" " * (65 << 20))
        for mebibytes, size, status in ((1, (1 << 20) - 100, 200), (1, (1 << 20) + 1, 413), (66, 65 << 20, 200)):
            with Server(made("cycle"), "--max-body-mib", str(mebibytes)) as server:
                body = json.dumps({"prompt": "abc", "max_tokens": 1}).encode()
                self.assertEqual(server.send("POST", "/v1/completions", body + b" " * (size - len(body)))[0], status)

    def test_an_unknown_model(self):
        for name in ("no-such-model", " " + self.server.name, ""):
            self.refused(404, "model", json.dumps({"model": name, "prompt": "abc"}).encode())

    def test_B2_length_boundaries(self):
        for path, key in (("/v1/completions", "prompt"),):
            for stream in (False, True):
                fields = {"model": self.server.name, key: "a" * MODEL_LENGTH, "stream": stream}
                self.refused(400, str(MODEL_LENGTH), json.dumps(fields).encode(), path)
                fields[key] += "a"
                self.refused(400, str(MODEL_LENGTH + 1), json.dumps(fields).encode(), path)
        one = self.server.complete("a" * (MODEL_LENGTH - 1), temperature=0)
        self.assertEqual((one["usage"]["completion_tokens"], one["finish_reason"]), (1, "length"))
        fields = {"model": self.server.name, "prompt": "a" * 40, "max_tokens": 25}
        self.refused(400, "25", json.dumps(fields).encode())

    def test_empty_prompts_lists_and_messages(self):
        for prompt in ("", [], [""], ["a", ""], [[]], [[97], []]):
            with self.subTest(prompt=prompt):
                self.refused(400, "prompt", json.dumps({"model": self.server.name, "prompt": prompt}).encode())
                self.refused(400, "prompt", json.dumps({"model": self.server.name, "prompt": prompt}).encode(), "/generate")
        self.refused(400, "messages", json.dumps({"model": self.server.name, "messages": []}).encode(), "/v1/chat/completions")

    def test_huge_lists_are_refused_by_name_and_leave_no_memory_behind(self):
        # Each round parses some 50 MiB; each of the server's threads keeps one round's worth for the next.
        before = None
        for turn in range(8):
            for field, value in {"stop": ["x"] * 100_000, "stop_token_ids": [1] * 1_000_000, "prompt": ["a"] * 100_000,
                                 "logit_bias": {str(i): 1 for i in range(100_000)}, "allowed_token_ids": [5000] * 1_000_000,
                                 "n": 10 ** 18, "seed": 10 ** 30, "max_tokens": 10 ** 18, "top_k": 10 ** 18}.items():
                body = {"model": self.server.name, "prompt": "abc", "max_tokens": 2, field: value}
                self.refused(400, field if field != "seed" else "", json.dumps(body).encode())
            before = self.server.resident_kib() if turn == 2 else before
        self.assertLess(self.server.resident_kib() - before, 100 << 10)

    def test_request_ids_of_clients_that_are_hostile_are_refused_or_replaced(self):
        body = json.dumps({"model": self.server.name, "prompt": "abc", "max_tokens": 2, "temperature": 0}).encode()
        for name in ("mine", "mine", "x" * 64):
            status, headers, answer = self.server.send("POST", "/v1/completions", body, {"X-Request-Id": name})
            self.assertEqual((status, json.loads(answer)["id"], headers["X-Request-Id"]), (200, "cmpl-" + name, "cmpl-" + name))
        for name in ("x" * 65, "a b", "a/b", "<script>", "\xe9", "..%2f", "\"", "x" * 5000):
            status, headers, answer = self.server.send("POST", "/v1/completions", body, {"X-Request-Id": name})
            self.assertIn(status, (200, 400), answer)
            if status == 200:
                self.assertRegex(headers["X-Request-Id"], r"^cmpl-[A-Za-z0-9_.-]{1,64}$")
                self.assertNotEqual(headers["X-Request-Id"], "cmpl-" + name)

    def test_numbers_of_the_wrong_kind_or_size(self):
        good = {"model": self.server.name, "prompt": "abc", "max_tokens": 2}
        for field, values in {"temperature": ["1", -0.1, True, [], 1e400], "top_p": [0, 1.1, "x"], "top_k": [-2, 1.5, "3"],
                              "max_tokens": [-1, 1.5, "4", 1 << 40], "seed": ["7", 1.5], "n": [0, -1, 1.5, 1 << 20],
                              "stop": [5, [5], [""], ["x"] * 1000], "logprobs": [-1, 10_000, "2"], "min_p": [-0.1, 1.1],
                              "presence_penalty": [2.1, "0"], "repetition_penalty": [0, -1],
                              "logit_bias": [[], {"x": 1}, {"999999": 1}]}.items():
            for value in values:
                with self.subTest(field=field, value=value):
                    body = json.dumps({**good, field: value}).replace("Infinity", "1e400").encode()
                    self.refused(400, field if value != 1e400 else "", body)


if __name__ == "__main__":
    unittest.main()
