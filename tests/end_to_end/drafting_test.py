#!/usr/bin/env python3
"""A8, A10, A12, A13, A14: a draft model changes no token and loses none of its KV, through the whole engine."""
import concurrent.futures
import random
import subprocess
import unittest

from serving import TANDEM, Server, made
from ways import drafts, offline

FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
GREEDY = {"temperature": 0, "ignore_eos": True}
BLOCK = 16
SELF_RATE = 0.995


def prompt_of(length, seed=0):
    numbers = random.Random(f"{length} {seed}")
    return [numbers.randrange(256) for _ in range(length)]


def plain_ids(requests, *flags):
    """ORACLE: one after another would be slow; without drafts and cache the company changes nothing (same_answer)."""
    asked = [{**request, **drafts(0)} for request in requests]
    return [answer["token_ids"] for answer in offline(made("rand"), asked, "--no-enable-prefix-caching", *FP32, *flags)]


class SameIds(unittest.TestCase):
    def check(self, draft, settings, *flags):
        prompts = [prompt_of(1 + number % (3 * BLOCK + 2), number) for number in range(200)]
        requests = [{"prompt_token_ids": prompt, "max_tokens": 40, **settings} for prompt in prompts]
        expected = plain_ids(requests)
        asked = [{**request, **drafts(k)} for k in range(0, 9) for request in requests]
        answers = offline(made("rand"), asked, "--draft-model", made(draft), *FP32, *flags)
        for place, answer in enumerate(answers):
            k, number = divmod(place, len(requests))
            self.assertEqual(answer["token_ids"], expected[number], f"prompt {number}, k={k}")
            self.assertEqual(answer["timings"]["draft_n"] > 0, k > 0)

    def test_A8_of_the_model_as_its_own_draft(self):
        self.check("rand", GREEDY)

    def test_A8_of_a_partly_wrong_draft(self):
        self.check("rand-noisy", GREEDY)

    def test_A8_of_a_draft_that_is_always_wrong(self):
        self.check("rand-stranger", GREEDY)

    def test_A8_under_the_rejection_rule_with_few_blocks(self):
        self.check("rand-noisy", GREEDY, "--num-kv-blocks", "60", "--max-model-len", "256", "--speculative-config",
                   '{"sampling": "rejection"}')

    def test_sampled_ids_under_the_coupled_rule(self):
        self.check("rand-noisy", {"temperature": 0.8, "seed": 7, "ignore_eos": True})


class DraftsContext(unittest.TestCase):
    def test_A10_drafting_stops_where_the_drafts_context_ends_and_the_answer_goes_on(self):
        with Server(made("rand"), "--draft-model", made("rand-short"), *FP32) as server:
            for length in (1, 62, 63, 64, 65, 300):
                prompt = prompt_of(length)
                expected, = plain_ids([{"prompt_token_ids": prompt, "max_tokens": 120, **GREEDY}])
                for k in (1, 3, 5, 8):
                    with self.subTest(length=length, k=k):
                        answer = server.complete(prompt, max_tokens=120, **GREEDY, **drafts(k))
                        self.assertEqual((answer["token_ids"], answer["finish_reason"]), (expected, "length"))
                        drafted = answer["timings"]["draft_n"]
                        self.assertLessEqual(drafted, k * max(0, 65 - length))
                        if length < 60:
                            self.assertGreater(drafted, 0)
                        if length > 64:
                            self.assertEqual(drafted, 0)
                            self.assertIsNone(answer["timings"]["spec_token_acceptance_rate"])
            long = {"max_tokens": 150, **GREEDY, **drafts(5)}
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                beyond = [pool.submit(server.complete, prompt_of(300, seed), **long) for seed in range(3)]
                within = [pool.submit(server.complete, prompt_of(5, seed), max_tokens=40, **GREEDY, **drafts(5))
                          for seed in range(5)]
                self.assertEqual([answer.result()["timings"]["draft_n"] for answer in beyond], [0] * 3)
                self.assertTrue(all(answer.result()["timings"]["draft_n"] > 0 for answer in within))
            server.wait_idle()

    def test_A10_a_draft_that_reaches_beyond_the_models_length_drafts_up_to_it(self):
        flags = ("--max-model-len", "70")
        with Server(made("rand"), "--draft-model", made("rand"), *flags, *FP32) as server:
            for length in (1, 15, 16, 17, 47, 48, 49, 63, 64, 65, 68, 69):
                prompt = prompt_of(length)
                expected, = plain_ids([{"prompt_token_ids": prompt, **GREEDY}], *flags)
                self.assertEqual(len(expected), 70 - length)
                for k in (1, 2, 7, 8):
                    answer = server.complete(prompt, **GREEDY, **drafts(k))
                    self.assertEqual((answer["token_ids"], answer["finish_reason"]), (expected, "length"), f"{length} {k}")
                    self.assertEqual(answer["timings"]["draft_n"], answer["timings"]["draft_n_accepted"])
            server.wait_idle()


