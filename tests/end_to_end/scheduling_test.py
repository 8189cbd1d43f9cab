#!/usr/bin/env python3
"""A15, B1, B2, B4, B5, B6, B8, B9 through sockets: pressure, preemption, cancels and the cache change no answer."""
import concurrent.futures
import itertools
import json
import random
import socket
import struct
import threading
import time
import unittest

from serving import Server, made
from ways import WAYS, WebSocket, ask, drafts, offline, score, sse

FP32 = ("--dtype", "fp32", "--kv-cache-dtype", "fp32", "--threads", "1")
GREEDY = {"temperature": 0, "ignore_eos": True}
TINY = ("--block-size", "4", "--num-kv-blocks", "24", "--max-model-len", "96")
BLOCK = 16
ROUNDS_S = 6


def prompt_of(length, seed=0):
    numbers = random.Random(f"{length} {seed}")
    return [numbers.randrange(256) for _ in range(length)]


def oracle(requests):
    asked = [{**request, **drafts(0)} for request in requests]
    return [answer["token_ids"] for answer in offline(made("rand"), asked, "--no-enable-prefix-caching", *FP32)]


class Pressure(unittest.TestCase):
    """Twelve requests at a time, more than the blocks hold; some are cancelled."""

    def run_rounds(self, server, jobs, seconds, urgent):
        dice = random.Random(1)
        until = time.monotonic() + seconds
        answered = cut = 0
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            while time.monotonic() < until:
                round_jobs = [dice.choice(jobs) for _ in range(12)]
                cuts = [dice.randint(0, 20) if dice.random() < 0.25 else None for _ in round_jobs]
                priorities = [dice.choice(urgent) for _ in round_jobs]
                waiting = [pool.submit(self.one, server, job, cut_after, priority)
                           for job, cut_after, priority in zip(round_jobs, cuts, priorities)]
                for job, answer in zip(round_jobs, waiting):
                    ids = answer.result(60)
                    if ids is None:
                        cut += 1
                        continue
                    self.assertEqual(ids, job["expected"])
                    answered += 1
        return answered, cut

    @staticmethod
    def one(server, job, cut_after, priority):
        fields = {"model": server.name, "prompt": job["prompt_token_ids"], "max_tokens": job["max_tokens"], "stream": True,
                  "return_token_ids": True, "priority": priority, **GREEDY, **drafts(job["k"], job["method"])}
        ids = []
        events = sse(server, "/v1/completions", fields)
        for count, event in enumerate(events):
            if count == cut_after:
                events.close()
                return None
            for choice in event["choices"]:
                ids += choice["token_ids"]
        return ids

    def check(self, *flags, urgent=(0,)):
        dice = random.Random(2)
        jobs = [{"prompt_token_ids": prompt_of(dice.randint(1, 40), seed), "max_tokens": dice.randint(1, 50)}
                for seed in range(40)]
        for job, expected in zip(jobs, oracle([{**job, **GREEDY} for job in jobs])):
            job.update(expected=expected, k=dice.choice((0, 1, 5, 5, 8)), method=dice.choice(("draft_model", "ngram")))
        with Server(made("rand"), "--draft-model", made("rand-noisy"), *TINY, *FP32, *flags) as server:
            answered, cut = self.run_rounds(server, jobs, ROUNDS_S, urgent)
            preempted = server.metric("tandem:num_preemptions_total")
            print(f"{answered} answered, {cut} cancelled, {preempted:.0f} preemptions")
            self.assertGreater(answered, 50)
            self.assertGreater(cut, 5)
            self.assertGreater(preempted, 0)
            server.wait_idle()
            self.assertEqual(self.one(server, jobs[0], None, 0), jobs[0]["expected"])

    def test_A15_survivors_equal_the_oracle(self):
        self.check()

    def test_A15_with_a_budget_that_skips_some_in_every_step(self):
        self.check("--max-num-batched-tokens", "16")

    def test_B9_with_priorities_of_every_size(self):
        self.check("--scheduling-policy", "priority", urgent=(0, 0, -1, 1, -(2 ** 31) + 1, 2 ** 31 - 1))


