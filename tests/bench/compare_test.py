#!/usr/bin/env python3
"""The comparison's client and tables, against a server of a few lines."""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE = os.environ["TANDEM_SOURCE"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "bench", "compare"))

import load  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(fields):
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


class FourTokens(http.server.BaseHTTPRequestHandler):
    """Streams four tokens, as many as asked for or not."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for word in ("one", " two", " three", " four"):
            self.wfile.write(chunk(event({"choices": [{"text": word}]})))
        self.wfile.write(chunk(event({"choices": [], "usage": {"completion_tokens": 4, "prompt_tokens": 7}})))
        self.wfile.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, *_):
        pass


class Client(unittest.TestCase):
    def test_events_keep_the_time_at_which_their_last_byte_came(self):
        second = event({"b": 2})
        whole = HEAD + chunk(event({"a": 1})) + chunk(second[:9]) + chunk(second[9:] + b"data: [DONE]\n\n")
        for cut in range(1, len(whole) - 2):  # behind it only the end of a line is left
            events = load.events_of([(1.0, whole[:cut]), (2.0, whole[cut:])])
            self.assertEqual([fields for _, fields in events], [{"a": 1}, {"b": 2}])
            self.assertEqual(events[0][0], 1.0 if cut >= len(HEAD + chunk(event({"a": 1}))) - 2 else 2.0)
            self.assertEqual(events[1][0], 2.0)

    def test_an_error_of_the_server_is_no_measurement(self):
        with self.assertRaisesRegex(RuntimeError, "429"):
            load.events_of([(1.0, b"HTTP/1.1 429 Too Many Requests\r\n\r\n{}")])

    def test_every_request_runs_and_too_few_tokens_are_an_error(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FourTokens) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                prompts = load.story_prompts(6, 1)
                got = load.run_load(server.server_port, "any", prompts, 3, 4, 30)
                self.assertEqual(got["prompt_tokens"], 6 * 7)
                self.assertGreater(got["tokens_per_s"], 0)
                with self.assertRaisesRegex(RuntimeError, "made 24 tokens where 48"):
                    load.run_load(server.server_port, "any", prompts, 3, 8, 30)
            finally:
                server.shutdown()

    def test_no_two_prompts_begin_alike_and_all_programs_get_the_same(self):
        prompts = load.story_prompts(8, 3) + load.story_prompts(8, 4)
        self.assertEqual(len({prompt[:4] for prompt in prompts}), 16)
        self.assertEqual(prompts[:8], load.story_prompts(8, 3))


def row(name, own, peer, **more):
    return {"name": name, "unit": "tokens/s", "samples": {"tandem": own, "llama.cpp": peer}, **more}


class Report(unittest.TestCase):
    def part(self, *rows):
        return {"parts": {"a-part": {"date": "today", "commit": "abc", "rounds": 3, "seconds": 1.0, "notes": [],
                                     "raw_read_gb_s": [20.0, None], "others_percent": 1.0, "rows": list(rows)}}}

    def test_a_row_that_is_behind_says_so(self):
        page = report.page(self.part(row("slow", [50, 40, 60], [100, 90, 110], goal=1.2)))
        self.assertIn("| slow | tokens/s | 50.0 (40.0–60.0) | 100 (90.0–110) | 0.50 | 1.2 × missed |", page)

    def test_a_missing_program_leaves_no_ratio(self):
        page = report.page(self.part({"name": "alone", "unit": "tokens/s", "samples": {"tandem": [5.0]}, "goal": 2.0}))
        self.assertIn("| alone | tokens/s | 5 |  |\n", page)
        self.assertNotIn("missed", page)

    def test_a_value_that_should_be_low_has_a_limit(self):
        low = {"name": "overhead", "unit": "%", "samples": {"tandem": [3.0, 1.0, 1.5]}, "limit": 2}
        self.assertIn("| overhead | % | 1.5 (1–3) | ≤ 2 met |", report.page(self.part(low)))
        self.assertIn("| ≤ 1 missed |", report.page(self.part({**low, "limit": 1})))

    def test_drafts_are_compared_with_plain_decoding_of_the_same_program(self):
        counts = {"tandem": [{"draft_n": 8, "draft_n_accepted": 6}]}
        page = report.page(self.part(row("plain", [10.0], [20.0]),
                                     row("drafted", [15.0], [10.0], against="plain", goal=1.2, details=counts)))
        self.assertIn("| drafted | 1.50 × | 75 % | 1.2 × met | 0.50 × |  |", page)

    def test_the_share_of_the_raw_read_is_told_where_weights_are_read_once_a_token(self):
        page = report.page(self.part(row("engine", [100.0], [90.0], model_bytes=10**8)))
        self.assertIn("10.0 GB/s of weights (file size × tokens/s), 50 % of the raw read.", page)


class Script(unittest.TestCase):
    def run_script(self, *arguments):
        environment = {key: value for key, value in os.environ.items() if key != "LLAMACPP_BIN"}
        return subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "bench", "compare", "run"), *arguments],
                              capture_output=True, text=True, timeout=60, env=environment, check=False)

    def test_an_unknown_part_is_refused_with_the_known_ones(self):
        finished = self.run_script("--parts", "everything")
        self.assertEqual(finished.returncode, 2)
        self.assertIn("smollm2-engine", finished.stderr)

    def test_what_is_missing_is_left_out_with_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "figures.json")
            finished = self.run_script("--tandem", sys.executable, "--models", folder, "--tiny", "--output", output,
                                       "--parts", "qwen-engine", "--bench-kernels", os.path.join(folder, "none"))
            self.assertEqual(finished.returncode, 0, finished.stderr)
            self.assertIn("llama.cpp is not measured", finished.stdout)
            self.assertIn("there is no qwen2.5-coder-1.5b.gguf", finished.stdout)
            with open(output, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["parts"]["qwen-engine"]["rows"], [])

    def test_the_machine_is_described(self):
        seen = machine.describe()
        self.assertGreater(seen["memory_gib"], 0)
        self.assertGreater(seen["cores"], 0)


if __name__ == "__main__":
    unittest.main()