class Int8Cache(unittest.TestCase):
    """--kv-cache-dtype int8: another rounding, the same rules."""
    FLAGS = ("--dtype", "fp32", "--kv-cache-dtype", "int8")

    def requests(self):
        prompts = [prompt_of(length) for length in (1, 15, 16, 17, 100, 255, 256, 300, 400)]
        settings = (GREEDY, {"temperature": 0.8, "seed": 7, "ignore_eos": True})
        return [{"prompt_token_ids": prompt, "max_tokens": 60, **setting} for prompt in prompts for setting in settings]

    def test_drafts_cache_and_threads_change_no_token(self):
        requests = self.requests()
        expected = [answer["token_ids"] for answer in offline(
            made("rand"), [{**request, **drafts(0)} for request in requests], "--no-enable-prefix-caching", "--threads", "1",
            *self.FLAGS)]
        asked = [{**request, **drafts(k)} for k in (0, 1, 5) for request in requests]
        for draft in ("rand", "rand-noisy"):
            for threads in ("1", "2"):
                answers = offline(made("rand"), asked, "--draft-model", made(draft), "--threads", threads, *self.FLAGS)
                for place, answer in enumerate(answers):
                    self.assertEqual(answer["token_ids"], expected[place % len(requests)], (draft, threads, place))
                drafted = sum(answer["timings"]["draft_n"] for answer in answers)
                accepted = sum(answer["timings"]["draft_n_accepted"] for answer in answers)
                self.assertGreater(drafted, 0)
                if draft == "rand":
                    self.assertGreaterEqual(accepted, SELF_RATE * drafted)

    def test_a_prefix_hit_through_the_server_gives_the_same_ids(self):
        with Server(made("rand"), *self.FLAGS) as server:
            first, second = (server.complete(prompt_of(300), max_tokens=40, **GREEDY) for _ in range(2))
            self.assertEqual(first["token_ids"], second["token_ids"])
            self.assertGreaterEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], 256)

    def test_another_name_is_refused_with_those_there_are(self):
        finished = subprocess.run([TANDEM, "generate", made("rand"), "--kv-cache-dtype", "int4", "--prompt", "x"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("--kv-cache-dtype", finished.stderr)
        self.assertIn("int8", finished.stderr)


class Vocabularies(unittest.TestCase):
    def refused(self, draft):
        finished = subprocess.run([TANDEM, "generate", made("rand"), "--draft-model", made(draft), "--prompt", "x"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(finished.returncode, 2, finished.stderr)
        self.assertIn("--draft-model", finished.stderr)
        return finished.stderr

    def test_A12_another_tokenizer_or_swapped_ids_are_refused_with_the_first_id_that_differs(self):
        self.assertIn("token 0 ", self.refused("rand-other-tokens"))
        self.assertIn(f"token {ord('q')} ", self.refused("rand-swapped"))

    def test_A12_padding_rows_and_missing_rows_and_another_end_token_work(self):
        # 256, 257 and 258 are special tokens; 258 is the one that "rand-fewer" does not have.
        prompts = [prompt_of(20), prompt_of(9) + [258], [258] * 3, [256, 257, 258] + prompt_of(30), [ord("z")]]
        settings = [{**GREEDY}, {"temperature": 1.5, "seed": 4, "ignore_eos": True}, {"temperature": 0},
                    {"temperature": 0, "ignore_eos": True, "logit_bias": {"258": 4.5}},
                    {"temperature": 0, "ignore_eos": True, "logit_bias": {"258": 100}, "max_tokens": 5}]
        requests = [{"max_tokens": 60, "prompt_token_ids": prompt, **setting} for prompt in prompts for setting in settings]
        expected = plain_ids(requests)
        self.assertTrue(any(258 in ids and len(set(ids)) > 3 for ids in expected), "258 occurs among others")
        for draft in ("rand-padded", "rand-fewer", "rand-other-end"):
            for rule in ("coupled", "rejection"):
                asked = [{**request, **drafts(k)} for request in requests for k in (1, 5)]
                answers = offline(made("rand"), asked, "--draft-model", made(draft), "--speculative-config",
                                  f'{{"sampling": "{rule}"}}', *FP32)
                for place, answer in enumerate(answers):
                    if rule == "coupled" or asked[place]["temperature"] == 0:
                        self.assertEqual(answer["token_ids"], expected[place // 2], (draft, rule, asked[place]))
                self.assertGreater(sum(answer["timings"]["draft_n"] for answer in answers), 0)


    def test_A12_a_target_with_more_rows_than_its_draft_may_draw_them(self):
        requests = [{"prompt_token_ids": prompt_of(20), "max_tokens": 40, "logit_bias": {"259": bias, "260": bias}, **setting}
                    for bias in (0, 5, 100) for setting in (GREEDY, {"temperature": 1, "seed": 6, "ignore_eos": True},
                                                            {**GREEDY, "presence_penalty": 2, "repetition_penalty": 1.3})]
        plain = offline(made("rand-padded"), [{**request, **drafts(0)} for request in requests], *FP32)
        self.assertTrue(any({259, 260} & set(answer["token_ids"]) for answer in plain))
        for k in (1, 5):
            answers = offline(made("rand-padded"), [{**request, **drafts(k)} for request in requests], "--draft-model",
                              made("rand"), *FP32)
            for answer, expected in zip(answers, plain):
                self.assertEqual((answer["token_ids"], answer["text"]), (expected["token_ids"], expected["text"]))
                self.assertNotIn("padding", answer["text"])


class RopeScaling(unittest.TestCase):
    def test_E4_target_and_draft_each_use_their_own(self):
        request = {"prompt_token_ids": prompt_of(100), "max_tokens": 100, **GREEDY}
        said = {}
        for target in ("rand", "rand-linear", "rand-yarn"):
            plain, = offline(made(target), [{**request, **drafts(0)}], *FP32)
            said[target] = plain["token_ids"]
            for draft in ("rand", "rand-linear", "rand-yarn"):
                answer, = offline(made(target), [{**request, **drafts(3)}], "--draft-model", made(draft), *FP32)
                self.assertEqual(answer["token_ids"], said[target], (target, draft))
                timings = answer["timings"]
                self.assertEqual(timings["draft_n_accepted"] == timings["draft_n"], target == draft, (target, draft))
        self.assertEqual(len({tuple(ids) for ids in said.values()}), 3)


class TextSources(unittest.TestCase):
    def test_very_short_very_long_and_very_repetitive_prompts(self):
        prompts = [[5], [5, 5], [5, 6], [5] * 3, [5] * 300, [5, 6] * 150, prompt_of(30) * 10, prompt_of(400), list(range(256))]
        for setting in (GREEDY, {"temperature": 0.8, "seed": 1, "ignore_eos": True}):
            requests = [{"prompt_token_ids": prompt, "max_tokens": 100, **setting} for prompt in prompts]
            # A model that repeats itself, so that drafts are right, and one that does not.
            for model in ("cycle", "rand"):
                plain = offline(made(model), [{**request, **drafts(0)} for request in requests], *FP32)
                for method in ("ngram", "suffix"):
                    asked = [{**request, **drafts(k, method)} for k in (1, 4, 8) for request in requests]
                    answers = offline(made(model), asked, "--speculative-config", '{"suffix": true}', *FP32)
                    for place, answer in enumerate(answers):
                        self.assertEqual(answer["token_ids"], plain[place % len(requests)]["token_ids"], asked[place])
                    self.assertGreater(sum(answer["timings"]["draft_n"] for answer in answers), 0)

    def test_suffix_learns_from_answers_of_every_kind_but_not_across_salts(self):
        flags = ("--speculative-config", '{"suffix": true, "suffix_memory_mib": 4}')
        with Server(made("rand"), "--draft-model", made("rand-noisy"), *flags, *FP32) as server:
            for seed, teaching in enumerate((drafts(0), drafts(4, "ngram"), drafts(4), drafts(4, "suffix"))):
                prompt = prompt_of(40, seed)
                fields = {"max_tokens": 60, **GREEDY}
                first = server.complete(prompt, **fields, **teaching)
                server.wait_idle()
                again = server.complete(prompt, **fields, **drafts(4, "suffix"))
                self.assertEqual(again["token_ids"], first["token_ids"])
                self.assertEqual(list(again["timings"]["by_method"]), ["suffix"])
                self.assertGreater(again["timings"]["draft_n_accepted"], 40, teaching)
                salted = server.complete(prompt, **fields, **drafts(4, "suffix"), cache_salt=f"mine {seed}")
                self.assertEqual(salted["token_ids"], first["token_ids"])
                self.assertLess(salted["timings"]["draft_n_accepted"], 20)
                salted = server.complete(prompt, **fields, **drafts(4, "suffix"), cache_salt=f"mine {seed}")
                self.assertGreater(salted["timings"]["draft_n_accepted"], 40)
            label = 'tandem:spec_decode_num_accepted_tokens_total{method="suffix"'
            self.assertIn(label, server.send("GET", "/metrics")[2].decode())

    def test_suffix_with_the_least_memory_and_a_flood_changes_no_token(self):
        requests = [{"prompt_token_ids": prompt_of(1 + seed % 50, seed), "max_tokens": 60, "temperature": 0.8, "seed": seed,
                     "ignore_eos": True} for seed in range(120)]
        config = '{"method": "suffix", "suffix_memory_mib": 1, "suffix_decoding_max_tree_depth": 2, ' \
                 '"suffix_decoding_min_token_prob": 0, "num_speculative_tokens": 8}'
        answers = offline(made("rand"), requests, "--speculative-config", config, *FP32)
        self.assertEqual([answer["token_ids"] for answer in answers], plain_ids(requests))
        self.assertGreater(sum(answer["timings"]["draft_n"] for answer in answers), 1000)

    def test_settings_of_suffix_are_checked(self):
        for config in ('{"suffix_decoding_max_tree_depth": 1}', '{"suffix_decoding_max_tree_depth": 33}',
                       '{"suffix_decoding_min_token_prob": 1.5}', '{"suffix_memory_mib": 0}', '{"suffix": 1}',
                       '{"method": "suffix", "suffix": false}', '{"method": "custom"}', '{"suffix_memory": 3}'):
            finished = subprocess.run([TANDEM, "generate", made("rand"), "--speculative-config", config, "--prompt", "x"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertNotEqual(finished.returncode, 0, config)
            self.assertEqual(len(finished.stderr.splitlines()), 1, finished.stderr)


class Figures(unittest.TestCase):
    NAMES = ("num_drafts", "num_draft_tokens", "num_accepted_tokens")

    def counters(self, server):
        return [server.metric(f"tandem:spec_decode_{name}_total") for name in self.NAMES]

    def test_of_requests_and_metrics_agree_also_where_a_run_was_cut_short(self):
        with Server(made("cycle"), "--draft-model", made("cycle-bad"), "--threads", "1") as server:
            for k in (1, 2, 5, 8):
                for fields in ({"max_tokens": 33}, {"max_tokens": 50, "stop": ["pq"]}, {"max_tokens": 50, "stop_token_ids": [115]}):
                    with self.subTest(k=k, fields=fields):
                        before = self.counters(server)
                        answer = server.complete("abc", **GREEDY, **fields, **drafts(k))
                        server.wait_idle()
                        verified, proposed, accepted = (now - then for now, then in zip(self.counters(server), before))
                        timings = answer["timings"]
                        self.assertEqual((proposed, accepted), (timings["draft_n"], timings["draft_n_accepted"]))
                        # The step that ended the prompt had no drafts, nor one that had a single token to give.
                        self.assertIn(timings["steps"] - verified, (1, 2))
                        # One more where an accepted draft ended the answer: that step's own token was cut off.
                        over = timings["steps"] + timings["draft_n_accepted"] - len(answer["token_ids"])
                        self.assertIn(over, (0,) if len(fields) == 1 else (0, 1))

    def test_several_choices_add_up_and_each_is_what_it_would_be_alone(self):
        with Server(made("rand"), "--draft-model", made("rand-noisy"), *FP32) as server:
            fields = {"model": server.name, "prompt": prompt_of(20), "max_tokens": 40, "n": 5, "temperature": 0.9, "seed": 2,
                      "ignore_eos": True, "return_token_ids": True, "include_timings": True}
            _, plain = server.post("/v1/completions", {**fields, **drafts(0)})
            _, drafted = server.post("/v1/completions", {**fields, **drafts(4)})
            self.assertEqual([choice["token_ids"] for choice in drafted["choices"]],
                             [choice["token_ids"] for choice in plain["choices"]])
            timings = drafted["timings"]
            self.assertEqual(timings["steps"] + timings["draft_n_accepted"], 5 * 40)
            events = list(server.stream("/v1/completions", {**fields, **drafts(4)}))
            streamed = {index: [] for index in range(5)}
            for choice in (choice for event in events for choice in event["choices"]):
                streamed[choice["index"]] += choice["token_ids"]
            self.assertEqual([streamed[index] for index in range(5)], [choice["token_ids"] for choice in plain["choices"]])


class DraftKv(unittest.TestCase):
    def check_rate(self, answer, least=SELF_RATE):
        timings = answer["timings"]
        self.assertGreater(timings["draft_n"], 0)
        self.assertGreaterEqual(timings["draft_n_accepted"] / timings["draft_n"], least)

    def test_A13_a_model_that_drafts_for_itself_is_right_to_the_end(self):
        with Server(made("rand"), "--draft-model", made("rand"), *FP32) as server:
            prompt = prompt_of(10)
            expected, = plain_ids([{"prompt_token_ids": prompt, "max_tokens": 500, **GREEDY}])
            for setting in (GREEDY, {"temperature": 0.8, "seed": 3, "ignore_eos": True}):
                for k in range(1, 9):
                    with self.subTest(k=k, setting=setting):
                        parts = [server.complete(prompt, max_tokens=cap, **setting, **drafts(k)) for cap in (100, 400, 500)]
                        for answer in parts:
                            self.check_rate(answer)
                        first, before_last, whole = (answer["timings"]["steps"] for answer in parts)
                        self.assertLess(abs((whole - before_last) - first), 3)
                        self.assertLess(whole, 500 / (k + 1) * 1.05 + 3)
                        if setting is GREEDY:
                            self.assertEqual(parts[2]["token_ids"], expected)

    def test_A13_a_partly_wrong_draft_accepts_what_one_rebuilt_from_scratch_would(self):
        prompt, total, longest = prompt_of(10), 500, 8
        ids, = plain_ids([{"prompt_token_ids": prompt, "max_tokens": total, **GREEDY}])
        # What the draft says behind every prefix, each time from nothing.
        asked = [{"prompt_token_ids": prompt + ids[:done], "max_tokens": min(longest, 512 - len(prompt) - done), **GREEDY}
                 for done in range(1, total)]
        said = [answer["token_ids"] for answer in
                offline(made("rand-noisy"), asked, "--no-enable-prefix-caching", *FP32)]
        with Server(made("rand"), "--draft-model", made("rand-noisy"), *FP32) as server:
            for k in range(1, longest + 1):
                done, drafted, accepted = 1, 0, 0  # the step that ends the prompt has no drafts
                while done < total:
                    wished = min(k, total - done - 1)
                    proposal, truth = said[done - 1][:wished], ids[done:done + wished]
                    right = next((place for place in range(wished) if proposal[place] != truth[place]), wished)
                    drafted, accepted, done = drafted + wished, accepted + right, done + right + 1
                self.assertTrue(0.1 < accepted / drafted < 0.95, (k, accepted, drafted))
                timings = server.complete(prompt, max_tokens=total, **GREEDY, **drafts(k))["timings"]
                self.assertLess(abs(timings["draft_n_accepted"] / timings["draft_n"] - accepted / drafted), 0.01, k)

    def test_A14_after_prefix_hits_of_every_kind(self):
        prompt = prompt_of(10 * BLOCK + 3)
        for k in (1, 3, 5, 8):
            with Server(made("rand"), "--draft-model", made("rand"), *FP32) as server:
                fields = {"max_tokens": 60, **GREEDY}
                tails = [prompt_of(9, seed) for seed in range(3)]
                others = [prompt[:10 * BLOCK] + tail for tail in tails]
                expected = plain_ids([{"prompt_token_ids": one, **fields} for one in [prompt] + others])
                asked = [("cold", prompt, k), ("again", prompt, k), ("new tail", others[0], k), ("none", others[1], 0),
                         ("where none drafted", others[1], k), ("another tail", others[2], k)]
                for what, one, drafted in asked:
                    with self.subTest(what=what, k=k):
                        answer = server.complete(one, **fields, **drafts(drafted))
                        self.assertEqual(answer["token_ids"], expected[0 if one is prompt else others.index(one) + 1])
                        if drafted > 0:
                            self.check_rate(answer)
                        if what != "cold":
                            self.assertGreaterEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 9 * BLOCK)
                server.wait_idle()

    def test_A14_blocks_that_were_filled_without_drafts_serve_a_request_that_drafts(self):
        with Server(made("rand"), "--draft-model", made("rand"), *FP32) as server:
            prompt = prompt_of(10 * BLOCK + 3, 1)
            plain = server.complete(prompt, max_tokens=60, **GREEDY, **drafts(0))
            for _ in range(2):
                drafted = server.complete(prompt, max_tokens=60, **GREEDY, **drafts(5))
                self.assertEqual(drafted["token_ids"], plain["token_ids"])
                self.check_rate(drafted)
            longer = prompt + plain["token_ids"][:55]
            answer = server.complete(longer, max_tokens=5, **GREEDY, **drafts(3))
            self.assertEqual(answer["token_ids"], plain["token_ids"][55:60])

    def test_A14_after_a_crowd_that_turned_drafting_off(self):
        config = '{"num_speculative_tokens": 5, "adaptive": false, "disable_by_batch_size": 4}'
        with Server(made("rand"), "--draft-model", made("rand"), "--speculative-config", config, *FP32) as server:
            prompt = prompt_of(10 * BLOCK + 3)
            fields = {"max_tokens": 300, **GREEDY}
            expected, = plain_ids([{"prompt_token_ids": prompt, **fields}])
            with concurrent.futures.ThreadPoolExecutor(10) as pool:
                through = pool.submit(server.complete, prompt, **fields)
                crowd = [pool.submit(server.complete, prompt_of(30, seed), max_tokens=40, **GREEDY) for seed in range(8)]
                for one in crowd:
                    one.result()
                answer = through.result()
            self.assertEqual(answer["token_ids"], expected)
            for each in (answer, server.complete(prompt, **fields), server.complete(prompt_of(30, 3), max_tokens=60, **GREEDY)):
                self.check_rate(each)

    def test_A14_after_a_crowd_under_the_adaptive_policy(self):
        """Whatever it chooses while the crowd is there: the model's drafts for itself stay right, before and after."""
        config = '{"adaptive": true, "method": "draft_model"}'
        with Server(made("rand"), "--draft-model", made("rand"), "--speculative-config", config, *FP32) as server:
            prompt = prompt_of(10 * BLOCK + 3)
            fields = {"max_tokens": 300, **GREEDY}
            expected, = plain_ids([{"prompt_token_ids": prompt, **fields}])
            for _ in range(3):
                with concurrent.futures.ThreadPoolExecutor(10) as pool:
                    through = pool.submit(server.complete, prompt, **fields)
                    crowd = [pool.submit(server.complete, prompt_of(30, seed), max_tokens=60, **GREEDY) for seed in range(8)]
                    answers = [one.result() for one in [through, *crowd]]
                self.assertEqual(answers[0]["token_ids"], expected)
                answers.append(server.complete(prompt, **fields))
                for answer in answers:
                    timings = answer["timings"]
                    self.assertGreaterEqual(timings["draft_n_accepted"], SELF_RATE * timings["draft_n"])
            # The policy need not draft here; a request that leaves it no choice does.
            self.check_rate(server.complete(prompt, **fields, **drafts(5)))

    def test_A14_after_preemption(self):
        flags = ("--num-kv-blocks", "24", "--max-model-len", "256")
        with Server(made("rand"), "--draft-model", made("rand"), *flags, *FP32) as server:
            requests = [{"prompt_token_ids": prompt_of(30 + 7 * seed, seed), "max_tokens": 100, **GREEDY} for seed in range(8)]
            expected = plain_ids(requests)
            for k in (1, 5):
                before = server.metric("tandem:num_preemptions_total")
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    asked = [pool.submit(server.complete, request["prompt_token_ids"], max_tokens=100, **GREEDY, **drafts(k))
                             for request in requests]
                    for ids, answer in zip(expected, asked):
                        self.assertEqual(answer.result()["token_ids"], ids)
                        self.check_rate(answer.result())
                self.assertGreater(server.metric("tandem:num_preemptions_total"), before)
                server.wait_idle()


if __name__ == "__main__":
    unittest.main()