class Resuming(unittest.TestCase):
    """What a request carries beyond its ids survives preemption and prefix hits."""
    SETTINGS = [{"temperature": 0.9, "seed": 4}, {"temperature": 0, "repetition_penalty": 1.5, "presence_penalty": 1},
                {"temperature": 0.9, "seed": 5, "frequency_penalty": 1.5, "min_tokens": 20}, {"temperature": 0, "logprobs": 2},
                {"temperature": 0, "prompt_logprobs": 2}, {"temperature": 0, "prompt_logprobs": 1, "logprobs": 1},
                {"temperature": 0.7, "seed": 1, "logit_bias": {"111": -100, "29": 3}},
                {"temperature": 0.9, "seed": 8, "stop": ["ab", "x", "q", "\n", "%"], "include_stop_str_in_output": True}]

    def answers(self, server, jobs, together):
        with concurrent.futures.ThreadPoolExecutor(together) as pool:
            return list(pool.map(lambda job: server.complete(job["prompt"], max_tokens=30, ignore_eos=True, n=2,
                                                             **job["setting"], **drafts(job["k"])), jobs))

    def same(self, mine, expected, job):
        self.assertEqual(mine["token_ids"], expected["token_ids"], job)
        self.assertEqual(mine["text"], expected["text"], job)
        self.assertLess(mine["usage"]["prompt_tokens_details"]["cached_tokens"], len(job["prompt"]), job)
        for name in ("logprobs", "prompt_logprobs"):
            one, other = (self.numbers(answer.get(name)) for answer in (mine, expected))
            self.assertEqual(len(one), len(other), (name, job))
            for value, right in zip(one, other):
                self.assertTrue(value == right or abs(value - right) < 1e-4, (name, job))

    @staticmethod
    def numbers(part):
        if not part:
            return []
        if isinstance(part, dict):
            return part["token_logprobs"]
        return [None if entry is None else min(one["logprob"] for one in entry.values()) for entry in part]

    def test_B4_sampling_penalties_and_log_probabilities_survive_preemption(self):
        jobs = [{"prompt": prompt_of(2 + seed, seed), "setting": setting, "k": seed % 6} for seed in range(20)
                for setting in self.SETTINGS]
        with Server(made("rand"), "--no-enable-prefix-caching", *FP32) as plain:
            expected = self.answers(plain, [{**job, "k": 0} for job in jobs], 1)
        for budget in ("8", "256"):
            with Server(made("rand"), "--draft-model", made("rand-noisy"), "--max-num-batched-tokens", budget, *TINY,
                        *FP32) as server:
                for mine, right, job in zip(self.answers(server, jobs, 16), expected, jobs):
                    self.same(mine, right, job)
                self.assertGreater(server.metric("tandem:num_preemptions_total"), 0)
                server.wait_idle()

    def test_B6_penalties_count_the_tokens_of_a_cached_prompt(self):
        jobs = [{"prompt": prompt_of(70, 3)[:length], "setting": setting, "k": k} for length in (17, 33, 70) for k in (0, 4)
                for setting in self.SETTINGS]
        with Server(made("rand"), "--no-enable-prefix-caching", *FP32) as plain:
            expected = self.answers(plain, [{**job, "k": 0} for job in jobs], 1)
        with Server(made("rand"), "--draft-model", made("rand-noisy"), *FP32) as server:
            for _ in range(2):
                for mine, right, job in zip(self.answers(server, jobs, 1), expected, jobs):
                    self.same(mine, right, job)
            server.wait_idle()


