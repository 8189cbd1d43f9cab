#!/usr/bin/env python3
"""A5 and its kin: log-probabilities are those of the model itself, over every way in, with drafts and without."""
import json
import unittest

from serving import Server, made
from ways import WAYS, WebSocket, ask, drafts, offline, post_lines, score, sse, whole

PROMPT = "what the model says of its own tokens"
TOP = 5
CLOSE = 1e-4
FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
SETTINGS = [{"temperature": 0}, {"temperature": 0.8, "seed": 11}]


class Logprobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("rand"), "--draft-model", made("rand-stranger"), *FP32)
        cls.oracle = Server(made("rand"), "--no-enable-prefix-caching", *FP32)

    @classmethod
    def tearDownClass(cls):
        cls.server.wait_idle()
        cls.server.__exit__()
        cls.oracle.__exit__()

    def check(self, answer, greedy):
        prompt = answer.get("prompt_token_ids", list(PROMPT.encode()))  # /ws repeats no prompt
        ids = prompt + answer["token_ids"]
        self.assertEqual(len(answer["logprobs"]), len(answer["token_ids"]))
        expected = score(self.oracle, ids, TOP)[len(prompt) - 1:]
        for (value, alternatives, _), (oracle_value, oracle_alternatives) in zip(answer["logprobs"], expected):
            self.assertLess(abs(value - oracle_value), CLOSE)
            self.assertIn(len(alternatives), (TOP, TOP + 1))
            for mine, other in zip(alternatives, oracle_alternatives):
                self.assertLess(abs(mine - other), CLOSE)
            self.assertLessEqual(sum(2.718281828459045 ** one for one in alternatives), 1 + CLOSE)
            if greedy:
                self.assertEqual(value, alternatives[0])
            if value == 0.0:
                self.assertEqual(oracle_value, 0.0)

    def test_A5_values_equal_those_of_scoring_the_same_ids(self):
        for way in WAYS:
            for setting in SETTINGS:
                plain = None
                for k in (0, 1, 5):
                    with self.subTest(way=way, setting=setting, k=k):
                        answer = ask(self.server, way, PROMPT, logprobs=TOP, max_tokens=64, ignore_eos=True, **setting,
                                     **drafts(k))
                        self.check(answer, setting["temperature"] == 0)
                        plain = plain or answer
                        self.assertEqual(answer["token_ids"], plain["token_ids"])
                        if k > 0:
                            self.assertGreater(answer["timings"]["draft_n"], 0)

    def test_A5_holds_for_generate_on_the_command_line(self):
        requests = [{"prompt": PROMPT, "logprobs": TOP, "max_tokens": 64, "ignore_eos": True, **setting, **drafts(k)}
                    for setting in SETTINGS for k in (0, 5)]
        answers = offline(made("rand"), requests, "--draft-model", made("rand-stranger"), *FP32)
        for request, answer in zip(requests, answers):
            self.check(answer, request["temperature"] == 0)
        self.assertEqual(answers[0]["token_ids"], answers[1]["token_ids"])
        self.assertEqual(answers[2]["token_ids"], answers[3]["token_ids"])

    def test_values_do_not_depend_on_temperature_penalties_or_filters(self):
        for k in (0, 5):
            answer = ask(self.server, "completions", PROMPT, logprobs=TOP, max_tokens=40, ignore_eos=True, temperature=1.3,
                         seed=3, top_k=7, top_p=0.9, presence_penalty=1.5, repetition_penalty=1.2, **drafts(k))
            self.check(answer, False)

    def test_each_number_of_alternatives_is_the_one_asked_for(self):
        for top in (0, 1, 20):
            for k in (0, 5):
                answer = ask(self.server, "chat", "x", logprobs=top, max_tokens=10, temperature=0, ignore_eos=True, **drafts(k))
                self.assertEqual([len(alternatives) for _, alternatives, _ in answer["logprobs"]], [top] * 10)
                told = b"".join(raw for _, _, raw in answer["logprobs"])
                self.assertEqual(told.decode("utf-8", "replace"), self.server.detokenize(answer["token_ids"]))


def parts_of_completions(server, fields):
    """The prompt's log-probabilities of both choices of a stream, in parts, each with whether tokens came before it."""
    parts, begun = {0: [], 1: []}, set()
    for event in sse(server, "/v1/completions", {**fields, "stream": True}):
        for choice in event["choices"]:
            parts[choice["index"]] += [(part, choice["index"] in begun) for part in [choice.get("prompt_logprobs")] if part]
            begun.update([choice["index"]] if choice["token_ids"] else [])
    assert [part for part, _ in parts[0]] and sum((part for part, _ in parts[0]), []) == sum((part for part, _ in parts[1]), [])
    return parts[0]


def parts_of_generate(server, fields):
    lines = [json.loads(line) for line in post_lines(server, "/generate", {**fields, "stream": True}) if line]
    return [(line["prompt_logprobs"][0], any(before["token_ids"][0] for before in lines[:at]))
            for at, line in enumerate(lines) if line["prompt_logprobs"][0]]


