#!/usr/bin/env python3
"""Several choices of one prompt: all there, each as it is alone, the prompt computed once; best_of; bad_words."""
import json
import subprocess
import unittest

from serving import TANDEM, Server, made
from ways import WAYS, ask, completion_logprobs, drafts, offline, score, sse, whole

FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
BLOCK = 16
PROMPT = [(11 * i * i + 5 * i) % 256 for i in range(100)]
SAMPLED = {"temperature": 1, "ignore_eos": True}


def rows(server):
    return server.metric("tandem:prompt_tokens_total")


class Choices(unittest.TestCase):
    def test_the_prompt_is_computed_once_and_choices_stay_what_they_are(self):
        expected = None
        for flags in ((), ("--no-enable-prefix-caching",), ("--max-num-batched-tokens", "7"), ("--max-num-seqs", "2")):
            for speculation in (0, 4):
                with self.subTest(flags=flags, drafts=speculation), \
                        Server(made("rand"), "--draft-model", made("rand-noisy"), *FP32, *flags) as server:
                    fields = {"model": server.name, "prompt": PROMPT, "n": 8, "max_tokens": 12, "seed": 3,
                              "return_token_ids": True, **SAMPLED, **drafts(speculation)}
                    answer = whole(server, "/v1/completions", fields)
                    ids = [choice["token_ids"] for choice in answer["choices"]]
                    expected = expected or ids
                    self.assertEqual(ids, expected)
                    self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(8)))
                    self.assertEqual(answer["usage"]["prompt_tokens"], len(PROMPT))
                    tail = len(PROMPT) - (len(PROMPT) - 1) // BLOCK * BLOCK
                    self.assertEqual(rows(server), len(PROMPT) + 7 * tail)
                    server.wait_idle()
        self.assertEqual(len({tuple(ids) for ids in expected}), 8)

    def test_lists_of_prompts_streamed_and_not(self):
        prompts = [PROMPT[:5], PROMPT[:40], PROMPT[10:50]]
        with Server(made("rand"), *FP32) as server:
            fields = {"model": server.name, "prompt": prompts, "n": 3, "max_tokens": 9, "seed": 1, "return_token_ids": True,
                      **SAMPLED}
            answer = whole(server, "/v1/completions", fields)
            streamed = [[] for _ in range(9)]
            for event in sse(server, "/v1/completions", {**fields, "stream": True}):
                for choice in event["choices"]:
                    streamed[choice["index"]] += choice["token_ids"]
            self.assertEqual([choice["token_ids"] for choice in answer["choices"]], streamed)
            alone = whole(server, "/v1/completions", {**fields, "prompt": prompts[1]})
            self.assertEqual([choice["token_ids"] for choice in alone["choices"]], streamed[3:6])

    def test_prompt_logprobs_are_computed_once_and_told_with_every_choice(self):
        with Server(made("rand"), *FP32) as server:
            answer = whole(server, "/v1/completions", {"model": server.name, "prompt": PROMPT, "n": 4, "max_tokens": 2,
                                                       "prompt_logprobs": 1, **SAMPLED})
            tail = len(PROMPT) - (len(PROMPT) - 1) // BLOCK * BLOCK
            self.assertEqual(rows(server), len(PROMPT) + 3 * tail)
            told = [choice["prompt_logprobs"] for choice in answer["choices"]]
            self.assertEqual(len(told[0]), len(PROMPT))
            self.assertEqual(told, [told[0]] * 4)