class Fitting(unittest.TestCase):
    def probe(self, server):
        answer = server.complete("abc", max_tokens=5, temperature=0)
        self.assertEqual(answer["text"], "defgh")
        server.wait_idle()

    def test_B1_what_can_never_fit_is_refused_at_once_and_blocks_nobody(self):
        # 8 blocks of 4: 32 tokens, less than the model's own length.
        with Server(made("cycle"), "--draft-model", made("cycle-bad"), "--block-size", "4", "--num-kv-blocks", "8") as server:
            _, models = server.post("/tokenize", {"model": server.name, "prompt": "a"})
            self.assertEqual(models["max_model_len"], 32)
            for length in (31, 32, 33):
                for stream in (False, True):
                    fields = {"model": server.name, "prompt": "a" * length, "max_tokens": 1, "stream": stream}
                    status, _, body = server.send("POST", "/v1/completions", json.dumps(fields).encode())
                    self.assertEqual(status, 200 if length == 31 else 400, body)
                    if status == 400:
                        self.assertIn("32", json.loads(body)["error"]["message"])
                    self.probe(server)
            for k in (0, 5, 8):  # fits now, and to the end exactly
                answer = server.complete("a" * 20, **GREEDY, **drafts(k))
                self.assertEqual((len(answer["token_ids"]), answer["finish_reason"]), (12, "length"))
            self.probe(server)

    def test_lengths_up_to_the_last_token_of_the_last_block_with_drafts(self):
        with Server(made("rand"), "--draft-model", made("rand-noisy"), "--block-size", "4", "--num-kv-blocks", "8", "--max-model-len",
                    "32", *FP32) as server:
            prompts = [prompt_of(length) for length in range(1, 32)]
            for prompt in prompts:
                ids = server.complete(prompt, **GREEDY, **drafts(0))["token_ids"]
                self.assertEqual(len(ids), 32 - len(prompt))
                for k in (1, 3, 4, 5, 8):
                    answer = server.complete(prompt, **GREEDY, **drafts(k))
                    self.assertEqual((answer["token_ids"], answer["finish_reason"]), (ids, "length"), f"{len(prompt)} {k}")
            server.wait_idle()

    def test_B1_a_prompt_over_the_step_budget_without_chunks_is_refused(self):
        with Server(made("cycle"), "--no-enable-chunked-prefill", "--max-num-batched-tokens", "32") as server:
            for length in (31, 32, 33):
                status, answer = server.post("/v1/completions", {"model": server.name, "prompt": "a" * length, "max_tokens": 4})
                self.assertEqual(status, 200 if length <= 32 else 400, answer)
                self.probe(server)

    def test_B2_each_way_in_gives_the_same_refusal_at_the_models_length(self):
        limit = 96
        with Server(made("cycle"), "--max-model-len", str(limit)) as server:
            for way, extra, cap in itertools.product(WAYS, (-2, -1, 0, 1), (None, 1, 2, limit)):
                fields = {} if cap is None else {"max_tokens": cap}
                with self.subTest(way=way, extra=extra, cap=cap):
                    framed = 0
                    if way.startswith("chat"):
                        _, told = server.post("/tokenize", {"messages": [{"role": "user", "content": ""}]})
                        framed = told["count"]
                    count = limit + extra
                    refusal = self.refusal(server, way, "a" * (count - framed), fields)
                    if count + (cap or 1) > limit:
                        self.assertIn(str(limit), refusal)
                        self.assertIn(str(count), refusal)
                    else:
                        self.assertIsNone(refusal)
            self.probe(server)

    def refusal(self, server, way, prompt, fields):
        """The message of a 400, or None when the question was answered."""
        try:
            answer = ask(server, way, prompt, **GREEDY, **fields)
        except AssertionError as refused:
            return str(refused)
        self.assertGreater(len(answer["token_ids"]), 0)
        return None

    def test_B9_a_priority_that_is_no_integer_is_refused(self):
        with Server(made("cycle"), "--scheduling-policy", "priority") as server:
            for priority in (1.5, "1", 1 << 40, -(1 << 40), True, []):
                status, answer = server.post("/v1/completions", {"model": server.name, "prompt": "a", "priority": priority})
                self.assertEqual((status, answer["error"]["param"]), (400, "priority"))
            self.probe(server)


