#!/usr/bin/env python3
"""Beam search against one that owes nothing to tandem: whole token lists, in float64. Needs numpy and gguf."""
import json
import sys
import unittest

try:
    import numpy as np
    from numpy_model import NumpyModel
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from serving import Server, made
from ways import completion_logprobs, drafts, post_lines, sse, whole

FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
PROMPT = [(13 * i * i + 7 * i) % 256 for i in range(37)]
CLOSE = 1e-4


def search(model, prompt, width, max_tokens, length_penalty=1.0, ends=()):
    """vLLM's search: [(ids, sum of log-probabilities, complete)], best first."""
    beams, complete = [((), 0.0)], []
    for _ in range(max_tokens):
        grown = []
        for ids, total in beams:
            row = model.distributions(np.array(prompt + list(ids)))[-1]
            for token in np.argsort(-row, kind="stable")[:2 * width]:
                child = (ids + (int(token),), total + row[token])
                (complete if int(token) in ends else grown).append(child)
        beams = sorted(grown, key=lambda beam: -beam[1])[:width]

    def score(beam):
        ids, total = beam
        return total / (len(prompt) + len(ids) - (ids[-1] in ends)) ** length_penalty
    best = sorted(complete + beams, key=score, reverse=True)[:width]
    return [(list(ids), total, ids[-1] in ends) for ids, total in best]


class Beams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = NumpyModel(made("rand"))
        cls.server = Server(made("rand"), "--draft-model", made("rand-noisy"), "--block-size", "4", *FP32)

    @classmethod
    def tearDownClass(cls):
        cls.server.wait_idle()
        cls.server.__exit__()

    def fields(self, **more):
        return {"model": self.server.name, "use_beam_search": True, "return_token_ids": True, **more}

    def test_beams_and_scores_are_those_of_the_reference(self):
        for length in (1, 4, 5, 16, 37):
            for width in (1, 2, 5):
                for penalty in (1, 0, 2):
                    with self.subTest(length=length, width=width, penalty=penalty):
                        prompt = PROMPT[:length]
                        expected = search(self.model, prompt, width, 9, penalty)
                        answer = whole(self.server, "/v1/completions", self.fields(
                            prompt=prompt, n=width, max_tokens=9, length_penalty=penalty, logprobs=0, ignore_eos=True))
                        self.assertEqual([choice["token_ids"] for choice in answer["choices"]], [ids for ids, _, _ in expected])
                        for choice, (_, total, _) in zip(answer["choices"], expected):
                            told = sum(value for value, _, _ in completion_logprobs(choice["logprobs"]))
                            self.assertLess(abs(told - total), CLOSE)
                            self.assertEqual(choice["finish_reason"], "length")
                        self.assertEqual(answer["usage"]["completion_tokens"], 9 * width)

    def test_every_way_in_gives_the_same_beams(self):
        expected = [ids for ids, _, _ in search(self.model, PROMPT[:20], 3, 7)]
        asked = self.fields(prompt=PROMPT[:20], n=3, max_tokens=7, ignore_eos=True)
        answer = whole(self.server, "/generate", asked)
        self.assertEqual(answer["token_ids"], expected)
        self.assertEqual(answer["text"], [self.server.detokenize(PROMPT[:20]) + self.server.detokenize(ids) for ids in expected])
        last = [json.loads(line) for line in post_lines(self.server, "/generate", {**asked, "stream": True}) if line][-1]
        self.assertEqual(last["token_ids"], expected)
        told = [[], [], []]
        for event in sse(self.server, "/v1/completions", {**asked, "stream": True}):
            for choice in event["choices"]:
                told[choice["index"]] += choice["token_ids"]
        self.assertEqual(told, expected)
        chat = whole(self.server, "/v1/chat/completions", self.fields(
            messages=[{"role": "user", "content": "beams"}], n=2, max_tokens=5, ignore_eos=True))
        ids = [choice["token_ids"] for choice in chat["choices"]]
        self.assertEqual(ids, [ids for ids, _, _ in search(self.model, chat["prompt_token_ids"], 2, 5)])

    def test_sampling_fields_and_drafts_change_nothing(self):
        expected = [ids for ids, _, _ in search(self.model, PROMPT[:11], 4, 8)]
        for more in ({"temperature": 0}, {"temperature": 1.7, "top_k": 3, "seed": 5}, drafts(4), {"early_stopping": "never"}):
            answer = whole(self.server, "/v1/completions", self.fields(prompt=PROMPT[:11], n=4, max_tokens=8, ignore_eos=True,
                                                                       **more))
            self.assertEqual([choice["token_ids"] for choice in answer["choices"]], expected)

    def test_what_it_does_not_take_is_refused_by_name(self):
        for name, value in (("presence_penalty", 1), ("frequency_penalty", 1), ("repetition_penalty", 2), ("stop", "x"),
                            ("logit_bias", {"1": 1}), ("allowed_token_ids", [1]), ("min_tokens", 1), ("bad_words", ["x"]),
                            ("stop_token_ids", [1]), ("prompt_logprobs", 1), ("best_of", 9), ("length_penalty", 11)):
            status, answer = self.server.post("/v1/completions", self.fields(prompt=PROMPT, n=2, max_tokens=3, **{name: value}))
            self.assertEqual((status, answer["error"]["param"]), (400, name), answer)

    def test_few_blocks_are_refused_or_enough(self):
        with Server(made("rand"), "--block-size", "4", "--num-kv-blocks", "16", "--max-model-len", "64", *FP32) as server:
            asked = {"model": server.name, "use_beam_search": True, "prompt": PROMPT[:10], "n": 3, "return_token_ids": True,
                     "ignore_eos": True}
            status, answer = server.post("/v1/completions", {**asked, "max_tokens": 16})
            self.assertEqual((status, answer["error"]["param"]), (400, "max_tokens"), answer)
            expected = [ids for ids, _, _ in search(self.model, PROMPT[:10], 3, 15)]
            for more in ({"max_tokens": 15}, {}):
                answer = whole(server, "/v1/completions", {**asked, **more})
                self.assertEqual([choice["token_ids"] for choice in answer["choices"]], expected)
            server.wait_idle()


if __name__ == "__main__":
    unittest.main()
