#!/usr/bin/env python3
"""`tandem generate --dump-hidden`: every position of every answer, equal to an independent forward, however it was made."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tools"))

try:
    import numpy as np
    from numpy_model import NumpyModel
    from train_draft import dump
except ImportError as missing:
    print(f"skipped: {missing}; ./run test installs what tests/requirements.txt names")
    sys.exit(77)

from serving import TANDEM, made  # noqa: E402

BF16_STEP = 2.0**-8  # of what is written, relative
FP32 = ("--dtype", "fp32", "--threads", "2")


def to_floats(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def run(model, requests, prefix, *flags):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    return subprocess.run([TANDEM, "generate", model, "--prompts", "-", "--output", "jsonl", "--dump-hidden", prefix, *flags],
                          input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)


class HiddenStates(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.prefix = os.path.join(holder.name, "states")

    def dumped(self, model, requests, *flags):
        """(answers as printed, sequences by name, layers)"""
        finished = run(model, requests, self.prefix, *flags)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        sequences, layers = dump.read_dump(self.prefix)
        return [json.loads(line) for line in finished.stdout.splitlines()], {each.name: each for each in sequences}, layers

    def compare(self, model, sequence, layers):
        expected = NumpyModel(model).hidden_states(np.array(sequence.tokens))
        wanted = np.stack([*expected[layers], expected[-1]], axis=1)
        found = to_floats(sequence.states)
        self.assertEqual(found.shape, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=BF16_STEP, atol=1e-3)

    def test_are_there_for_prompt_and_output_and_equal_an_independent_forward(self):
        requests = [{"prompt": "Once upon a time there was ", "max_tokens": 20, "temperature": 0},
                    {"prompt": "x", "max_tokens": 7, "seed": 3, "n": 2}, {"prompt": "The end of a longer prompt. " * 5, "max_tokens": 1}]
        for model in (made("rand"), made("rand-wide")):
            answers, sequences, layers = self.dumped(model, requests, *FP32)
            self.assertEqual(list(sequences), ["0.0", "1.0", "1.1", "2.0"])
            for name, sequence in sequences.items():
                place, choice = map(int, name.split("."))
                prompt = answers[place]["prompt_token_ids"]
                self.assertEqual(sequence.tokens.tolist(), prompt + answers[place]["outputs"][choice]["token_ids"])
                self.assertEqual(sequence.prompt_tokens, len(prompt))
                self.compare(model, sequence, layers)

    def test_are_the_same_with_drafts_and_prefix_hits_and_in_steps_of_any_size(self):
        prompt = "One two three. One two three. One two three. One two"
        requests = [{"prompt": prompt, "max_tokens": 24, "temperature": 0}] * 3
        with_drafts = ("--speculative-config", '{"method": "draft_model", "model": "%s"}' % made("rand"),
                       "--num-speculative-tokens", "4", "--block-size", "4")
        _, plain, _ = self.dumped(made("rand"), requests, *FP32, "--no-enable-prefix-caching")
        for flags in (with_drafts, ("--max-num-batched-tokens", "5"), ("--max-num-seqs", "1", "--block-size", "4")):
            answers, found, _ = self.dumped(made("rand"), requests, *FP32, *flags)
            if flags == with_drafts:
                self.assertGreater(answers[0]["usage"]["completion_tokens_details"]["accepted_prediction_tokens"], 10)
            for name, sequence in plain.items():
                self.assertEqual(found[name].tokens.tolist(), sequence.tokens.tolist())
                np.testing.assert_array_equal(found[name].states, sequence.states)

    def test_refused_lines_have_none_and_the_others_do(self):
        requests = [{"prompt": "a", "max_tokens": 2}, {"prompt": "long " * 1000, "max_tokens": 2}, {"prompt": "b", "max_tokens": 2}]
        finished = run(made("rand"), requests, self.prefix)
        self.assertEqual(finished.returncode, 1)
        self.assertEqual([each.name for each in dump.read_dump(self.prefix)[0]], ["0.0", "2.0"])

    def test_a_folder_that_is_not_there_is_refused_with_its_name(self):
        finished = run(made("rand"), [{"prompt": "a", "max_tokens": 2}], os.path.join(self.prefix, "none", "states"))
        self.assertEqual(finished.returncode, 1)
        self.assertIn("none/states-00001.safetensors cannot be written", finished.stderr)


if __name__ == "__main__":
    unittest.main()
