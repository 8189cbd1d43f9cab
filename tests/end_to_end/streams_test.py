#!/usr/bin/env python3
"""Many streams at once with random cancels: all end properly, every block comes back, memory stays flat.

TANDEM_STREAM_SECONDS (default 8) sets how long the load lasts.
"""
import json
import os
import random
import threading
import time
import unittest

from serving import Server, made, real

SECONDS = float(os.environ.get("TANDEM_STREAM_SECONDS", "8"))
CLIENTS = 64


class Load:
    """One client after another on the same thread, until the time is over."""

    def __init__(self, server, number, until):
        self.server, self.random, self.until = server, random.Random(number), until
        self.ended, self.cancelled, self.problems = 0, 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while time.monotonic() < self.until and not self.problems:
            try:
                self.one_stream()
            except Exception as problem:  # pylint: disable=broad-except
                self.problems.append(repr(problem))

    def one_stream(self):
        connection = self.server.connect()
        fields = {"model": self.server.name, "stream": True, "max_tokens": self.random.randint(1, 60),
                  "prompt": "word " * self.random.randint(1, 30), "temperature": 0.8, "ignore_eos": True,
                  "speculative": self.random.choice([False, {"method": "ngram", "num_speculative_tokens": 4},
                                                     {"method": "draft_model", "num_speculative_tokens": 3}])}
        connection.request("POST", "/v1/completions", json.dumps(fields).encode(), {"Content-Type": "application/json"})
        if self.random.random() < 0.05:  # gone before the answer
            connection.close()
            self.cancelled += 1
            return
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        cut_after = self.random.randint(0, 40) if self.random.random() < 0.25 else None
        finish = self.read(answer, cut_after)
        connection.close()
        if finish == "cut":
            self.cancelled += 1
            return
        assert finish == ["length"], finish
        self.ended += 1

    @staticmethod
    def read(answer, cut_after):
        finish = []
        for count, line in enumerate(answer):
            if cut_after is not None and count >= cut_after:
                return "cut"
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[len(b"data: "):])
            finish += [choice["finish_reason"] for choice in event["choices"] if choice["finish_reason"]]
        return finish


class Streams(unittest.TestCase):
    def load(self, server, seconds):
        until = time.monotonic() + seconds
        loads = [Load(server, number, until) for number in range(CLIENTS)]
        for load in loads:
            load.thread.join(seconds + 120)
            self.assertFalse(load.thread.is_alive(), "a stream hangs")
        self.assertEqual([problem for load in loads for problem in load.problems], [])
        server.wait_idle()
        return sum(load.ended for load in loads), sum(load.cancelled for load in loads)

    def check(self, target, draft, *flags):
        with Server(target, "--draft-model", draft, *flags) as server:
            self.load(server, SECONDS / 2)
            warm = server.resident_kib()
            ended, cancelled = self.load(server, SECONDS)
            grown = server.resident_kib() - warm
            print(f"{ended} streams ended, {cancelled} were cancelled, resident memory {warm} KiB, then {grown:+} KiB")
            self.assertGreater(ended, CLIENTS / 2)
            self.assertGreater(cancelled, 0)
            self.assertLess(grown, 16 << 10)
            status, _, _ = server.send("GET", "/health")
            self.assertEqual(status, 200)

    def test_of_a_made_model_with_few_blocks(self):
        self.check(made("rand"), made("rand-noisy"), "--max-model-len", "256", "--num-kv-blocks", "120")

    def test_of_the_demo_model(self):
        model = real("smollm2-135m")
        if model is None:
            self.skipTest("TANDEM_TEST_MODELS names no folder with smollm2-135m.gguf")
        # Few blocks: pages of the KV cache count as resident once they were used, so it must be full when warm.
        self.check(model, model, "--max-model-len", "1024", "--num-kv-blocks", "300")


if __name__ == "__main__":
    unittest.main()