class Progress(unittest.TestCase):
    def test_B4_twenty_requests_over_room_for_one_all_finish_with_few_preemptions(self):
        for shared in (0, 24):
            with Server(made("rand"), "--draft-model", made("rand-noisy"), "--block-size", "4", "--num-kv-blocks", "22",
                        "--max-model-len", "88", *FP32) as server:
                begin = prompt_of(shared, 9)
                requests = [{"prompt_token_ids": begin + prompt_of(40 - shared, seed), "max_tokens": 32, **GREEDY}
                            for seed in range(20)]
                expected = oracle(requests)
                with concurrent.futures.ThreadPoolExecutor(20) as pool:
                    asked = [pool.submit(server.complete, request["prompt_token_ids"], max_tokens=32, **GREEDY, **drafts(k % 6))
                             for k, request in enumerate(requests)]
                    for ids, answer in zip(expected, asked):
                        self.assertEqual(answer.result(90)["token_ids"], ids)
                self.assertLess(server.metric("tandem:num_preemptions_total"), 10 * len(requests))
                server.wait_idle()

    def test_B5_every_budget_works_or_is_refused_at_start(self):
        k = 3
        requests = [{"prompt_token_ids": prompt_of(20 + 3 * seed, seed), "max_tokens": 24, **GREEDY} for seed in range(8)]
        expected = oracle(requests)
        for budget in (1, 2, k, k + 1, k + 2, BLOCK - 1, BLOCK, BLOCK + 1):
            with self.subTest(budget=budget):
                with Server(made("rand"), "--draft-model", made("rand-noisy"), "--max-num-batched-tokens", str(budget),
                            *FP32) as server:
                    with concurrent.futures.ThreadPoolExecutor(8) as pool:
                        asked = [pool.submit(server.complete, request["prompt_token_ids"], max_tokens=24, **GREEDY, **drafts(k))
                                 for request in requests]
                        for ids, answer in zip(expected, asked):
                            self.assertEqual(answer.result(60)["token_ids"], ids)
                    server.wait_idle()

    def test_B5_a_stream_goes_on_while_long_prompts_come_in(self):
        """Counted in tokens of the stream at the ends of the prompts: a starved stream has as many at each."""
        with Server(made("rand"), "--draft-model", made("rand-noisy"), "--max-num-batched-tokens", "32", *FP32) as server:
            fields = {"model": server.name, "prompt": prompt_of(5), "max_tokens": 500, "stream": True,
                      "return_token_ids": True, **GREEDY, **drafts(3)}
            received = []

            def read():
                for event in sse(server, "/v1/completions", fields):
                    received.extend(token for choice in event["choices"] for token in choice["token_ids"])

            def one_long(seed):
                before = len(received)
                server.complete(prompt_of(400, seed), max_tokens=1, **GREEDY)
                return len(received) - before if len(received) < 450 else None  # the stream was still there

            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                stream = pool.submit(read)
                while not received and not stream.done():
                    time.sleep(0.001)
                gained = [one_long(seed) for seed in range(6)]
                stream.result(60)
            # 400 rows in chunks of at most 32: thirteen steps, each with a token of the stream, some seen a little later.
            self.assertIsNotNone(gained[0], "the stream was over too soon to tell")
            self.assertGreaterEqual(min(count for count in gained if count is not None), 8)
            server.wait_idle()


