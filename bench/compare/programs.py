"""The programs measured: how each is started, asked and stopped. Every wait has a bound."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

START_BOUND_S = 120
STOP_BOUND_S = 20


class Unavailable(Exception):
    """What is missing, as a sentence."""


def command_line(command):
    return " ".join([os.path.basename(command[0]), *command[1:]])


def run_text(command, bound_s):
    """What a program prints; its standard error is shown only when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=bound_s, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{command_line(command)} took longer than {bound_s} s") from None
    if done.returncode != 0:
        raise RuntimeError(f"{command_line(command)} failed: {done.stderr[-500:]}")
    return done.stdout


def run_json(command, bound_s):
    return json.loads(run_text(command, bound_s))


class Server:
    """A server process. Stopped (not merely idle) while another is measured."""

    def __init__(self, command, port):
        began = time.monotonic()
        self.port = port
        self.name = os.path.basename(command[0])
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() - began > START_BOUND_S:
                self.stop()
                raise RuntimeError(f"{command_line(command)} did not start")
            time.sleep(0.02)
        self.start_seconds = time.monotonic() - began
        self.model = self.get_json("/v1/models")["data"][0]["id"]

    def answers(self):
        try:
            return self.get("/health")[0] == 200
        except OSError:
            return False

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get_json(self, path):
        return json.loads(self.get(path)[1])

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def resident_mib(self):
        """Now and at its highest; pages of mapped files count."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            status = file.read()
        return [int(re.search(name + r":\s+(\d+)", status).group(1)) / 1024 for name in ("VmRSS", "VmHWM")]

    def stop(self):
        if self.process.poll() is not None:
            return
        self.resume()
        self.process.terminate()
        try:
            self.process.wait(STOP_BOUND_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Program:
    """One that reads the .gguf itself and has a server."""
    serves = True

    def reads(self, model):
        return model

    def release(self):
        """Ends what is kept between measurements: nothing."""


class Tandem(Program):
    label = "tandem"
    PLAIN = ("--speculative-config", '{"method": "none"}')  # as the peers decode unless they are told to draft

    def __init__(self, binary, threads):
        if not os.access(binary, os.X_OK):
            raise Unavailable(f"there is no {binary}; build it with ./run build.")
        self.binary, self.threads = binary, str(threads)

    def version(self):
        done = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0]

    def bench(self, model, bound_s, input_len, output_len, rounds, batch=1):
        return run_json([self.binary, "bench", "latency", model, "--json", "--threads", self.threads, "--input-len",
                         str(input_len), "--output-len", str(output_len), "--num-iters", str(rounds), "--batch-size",
                         str(batch), *self.PLAIN], bound_s)

    def decode_speed(self, model, tokens, bound_s):
        """Tokens per second of one request behind its first token, as llama-bench -n counts."""
        return 1e3 / self.bench(model, bound_s, 1, tokens + 1, 2)["tpot_ms"]["mean"]

    def prefill_speed(self, model, tokens, rounds, bound_s):
        return self.bench(model, bound_s, tokens, 1, rounds)["prefill_tokens_per_s"]

    def batch_speed(self, model, at_once, prompt_tokens, answer_tokens, bound_s):
        """Tokens made per second of `at_once` requests together, their prompts' time within."""
        return self.bench(model, bound_s, prompt_tokens, answer_tokens, 1, at_once)["tokens_per_s"]

    def serve(self, model, slots, draft_model=None, extra=PLAIN):
        port = free_port()
        draft = ["--draft-model", draft_model] if draft_model else []
        return Server([self.binary, "serve", model, "--port", str(port), "--threads", self.threads, "--max-num-seqs",
                       str(slots), *draft, *extra], port)


class LlamaCpp(Program):
    label = "llama.cpp"
    CONTEXT_PER_SLOT = 1024

    def __init__(self, folder, threads):
        if not folder:
            raise Unavailable("llama.cpp is not measured: name the folder of its llama-server and llama-bench with "
                              "--llamacpp or LLAMACPP_BIN.")
        self.server, self.bench_program, self.batch_program = (
            os.path.join(folder, name) for name in ("llama-server", "llama-bench", "llama-batched-bench"))
        for program in (self.server, self.bench_program):  # without the third its batches are left out
            if not os.access(program, os.X_OK):
                raise Unavailable(f"llama.cpp is not measured: there is no {program}.")
        self.threads = str(threads)

    def version(self):
        done = subprocess.run([self.server, "--version"], capture_output=True, text=True, check=False)
        return " / ".join((done.stdout + done.stderr).strip().splitlines()[-2:])

    def bench(self, model, bound_s, prompt, tokens, rounds):
        rows = run_json([self.bench_program, "-m", model, "-t", self.threads, "-p", str(prompt), "-n", str(tokens),
                         "-r", str(rounds), "-o", "json"], bound_s)
        return rows[0]["avg_ts"]

    def decode_speed(self, model, tokens, bound_s):
        return self.bench(model, bound_s, 0, tokens, 2)

    def prefill_speed(self, model, tokens, rounds, bound_s):
        return self.bench(model, bound_s, tokens, 0, rounds)

    def batch_speed(self, model, at_once, prompt_tokens, answer_tokens, bound_s):
        """Its bench of batches takes no time for choosing tokens."""
        if not os.access(self.batch_program, os.X_OK):
            raise Unavailable(f"llama.cpp's batches are not measured: there is no {self.batch_program}; build its "
                              "target llama-batched-bench.")
        context = at_once * (prompt_tokens + answer_tokens)
        text = run_text([self.batch_program, "-m", model, "-t", self.threads, "-tb", self.threads, "-c", str(context),
                         "-npp", str(prompt_tokens), "-ntg", str(answer_tokens), "-npl", str(at_once),
                         "--output-format", "jsonl"], bound_s)
        row = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        return at_once * answer_tokens / (row["t_pp"] + row["t_tg"])

    def serve(self, model, slots, draft_model=None, extra=()):
        port = free_port()
        draft = ["--spec-type", "draft-simple", "--spec-draft-model", draft_model] if draft_model else []
        return Server([self.server, "-m", model, "-t", self.threads, "-np", str(slots), "-c",
                       str(slots * self.CONTEXT_PER_SLOT), "--port", str(port), "--no-webui", *draft, *extra], port)