def parts_of_frames(server, fields):
    lane = WebSocket(server)
    try:
        lane.send(json.dumps({"id": 1, **fields}))
        frames = [json.loads(lane.receive())]
        while "usage" not in frames[-1]:
            frames.append(json.loads(lane.receive()))
        return [(frame["prompt_logprobs"], any(before["token_ids"] for before in frames[:at] if before["index"] == 0))
                for at, frame in enumerate(frames) if "prompt_logprobs" in frame]
    finally:
        lane.close()


class PromptLogprobs(unittest.TestCase):
    def setUp(self):
        self.ids = [(7 * i * i + 3 * i) % 256 for i in range(100)]

    def test_streams_bring_them_in_parts_before_the_tokens(self):
        for budget, least in (("7", 10), ("512", 1)):
            with Server(made("rand"), "--max-num-batched-tokens", budget, *FP32) as server:
                for ids in (self.ids, self.ids[:1]):
                    fields = {"model": server.name, "prompt": ids, "n": 2, "max_tokens": 4, "prompt_logprobs": 3, "seed": 1,
                              "return_token_ids": True, "ignore_eos": True}
                    expected = whole(server, "/v1/completions", fields)["choices"][0]["prompt_logprobs"]
                    self.assertEqual(whole(server, "/generate", fields)["prompt_logprobs"], [expected])
                    for way in (parts_of_completions, parts_of_generate, parts_of_frames):
                        with self.subTest(budget=budget, prompt=len(ids), way=way.__name__):
                            parts = way(server, fields)
                            self.assertEqual([entry for part, _ in parts for entry in part], expected)
                            self.assertFalse(any(late for _, late in parts))
                            self.assertGreaterEqual(len(parts), least if len(ids) > 1 else 1)
                    scored = whole(server, "/generate", {**fields, "n": 1, "max_tokens": 0})
                    self.assertEqual((scored["prompt_logprobs"], scored["token_ids"]), ([expected], [[]]))
                self.chat_streams(server)
                server.wait_idle()

    def chat_streams(self, server):
        fields = {"model": server.name, "messages": [{"role": "user", "content": "of a chat"}], "n": 2, "max_tokens": 4, "seed": 1,
                  "prompt_logprobs": 2}
        expected = whole(server, "/v1/chat/completions", fields)["prompt_logprobs"]
        told = [event["prompt_logprobs"] for event in sse(server, "/v1/chat/completions", {**fields, "stream": True})
                if "prompt_logprobs" in event]
        self.assertEqual(sum(told, []), expected)

    def test_they_are_the_same_whole_in_chunks_and_after_a_cache_hit(self):
        with Server(made("rand"), "--no-enable-prefix-caching", "--max-num-batched-tokens", "512", *FP32) as server:
            expected = score(server, self.ids)
        for budget in ("1", "7", "16", "17", "99", "512"):
            with self.subTest(budget=budget):
                with Server(made("rand"), "--draft-model", made("rand-noisy"), "--max-num-batched-tokens", budget,
                            *FP32) as server:
                    self.assertEqual(score(server, self.ids), expected)
                    server.complete(self.ids, max_tokens=4, temperature=0)
                    server.complete(self.ids, max_tokens=4, temperature=0)  # its blocks are cached now
                    self.assertEqual(score(server, self.ids), expected)
                    self.assertEqual(score(server, self.ids, max_tokens=5, **drafts(3)), expected)
                    server.wait_idle()

    def test_echo_shows_the_prompt_first_with_its_values(self):
        with Server(made("rand"), "--draft-model", made("rand-noisy"), *FP32) as server:
            text = "the prompt comes back"
            ids = list(text.encode())
            expected = [value for value, _ in score(server, ids)]
            for k in (0, 3):
                for cap in (0, 4):
                    fields = {"model": server.name, "prompt": text, "echo": True, "logprobs": 1, "max_tokens": cap,
                              "temperature": 0, "ignore_eos": True, **drafts(k)}
                    choice = whole(server, "/v1/completions", fields)["choices"][0]
                    told = choice["logprobs"]["token_logprobs"]
                    self.assertTrue(choice["text"].startswith(text))
                    self.assertIsNone(told[0])
                    self.assertEqual(told[1:len(ids)], expected)
                    self.assertEqual(len(told), len(ids) + cap)
                    self.assertEqual(choice["logprobs"]["text_offset"][:len(ids)], list(range(len(ids))))
                    streamed = list(server.stream("/v1/completions", fields))
                    joined = "".join(event["choices"][0]["text"] for event in streamed if event["choices"])
                    self.assertEqual(joined, choice["text"])
                    parts = [event["choices"][0]["logprobs"] for event in streamed if event["choices"]]
                    self.assertEqual([value for part in parts if part for value in part["token_logprobs"]], told)


if __name__ == "__main__":
    unittest.main()
