"""A running `tandem serve` and the requests of a client, with the standard library only."""
import http.client
import json
import os
import re
import signal
import subprocess
import time

TANDEM = os.environ["TANDEM"]
MADE_MODELS = os.environ["MADE_MODELS"]
START_BOUND_S = 120
IDLE_BOUND_S = 30


def made(name):
    return os.path.join(MADE_MODELS, name + ".gguf")


def real(name):
    """Path of a real model, or None where this machine has none."""
    path = os.path.join(os.environ.get("TANDEM_TEST_MODELS", ""), name + ".gguf")
    return path if os.path.isfile(path) else None


class Server:
    def __init__(self, model, *flags, log=subprocess.DEVNULL):
        self.process = subprocess.Popen([TANDEM, "serve", model, "--port", "0", *flags], stdout=subprocess.PIPE,
                                        stderr=log, text=True)
        line = self.process.stdout.readline()
        ready = re.match(r"tandem: serving (\S+) on https?://([\d.]+):(\d+) \(device .*\)", line)
        if not ready:
            self.process.kill()
            raise AssertionError(f"no ready line but {line!r}")
        self.name, self.host, self.port = ready.group(1), ready.group(2), int(ready.group(3))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.process.stdout.close()

    def connect(self, timeout=120):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def send(self, method, path, body=None, headers=None):
        """(status, headers, body as bytes)"""
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers={"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def post(self, path, fields):
        status, _, body = self.send("POST", path, json.dumps(fields).encode())
        return status, json.loads(body)

    def complete(self, prompt, **fields):
        """The first choice of /v1/completions, with ids, usage and timings."""
        wanted = {"model": self.name, "prompt": prompt, "return_token_ids": True, "include_timings": True, **fields}
        status, answer = self.post("/v1/completions", wanted)
        assert status == 200, (status, answer)
        return {**answer["choices"][0], "usage": answer["usage"], "timings": answer.get("timings")}

    def stream(self, path, fields):
        """Joined text, events and the final finish_reason of an SSE answer."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({"model": self.name, "stream": True, **fields}).encode(),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        events = []
        for line in answer:
            line = line.decode().rstrip("\n")
            if not line.startswith("data: "):
                continue
            if line == "data: [DONE]":
                break
            events.append(json.loads(line[len("data: "):]))
        connection.close()
        return events

    def detokenize(self, ids):
        return self.post("/detokenize", {"model": self.name, "tokens": ids})[1]["prompt"]

    def metric(self, name):
        """Sum over all labels of one series."""
        _, _, body = self.send("GET", "/metrics")
        values = [float(line.rsplit(" ", 1)[1]) for line in body.decode().splitlines()
                  if re.match(re.escape(name) + r"(\{| )", line)]
        return sum(values)

    def wait_idle(self):
        """Until nothing runs, nothing waits and no block is held."""
        until = time.monotonic() + IDLE_BOUND_S
        names = ("tandem:num_requests_running", "tandem:num_requests_waiting", "tandem:kv_cache_usage_perc")
        while any(self.metric(name) != 0 for name in names):
            assert time.monotonic() < until, {name: self.metric(name) for name in names}
            time.sleep(0.05)

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
