#!/usr/bin/env python3
"""The binary as a user meets it: exit codes, messages, formats. CYCLE answers "abc" with "defghi…"."""
import json
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import tty
import unittest
import urllib.error
import urllib.request

TANDEM = os.environ["TANDEM"]
MADE_MODELS = os.environ["MADE_MODELS"]
CYCLE = os.path.join(MADE_MODELS, "cycle.gguf")
RAND = os.path.join(MADE_MODELS, "rand.gguf")


def run(*arguments, text_in=None, **more):
    return subprocess.run([TANDEM, *arguments], input=text_in, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, check=False, **more)


class CommandLine(unittest.TestCase):
    def refused(self, finished, code, part):
        self.assertEqual(finished.returncode, code, finished.stderr)
        self.assertIn(part, finished.stderr)
        self.assertEqual(len(finished.stderr.strip().splitlines()), 1, finished.stderr)
        self.assertTrue(finished.stderr.startswith("tandem: "), finished.stderr)

    def test_version_names_version_features_and_cuda(self):
        finished = run("--version")
        self.assertEqual(finished.returncode, 0)
        self.assertRegex(finished.stdout, r"^tandem \d+\.\d+\.\d+\nCPU features: .+\nCUDA: (not )?compiled in\n\Z")

    def test_help_of_every_command_is_there(self):
        self.assertIn("serve", run("--help").stdout)
        for command in ("serve", "generate", "chat", "inspect", "tokenize", "detokenize", "models", "bench",
                        "perplexity"):
            finished = run(command, "--help")
            self.assertEqual(finished.returncode, 0)
            self.assertIn("--", finished.stdout)

    def test_help_is_a_command_too(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual(run("help", "bench", "latency").stdout, run("bench", "latency", "--help").stdout)
        self.assertEqual(run("help", "serve").returncode, 0)

    def test_help_shows_plain_words_and_every_default(self):
        for command in (["serve"], ["generate"], ["chat"], ["bench", "latency"], ["bench", "throughput"],
                        ["perplexity"]):
            shown = run(*command, "--help").stdout
            self.assertNotRegex(shown, r"INT:|UINT:|TEXT:|=1024b", command)
            for flag in ("--device", "--dtype", "--quantization", "--log-level", "--log-format", "--max-num-queued-tokens", "--draft-model"):
                entry = re.search(re.escape(flag) + r"[ ,].*?(?=\n  -|\n\n)", shown, re.S).group(0)
                self.assertIn("default", entry, command)

    def test_a_cuda_device_is_refused_with_what_to_use_instead(self):
        self.refused(run("generate", CYCLE, "--prompt", "a", "--device", "cuda"), 1, "no CUDA device is compiled in")
        self.refused(run("serve", CYCLE, "--port", "0", "--log-level", "error", "--device", "cuda"), 1, "no CUDA device is compiled in")

    def test_a_stop_flag_leaves_the_model_alone(self):
        finished = run("generate", "--temperature", "0", "--stop", "fg", "--stop-token-ids", "0,1", CYCLE, "--prompt", "abc")
        self.assertEqual((finished.returncode, finished.stdout), (0, "de\n"), finished.stderr)

    def test_wrong_usage_is_exit_code_2_and_one_sentence(self):
        self.refused(run("servee"), 2, 'did you mean "serve"?')
        self.refused(run("generate", CYCLE, "--max-tokns", "3"), 2, 'did you mean "max-tokens"?')
        self.refused(run("generate", CYCLE, "--max-tokens", "x"), 2, "--max-tokens")
        self.refused(run("generate", CYCLE), 2, "--prompt")
        self.refused(run("generate"), 2, "MODEL")
        self.refused(run("serve", CYCLE, "--ssl-keyfile", "k"), 2, "needs --ssl-certfile")
        self.refused(run("serve", CYCLE, "--ssl-certfile", "none.pem"), 1, "--ssl-certfile none.pem: the file cannot be read")
        self.refused(run("serve", CYCLE, "--max-requests-per-key", "2"), 2, "needs --api-key")
        self.refused(run("serve", CYCLE, "--allowed-origins", "[1]"), 2, "--allowed-origins")
        self.refused(run("serve", CYCLE, "--allowed-hosts", "[1]"), 2, "--allowed-hosts")
        self.refused(run("serve", CYCLE, "--max-body-mib", "1025"), 2, "--max-body-mib")
        self.refused(run("worker"), 2, "not offered yet")
        self.refused(run("models", "fetch", "smollm2"), 2, "smollm2-135m")

    def test_a_failure_at_run_time_is_exit_code_1(self):
        self.refused(run("inspect", "/nowhere/model.gguf"), 1, "/nowhere/model.gguf")
        with tempfile.NamedTemporaryFile(suffix=".gguf") as broken:
            with open(CYCLE, "rb") as whole:
                broken.write(whole.read(1000))
            broken.flush()
            self.refused(run("inspect", broken.name), 1, broken.name)

    def test_a_chat_template_that_never_ends_is_refused(self):
        self.refused(run("generate", CYCLE, "--prompt", "a", "--chat-template", "/dev/zero"), 2, "/dev/zero")

    def test_generate_prints_the_known_answer(self):
        finished = run("generate", CYCLE, "--prompt", "abc", "--max-tokens", "5", "--temperature", "0")
        self.assertEqual((finished.returncode, finished.stdout), (0, "defgh\n"), finished.stderr)

    def test_generate_json_has_results_and_totals(self):
        finished = run("generate", CYCLE, "--prompt", "abc", "--max-tokens", "4", "--temperature", "0", "--output", "json",
                       "--logprobs", "1")
        root = json.loads(finished.stdout)
        self.assertEqual(root["totals"]["completion_tokens"], 4)
        self.assertEqual(set(root["totals"]), {"wall_s", "prompt_tokens", "completion_tokens", "tokens_per_s"})
        answer = root["results"][0]
        self.assertEqual(answer["prompt_token_ids"], [97, 98, 99])
        output = answer["outputs"][0]
        self.assertEqual(output["token_ids"], [100, 101, 102, 103])
        self.assertEqual((output["text"], output["finish_reason"], output["stop_reason"]), ("defg", "length", None))
        self.assertEqual(len(output["logprobs"]), 4)
        self.assertEqual(answer["usage"]["prompt_tokens"], 3)
        self.assertEqual(answer["timings"]["steps"], 4)
        self.assertEqual(answer["timings"]["by_method"], {})

    def test_generate_answers_a_file_in_input_order(self):
        lines = [{"prompt": chr(97 + index % 20), "id": f"line {index}", "max_tokens": 1 + index % 7} for index in range(40)]
        finished = run("generate", CYCLE, "--prompts", "-", "--output", "jsonl", "--temperature", "0",
                       text_in="".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual(finished.returncode, 0, finished.stderr)
        answers = [json.loads(line) for line in finished.stdout.splitlines()]
        self.assertEqual([answer["id"] for answer in answers], [line["id"] for line in lines])
        for line, answer in zip(lines, answers):
            first = ord(line["prompt"]) + 1
            self.assertEqual(answer["outputs"][0]["token_ids"], list(range(first, first + line["max_tokens"])))

    def test_a_refused_request_of_a_file_does_not_cost_the_others_their_answers(self):
        finished = run("generate", CYCLE, "--prompts", "-", "--output", "jsonl", "--temperature", "0", "--max-tokens", "2",
                       text_in='{"prompt": "a"}\n{"prompt": "a", "top_p": 7}\n{"prompt": "b"}\n')
        self.assertEqual(finished.returncode, 1)
        answers = [json.loads(line) for line in finished.stdout.splitlines()]
        self.assertEqual([answer["outputs"][0]["text"] for answer in (answers[0], answers[2])], ["bc", "cd"])
        self.assertIn("top_p", answers[1]["error"]["message"])

    def test_a_stop_string_cuts_the_text_and_names_itself(self):
        finished = run("generate", CYCLE, "--prompt", "abc", "--stop", "fg", "--temperature", "0", "--output", "json")
        output = json.loads(finished.stdout)["results"][0]["outputs"][0]
        self.assertEqual((output["text"], output["finish_reason"], output["stop_reason"]), ("de", "stop", "fg"))

    def test_a_seed_gives_the_same_tokens_with_and_without_drafts(self):
        common = ["generate", RAND, "--prompt", "hello hello hello", "--max-tokens", "40", "--seed", "7", "--temperature",
                  "0.8", "--output", "json", "--ignore-eos"]
        ids = [json.loads(run(*common, *more).stdout)["results"][0]["outputs"][0]["token_ids"]
               for more in ([], ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 3}'],
                            ["--draft-model", os.path.join(MADE_MODELS, "rand-noisy.gguf")], ["--threads", "1"])]
        self.assertEqual(len(ids[0]), 40)
        for other in ids[1:]:
            self.assertEqual(other, ids[0])

    def test_tokenize_and_detokenize_are_inverse(self):
        text = "héllo\n\twörld \x00end"
        ids = run("tokenize", CYCLE, "--ids", text_in=text.replace("\x00", "")).stdout
        self.assertEqual(run("detokenize", CYCLE, text_in=ids).stdout, text.replace("\x00", ""))
        self.assertEqual(run("tokenize", CYCLE, "--ids", "--text", "ab").stdout, "97 98\n")
        self.assertEqual(len(run("tokenize", CYCLE, "--ids", "--text", "<|im_end|>").stdout.split()), 10)
        self.assertEqual(len(run("tokenize", CYCLE, "--ids", "--special", "--text", "<|im_end|>").stdout.split()), 1)
        self.refused(run("detokenize", CYCLE, "--ids", "5 x"), 1, '"x"')

    def test_inspect_shows_sizes(self):
        root = json.loads(run("inspect", RAND, "--json").stdout)
        self.assertEqual(root["architecture"], "llama")
        self.assertEqual(root["sizes"]["layers"], 2)
        self.assertIn("architecture llama", run("inspect", RAND, "--tensors", "--metadata").stdout)

    def test_ctrl_c_ends_generate_cleanly_with_what_it_has(self):
        with subprocess.Popen([TANDEM, "generate", CYCLE, "--prompts", "-", "--output", "jsonl", "--temperature", "0"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdin.write('{"prompt": "a", "max_tokens": 1}\n' + '{"prompt": "a", "max_tokens": 2000}\n' * 300)
            process.stdin.close()
            first = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            rest = [json.loads(line) for line in process.stdout]
            self.assertEqual(process.wait(timeout=60), 0, process.stderr.read())
        self.assertEqual(first["outputs"][0]["text"], "b")
        reasons = {answer["outputs"][0]["finish_reason"] for answer in rest}
        self.assertIn("cancelled", reasons)
        self.assertLessEqual(reasons, {"cancelled", "length"})

    def chat_on_a_terminal(self, **environment):
        """What `chat --show-drafts` writes to a terminal; CYCLE answers a chat with the bytes 11, 12, 13, …"""
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        command = [TANDEM, "chat", CYCLE, "--draft-model", CYCLE, "--num-speculative-tokens", "3", "--show-drafts",
                   "--max-tokens", "8", "--temperature", "0", "--threads", "1"]
        variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE,
                              env={**variables, **environment}) as chat:
            os.close(theirs)
            chat.stdin.write(b"hi\n")
            chat.stdin.close()
            shown = b""
            try:
                while part := os.read(ours, 4096):
                    shown += part
            except OSError:  # the terminal's other end is closed
                pass
            self.assertEqual(chat.wait(timeout=60), 0, chat.stderr.read())
        os.close(ours)
        return shown

    def test_chat_shows_drafts_in_green_on_a_terminal_that_takes_colours(self):
        plain = b"\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\n"
        # The step that computes the prompt gives one token, the next three drafts and its own, the last two and its own.
        green = b"\x0b\x1b[32m\x0c\x0d\x0e\x1b[0m\x0f\x1b[32m\x10\x11\x1b[0m\x12\n"
        self.assertEqual(self.chat_on_a_terminal(), green)
        self.assertEqual(self.chat_on_a_terminal(NO_COLOR=""), green)
        self.assertEqual(self.chat_on_a_terminal(NO_COLOR="1"), plain)

    def test_chat_shows_no_colours_in_a_file_or_pipe(self):
        flags = ("chat", CYCLE, "--draft-model", CYCLE, "--max-tokens", "8", "--temperature", "0")
        shown = run(*flags, "--show-drafts", text_in="hi\n")
        self.assertEqual((shown.returncode, shown.stdout), (0, run(*flags, text_in="hi\n").stdout))
        self.assertNotIn("\x1b", shown.stdout)

    def test_chat_answers_each_line_and_ends_with_the_input(self):
        finished = run("chat", CYCLE, "--max-tokens", "3", "--temperature", "0", text_in="hi\n/reset\nho\n")
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertEqual(finished.stdout.count("\n"), 2, finished.stdout)

    def test_bench_json_has_the_fields_of_the_documentation(self):
        root = json.loads(run("bench", "latency", CYCLE, "--num-iters", "2", "--output-len", "8", "--json").stdout)
        for field in ("tokens_per_s", "prefill_tokens_per_s", "ttft_ms", "itl_ms", "e2e_ms", "mean_accepted_length", "model",
                      "device", "threads", "speculative_config"):
            self.assertIn(field, root)
        self.assertGreaterEqual(root["engine_steps"], 8)  # of the measured rounds
        self.assertGreaterEqual(root["step_ms"]["mean"], root["engine_overhead_ms"]["mean"])
        self.assertGreater(root["engine_overhead_ms"]["p50"], 0)
        self.assertLess(root["engine_overhead_share"], 1)
        self.assertEqual(root["completion_tokens"], 16)

    def test_models_list_and_offline_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, TANDEM_MODELS=folder)
            listed = run("models", env=environment)
            self.assertIn("smollm2-135m", listed.stdout)
            self.assertIn("folder: " + folder, listed.stdout)
            self.refused(run("models", "verify", "smollm2-135m", env=environment), 1, "not fetched")
            self.refused(run("models", "remove", "smollm2-135m", env=environment), 1, "nothing to remove")


class Serve(unittest.TestCase):
    def start(self, *flags):
        server = subprocess.Popen([TANDEM, "serve", CYCLE, "--port", "0", *flags], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, server)
        line = server.stdout.readline()
        self.assertRegex(line, r"^tandem: serving \S+ on http://127\.0\.0\.1:\d+ \(device .+\)\n$")
        return server, line.split(" on ")[1].split(" ")[0]

    def end(self, server):
        if server.poll() is None:
            server.kill()
        server.communicate()

    def test_a_free_port_is_printed_and_answers(self):
        server, url = self.start()
        with urllib.request.urlopen(url + "/health", timeout=30) as answer:
            self.assertEqual(answer.status, 200)
        body = json.dumps({"model": "cycle", "prompt": "abc", "max_tokens": 4, "temperature": 0}).encode()
        request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.assertEqual(json.load(answer)["choices"][0]["text"], "defg")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(timeout=60), 0)

    def test_F2_a_taken_port_is_refused_before_the_model_loads(self):
        _, url = self.start()
        port = url.rsplit(":", 1)[1]
        finished = run("serve", "/nowhere/never-opened.gguf", "--port", port)
        self.assertEqual(finished.returncode, 1)
        self.assertIn(port, finished.stderr)
        self.assertNotIn("never-opened", finished.stderr)

    def test_F2_port_0_and_a_bad_host(self):
        finished = run("serve", CYCLE, "--host", "256.1.2.3", "--port", "0")
        self.assertEqual(finished.returncode, 1)
        self.assertIn("256.1.2.3", finished.stderr)

    def test_F2_a_restart_right_after_a_kill_works(self):
        server, url = self.start()
        port = url.rsplit(":", 1)[1]
        held = socket.create_connection(("127.0.0.1", int(port)))
        server.kill()
        server.wait()
        again = subprocess.Popen([TANDEM, "serve", CYCLE, "--port", port], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        self.addCleanup(self.end, again)
        self.assertIn("tandem: serving", again.stdout.readline())
        held.close()

    def test_a_stop_while_a_request_streams_ends_it_truthfully(self):
        server, url = self.start("--shutdown-timeout", "0")
        body = json.dumps({"model": "cycle", "prompt": "a", "max_tokens": 1900, "temperature": 0, "stream": True}).encode()
        request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.readline()
            server.send_signal(signal.SIGINT)
            rest = answer.read().decode()
        self.assertTrue("finish_reason" in rest or "error" in rest, rest[-500:])
        self.assertEqual(server.wait(timeout=60), 0)

    def test_an_api_key_of_the_environment_is_wanted(self):
        os.environ["TANDEM_API_KEY"] = "secret"
        try:
            _, url = self.start()
        finally:
            del os.environ["TANDEM_API_KEY"]
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url + "/v1/models", timeout=30)
        self.assertEqual(refused.exception.code, 401)
        request = urllib.request.Request(url + "/v1/models", headers={"Authorization": "Bearer secret"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    unittest.main()
