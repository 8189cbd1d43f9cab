#!/usr/bin/env python3
"""A6 and seeds: every parameter has its effect at every drafted position, over every way in."""
import collections
import concurrent.futures
import unittest

from serving import Server, made
from ways import WAYS, ask, drafts, offline

FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
PROMPT = "x"  # RAND says one token 17 times behind it
LENGTH = 48
SEEDS = range(12)


class Sampling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("rand"), "--draft-model", made("rand-noisy"), *FP32)
        greedy = cls.server.complete(PROMPT, max_tokens=LENGTH, temperature=0, ignore_eos=True, **drafts(0))["token_ids"]
        cls.plain = greedy
        cls.loop, count = collections.Counter(greedy).most_common(1)[0]
        assert count >= 8, greedy
        cls.other = (cls.loop + 91) % 256
        cls.parameters = [{"repetition_penalty": 1.5}, {"presence_penalty": 2}, {"frequency_penalty": 2},
                          {"frequency_penalty": -2}, {"logit_bias": {str(cls.loop): -100}},
                          {"logit_bias": {str(cls.other): 100}}, {"min_p": 0.5}, {"top_k": 3}, {"top_p": 0.4},
                          {"allowed_token_ids": [7, 8, 9, 200, cls.loop]}, {"min_tokens": LENGTH, "ignore_eos": False}]

    @classmethod
    def tearDownClass(cls):
        cls.server.wait_idle()
        cls.server.__exit__()

    def fields(self, parameter, **others):
        return {"max_tokens": LENGTH, "ignore_eos": True, **parameter, **others}

    def check_effect(self, parameter, ids):
        if parameter.get("logit_bias", {}).get(str(self.loop)) == -100:
            self.assertNotIn(self.loop, ids)
        if parameter.get("logit_bias", {}).get(str(self.other)) == 100:
            self.assertEqual(set(ids), {self.other})
        if "allowed_token_ids" in parameter:
            self.assertLessEqual(set(ids), set(parameter["allowed_token_ids"]))
        if "min_tokens" in parameter:
            self.assertEqual(len(ids), LENGTH)

    def test_A6_greedy_ids_equal_those_without_drafts_for_each_parameter(self):
        changed = 0
        for parameter in self.parameters:
            for method in ("draft_model", "ngram"):
                with self.subTest(parameter=parameter, method=method):
                    answers = [self.server.complete(PROMPT, **self.fields(parameter, temperature=0, **drafts(k, method)))
                               for k in (0, 1, 5, 8)]
                    for answer in answers:
                        self.assertEqual(answer["token_ids"], answers[0]["token_ids"])
                        self.check_effect(parameter, answer["token_ids"])
                    changed += answers[0]["token_ids"] != self.plain
        self.assertGreaterEqual(changed, 2 * 5, "the parameters have no effect to test")

    def test_A6_sampled_ids_equal_those_without_drafts_for_each_parameter_and_seed(self):
        for parameter in self.parameters:
            for seed in SEEDS:
                with self.subTest(parameter=parameter, seed=seed):
                    answers = [self.server.complete(PROMPT, **self.fields(parameter, temperature=0.9, seed=seed, **drafts(k)))
                               for k in (0, 5)]
                    self.assertEqual(answers[0]["token_ids"], answers[1]["token_ids"])
                    self.check_effect(parameter, answers[1]["token_ids"])

    def test_A6_each_way_in_honours_each_parameter(self):
        for way in WAYS:
            for parameter in self.parameters:
                with self.subTest(way=way, parameter=parameter):
                    answers = [ask(self.server, way, PROMPT, **self.fields(parameter, temperature=0, **drafts(k)))
                               for k in (0, 5)]
                    self.assertEqual(answers[0]["token_ids"], answers[1]["token_ids"])
                    self.check_effect(parameter, answers[1]["token_ids"])

    def test_A6_generate_on_the_command_line_honours_each_parameter(self):
        for setting in ({"temperature": 0}, {"temperature": 0.9, "seed": 5}):
            requests = [{"prompt": PROMPT, **self.fields(parameter, **setting, **drafts(k))}
                        for parameter in self.parameters for k in (0, 5)]
            answers = offline(made("rand"), requests, "--draft-model", made("rand-noisy"), *FP32)
            for request, answer in zip(requests, answers):
                self.assertEqual(answer["token_ids"], self.server.complete(**request)["token_ids"], request)

    def test_A6_the_rejection_rule_honours_each_parameter(self):
        with Server(made("rand"), "--draft-model", made("rand-noisy"), "--speculative-config",
                    '{"sampling": "rejection"}', *FP32) as server:
            for parameter in self.parameters:
                with self.subTest(parameter=parameter):
                    greedy = self.fields(parameter, temperature=0, **drafts(5))
                    self.assertEqual(server.complete(PROMPT, **greedy)["token_ids"],
                                     self.server.complete(PROMPT, **greedy)["token_ids"])
                    for seed in SEEDS:
                        answer = server.complete(PROMPT, **self.fields(parameter, temperature=0.9, seed=seed, **drafts(5)))
                        self.check_effect(parameter, answer["token_ids"])
            server.wait_idle()

    def test_a_seed_repeats_alone_and_in_company_and_seeds_differ(self):
        setting = {"temperature": 1.0, "max_tokens": 24, "ignore_eos": True}
        alone = {seed: self.server.complete(PROMPT, seed=seed, **setting, **drafts(0))["token_ids"] for seed in SEEDS}
        self.assertEqual(len({tuple(ids) for ids in alone.values()}), len(SEEDS))
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            asked = [(seed, pool.submit(self.server.complete, PROMPT, seed=seed, **setting, **drafts(k)))
                     for seed in SEEDS for k in (0, 2, 5)]
            for seed, answer in asked:
                self.assertEqual(answer.result()["token_ids"], alone[seed])

    def test_a_seed_gives_each_prompt_of_a_list_what_it_has_alone_and_each_choice_its_own(self):
        setting = {"model": self.server.name, "temperature": 1.0, "max_tokens": 24, "ignore_eos": True, "seed": 9,
                   "return_token_ids": True}
        prompts = ["one", "another", "a third prompt"]
        for k in (0, 5):
            _, single = self.server.post("/v1/completions", {**setting, "prompt": prompts, **drafts(k)})
            _, several = self.server.post("/v1/completions", {**setting, "prompt": prompts, "n": 3, **drafts(k)})
            for place, prompt in enumerate(prompts):
                ids = self.server.complete(prompt, **{**setting, **drafts(0)})["token_ids"]
                self.assertEqual(single["choices"][place]["token_ids"], ids)
                choices = [several["choices"][3 * place + choice]["token_ids"] for choice in range(3)]
                self.assertEqual(choices[0], ids)
                self.assertEqual(len({tuple(choice) for choice in choices}), 3)

    def test_without_a_seed_each_request_draws_its_own(self):
        drawn = {tuple(self.server.complete(PROMPT, temperature=1.0, max_tokens=24, ignore_eos=True)["token_ids"])
                 for _ in range(8)}
        self.assertEqual(len(drawn), 8)


if __name__ == "__main__":
    unittest.main()