class BestOf(unittest.TestCase):
    def test_gives_the_choices_with_the_highest_mean_logprob(self):
        with Server(made("rand"), *FP32) as server:
            fields = {"model": server.name, "prompt": PROMPT[:20], "max_tokens": 10, "seed": 5, "logprobs": 0,
                      "return_token_ids": True, "temperature": 1}
            every = whole(server, "/v1/completions", {**fields, "n": 7})["choices"]

            def mean(choice):
                values = [value for value, _, _ in completion_logprobs(choice["logprobs"])]
                return sum(values) / len(values)
            expected = [choice["token_ids"] for choice in sorted(every, key=mean, reverse=True)]
            for n in (1, 3, 6):
                for speculation in (0, 3):
                    answer = whole(server, "/v1/completions", {**fields, "n": n, "best_of": 7, **drafts(speculation, "ngram")})
                    self.assertEqual([choice["token_ids"] for choice in answer["choices"]], expected[:n])
                    self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(n)))
                    self.assertEqual(answer["usage"]["completion_tokens"], sum(map(len, expected)))
            del fields["logprobs"]
            silent = whole(server, "/v1/completions", {**fields, "n": 2, "best_of": 7})
            self.assertEqual([choice["token_ids"] for choice in silent["choices"]], expected[:2])
            self.assertIsNone(silent["choices"][0]["logprobs"])
            server.wait_idle()
        answer = self.offline({"prompt_token_ids": PROMPT[:20], "max_tokens": 10, "seed": 5, "n": 2, "best_of": 7})
        self.assertEqual([choice["token_ids"] for choice in answer["outputs"]], expected[:2])

    @staticmethod
    def offline(request):
        command = [TANDEM, "generate", made("rand"), "--prompts", "-", "--output", "jsonl", *FP32]
        finished = subprocess.run(command, input=json.dumps(request), stdout=subprocess.PIPE, text=True, check=True, timeout=120)
        return json.loads(finished.stdout)


class BadWords(unittest.TestCase):
    LETTERS = {"allowed_token_ids": list(range(ord("a"), ord("z") + 1)), "max_tokens": 24, "ignore_eos": True}

    def test_no_bad_word_is_generated_over_any_way_in_with_drafts_and_without(self):
        with Server(made("rand"), "--draft-model", made("rand"), *FP32) as server:
            for way in WAYS:
                for setting in ({"temperature": 0}, {"temperature": 1, "seed": 4}):
                    plain = ask(server, way, "some words", **self.LETTERS, **setting, **drafts(0))["text"]
                    words = [plain[0], plain[3:5], plain[6:9]]
                    with self.subTest(way=way, words=words, setting=setting):
                        texts = [ask(server, way, "some words", bad_words=words, **self.LETTERS, **setting, **drafts(k))["text"]
                                 for k in (0, 1, 4)]
                        self.assertEqual(texts, [texts[0]] * 3)
                        self.assertEqual(len(texts[0]), 24)
                        for word in words:
                            self.assertNotIn(word, texts[0])
            requests = [{"prompt": "some words", "temperature": 0, **self.LETTERS}]
            plain = offline(made("rand"), requests, *FP32)[0]["text"]
            requests[0]["bad_words"] = [plain[2:4]]
            self.assertNotIn(plain[2:4], offline(made("rand"), requests, *FP32)[0]["text"])

    def test_the_prompt_is_no_output(self):
        with Server(made("rand"), *FP32) as server:
            fields = {**self.LETTERS, "max_tokens": 1, "temperature": 0}
            first = ask(server, "completions", "an x", **fields)["text"]
            self.assertEqual(ask(server, "completions", "an x", bad_words=["x" + first], **fields)["text"], first)
            self.assertNotEqual(ask(server, "completions", "an x", bad_words=[first], **fields)["text"], first)

    def test_log_probabilities_stay_the_models(self):
        with Server(made("rand"), *FP32) as server:
            plain = ask(server, "completions", "y", **self.LETTERS, temperature=0)["text"]
            answer = ask(server, "completions", "y", bad_words=[plain[:1]], logprobs=2, temperature=0, **self.LETTERS)
            told = score(server, answer["prompt_token_ids"] + answer["token_ids"])[len(answer["prompt_token_ids"]) - 1:]
            for (value, _, _), (expected, _) in zip(answer["logprobs"], told):
                self.assertLess(abs(value - expected), 1e-4)


if __name__ == "__main__":
    unittest.main()