class PrefixCache(unittest.TestCase):
    def test_B6_ids_and_log_probabilities_equal_the_oracle_every_time(self):
        top, cap = 3, 12
        with Server(made("rand"), "--no-enable-prefix-caching", *FP32) as plain, \
                Server(made("rand"), "--draft-model", made("rand-noisy"), "--num-kv-blocks", "40", "--max-model-len", "512",
                       *FP32) as server:
            lengths = (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK)
            prompts = [prompt_of(length) for length in lengths]
            prompts += [prompts[-1][:BLOCK] + prompt_of(40, 1), prompt_of(BLOCK, 2) + prompts[-1][BLOCK:],
                        prompts[-1][:BLOCK - 1] + [7] + prompts[-1][BLOCK:]]
            known = {}
            for k in (0, 3):
                for prompt, turn in itertools.product(prompts, range(3)):
                    with self.subTest(length=len(prompt), turn=turn, k=k):
                        answer = ask(server, "completions", prompt, logprobs=top, max_tokens=cap, **GREEDY, **drafts(k))
                        self.check(plain, answer, known, tuple(prompt), top, cap)
                        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                        self.assertLess(cached, len(prompt))
                        if turn > 0:
                            self.assertEqual(cached, (len(prompt) - 1) // BLOCK * BLOCK)
                for seed in range(6):  # others take the blocks
                    server.complete(prompt_of(300, seed), max_tokens=8, **GREEDY, **drafts(k))
            server.wait_idle()

    def check(self, plain, answer, known, prompt, top, cap):
        if prompt not in known:
            ids = plain.complete(list(prompt), max_tokens=cap, **GREEDY)["token_ids"]
            known[prompt] = ids, score(plain, list(prompt) + ids, top)[len(prompt) - 1:]
        ids, values = known[prompt]
        self.assertEqual(answer["token_ids"], ids)
        for (value, alternatives, _), (oracle_value, oracle_alternatives) in zip(answer["logprobs"], values):
            self.assertLess(abs(value - oracle_value), 1e-4)
            self.assertLess(abs(alternatives[-1] - oracle_alternatives[-1]), 1e-4)

    def test_B6_rejected_drafts_are_in_no_cached_block(self):
        with Server(made("rand"), "--draft-model", made("rand-stranger"), *FP32) as server:
            for k in (1, 5, 8):
                prompt = prompt_of(20, k)
                ids, = oracle([{"prompt_token_ids": prompt, "max_tokens": 150, **GREEDY}])
                self.assertEqual(server.complete(prompt, max_tokens=100, **GREEDY, **drafts(k))["token_ids"], ids[:100])
                for done in (12, 13, 28, 60, 99):  # goes on from blocks that were filled while drafting
                    answer = server.complete(prompt + ids[:done], max_tokens=40, **GREEDY, **drafts(k))
                    self.assertEqual(answer["token_ids"], ids[done:done + 40])
                    self.assertGreaterEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"],
                                            (20 + done - 1) // BLOCK * BLOCK)
            server.wait_idle()

    def test_B6_salts_do_not_share(self):
        with Server(made("rand"), *FP32) as server:
            cached = [server.complete(prompt_of(40), max_tokens=4, cache_salt=salt, **GREEDY)["usage"]
                      ["prompt_tokens_details"]["cached_tokens"] for salt in ("a", "b", "a", "b")]
            self.assertEqual(cached, [0, 0, 32, 32])


class Cancels(unittest.TestCase):
    WAYS_OUT = ("sse", "plain", "ws", "ws cancel", "reset")

    def test_B8_clients_that_leave_at_any_point_free_their_blocks_and_leave_the_bystander_alone(self):
        dice = random.Random(5)
        bystander = {"prompt_token_ids": prompt_of(30), "max_tokens": 400, **GREEDY}
        expected, = oracle([bystander])
        with Server(made("rand"), "--draft-model", made("rand-noisy"), "--num-kv-blocks", "100", *FP32) as server:
            stop, seen = threading.Event(), []

            def keep_asking():
                while not stop.is_set():
                    seen.append(server.complete(bystander["prompt_token_ids"], max_tokens=400, **GREEDY, **drafts(5))["token_ids"])

            thread = threading.Thread(target=keep_asking)
            thread.start()
            try:
                for _ in range(200):
                    self.leave(server, dice)
            finally:
                stop.set()
                thread.join(60)
            self.assertGreater(len(seen), 0)
            self.assertTrue(all(ids == expected for ids in seen))
            server.wait_idle()
            self.assertGreater(server.metric("tandem:requests_cancelled_total"), 0)

    def leave(self, server, dice):
        fields = {"model": server.name, "prompt": prompt_of(dice.choice((1, 30, 300)), dice.randrange(9)), "max_tokens": 150,
                  **GREEDY, **drafts(dice.choice((0, 5)))}
        way = dice.choice(self.WAYS_OUT)
        pause = dice.choice((0, 0.001, 0.005, 0.02))
        if way.startswith("ws"):
            lane = WebSocket(server)
            lane.send(json.dumps({"id": 1, **fields}))
            time.sleep(pause)
            if way == "ws cancel":
                lane.send(json.dumps({"id": 1, "cancel": True}))
                while "finish_reason" not in json.loads(lane.receive()):
                    pass
            lane.close()
            return
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps({**fields, "stream": way == "sse"}).encode(),
                           {"Content-Type": "application/json"})
        time.sleep(pause)
        if way == "reset":
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


if __name__ == "__main__":
    unittest.main()
