#!/usr/bin/env python3
"""Requests drawn at random, many at once, with drafts and too few blocks: each answers as it does alone without either.

TANDEM_ANY_SECONDS (default 5) sets how long each test goes on, TANDEM_ANY_SEED what is drawn.
"""
import concurrent.futures
import os
import random
import time
import unittest

from serving import Server, made
from ways import WAYS, ask, drafts

SECONDS = float(os.environ.get("TANDEM_ANY_SECONDS", "5"))
SEED = int(os.environ.get("TANDEM_ANY_SEED", "1"))
FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
TINY = ("--block-size", "4", "--num-kv-blocks", "26", "--max-model-len", "104")
TOGETHER = 14
SHARED = [(i * 7) % 256 for i in range(44)]
CLOSE = 2e-4


def drawn_fields(dice, only_one):
    """Sampling fields, each there with a chance of one in four. Without `only_one` also those that only completions have."""
    fields = {"max_tokens": dice.randint(1, 50), "temperature": dice.choice([0, 0, 0.7, 1.0, 1.5]), "seed": dice.randrange(99)}
    values = {"top_k": [1, 2, 5, 50], "top_p": [0.1, 0.5, 0.9], "min_p": [0.05, 0.3, 1], "repetition_penalty": [0.8, 1.3],
              "presence_penalty": [-1, 1.5], "frequency_penalty": [-0.5, 1], "ignore_eos": [True],
              "include_stop_str_in_output": [True], "skip_special_tokens": [False],
              "logit_bias": [{str(dice.randrange(259)): dice.choice([-100, 4, 6]) for _ in range(5)}],
              "stop": [[chr(dice.randrange(33, 126)) for _ in range(4)] + ["ab"]],
              "stop_token_ids": [[dice.randrange(256) for _ in range(6)]],
              "allowed_token_ids": [sorted(dice.sample(range(259), 40))]}
    if not only_one:
        values.update(logprobs=[0, 2], prompt_logprobs=[0, 1], n=[1, 2, 3], echo=[True], best_of=[3],
                      bad_words=[["a", "be"], [chr(dice.randrange(33, 126)) for _ in range(20)]])
    fields.update({name: dice.choice(choice) for name, choice in values.items() if dice.random() < 0.25})
    if dice.random() < 0.3:
        fields["min_tokens"] = dice.randint(0, fields["max_tokens"])
    return fields


def some_fields(dice):
    """Of one request in six: a beam search that both servers' blocks hold."""
    if dice.random() < 5 / 6:
        return drawn_fields(dice, False)
    fields = {"use_beam_search": True, "n": dice.randint(1, 3), "max_tokens": dice.randint(1, 12), "seed": dice.randrange(99),
              "length_penalty": dice.choice((0, 1, 2)), "ignore_eos": dice.random() < 0.5}
    return {**fields, "logprobs": 1} if dice.random() < 0.5 else fields


def some_drafts(fields):
    return drafts(fields["seed"] % 7, "ngram" if fields["seed"] % 2 else "draft_model")


def numbers(choice):
    """Every log-probability of a choice, in order."""
    told = list((choice.get("logprobs") or {}).get("token_logprobs", []))
    for entry in choice.get("prompt_logprobs") or []:
        told += [None] if entry is None else sorted(one["logprob"] for one in entry.values())
    return told


class AnyRequest(unittest.TestCase):
    def setUp(self):
        self.dice = random.Random(SEED)
        budget = self.dice.choice(("5", "12", "64"))
        self.plain = Server(made("rand"), "--no-enable-prefix-caching", *FP32)
        self.addCleanup(self.plain.__exit__)
        self.busy = Server(made("rand"), "--draft-model", made("rand-noisy"), "--max-num-batched-tokens", budget, *TINY, *FP32)
        self.addCleanup(self.busy.__exit__)

    def tearDown(self):
        self.assertGreater(self.busy.metric("tandem:num_preemptions_total"), 0)
        self.busy.wait_idle()

    def go_on(self, draw, one, compare):
        until = time.monotonic() + SECONDS
        asked = answered = 0
        with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
            while time.monotonic() < until:
                jobs = [draw() for _ in range(3 * TOGETHER)]
                for job, answer in zip(jobs, pool.map(lambda job: one(self.busy, job, some_drafts(job[-1])), jobs)):
                    asked, answered = asked + 1, answered + compare(job, answer, one(self.plain, job, drafts(0)))
        self.assertGreater(answered, asked / 2)

    def drawn_ids(self):
        whole = SHARED if self.dice.random() < 0.5 else [self.dice.randrange(259) for _ in range(44)]
        return whole[:self.dice.randint(1, 44)]

    def test_of_completions(self):
        def one(server, job, speculative):
            return server.post("/v1/completions", {"model": server.name, "prompt": job[0], "return_token_ids": True, **job[1],
                                                   **speculative})

        def compare(job, mine, right):
            self.assertEqual(mine[0], right[0], job)
            if right[0] != 200:
                return 0
            for name in ("text", "token_ids", "finish_reason", "stop_reason"):
                self.assertEqual(*([choice[name] for choice in answer[1]["choices"]] for answer in (mine, right)), job)
            self.assertEqual(mine[1]["usage"]["completion_tokens"], right[1]["usage"]["completion_tokens"], job)
            self.assertLess(mine[1]["usage"]["prompt_tokens_details"]["cached_tokens"], len(job[0]), job)
            for choice, other in zip(mine[1]["choices"], right[1]["choices"]):
                self.assertEqual(len(numbers(choice)), len(numbers(other)), job)
                for value, expected in zip(numbers(choice), numbers(other)):
                    self.assertTrue(value == expected or abs(value - expected) < CLOSE, job)
            return 1

        self.go_on(lambda: (self.drawn_ids(), some_fields(self.dice)), one, compare)

    def test_of_every_way_in(self):
        def draw():
            way = self.dice.choice(list(WAYS))
            text = "".join(self.dice.choice("abc é日") for _ in range(self.dice.randint(1, 12)))
            return way, text if way.startswith("chat") else self.drawn_ids(), drawn_fields(self.dice, True)

        def one(server, job, speculative):
            try:
                return ask(server, job[0], job[1], **job[2], **speculative)
            except AssertionError as refused:
                return {"refused": str(refused)}

        def compare(job, mine, right):
            for name in ("text", "token_ids", "finish_reason", "stop_reason"):
                self.assertEqual(mine.get(name), right.get(name), (job, mine.get("refused")))
            self.assertEqual("".join(mine.get("pieces", [])), right.get("text", ""), job)
            return int("text" in right)

        self.go_on(draw, one, compare)


if __name__ == "__main__":
    unittest.main()
