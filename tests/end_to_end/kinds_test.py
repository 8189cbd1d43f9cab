#!/usr/bin/env python3
"""Files of every tensor kind, made from one model: each loads, and its perplexity is that of an independent forward."""
import math
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "bench", "accuracy"))

try:
    import numpy as np
    from gguf_kinds import KINDS, Kind, convert
    from numpy_model import NumpyModel
except ImportError as missing:
    print(f"skipped: {missing}; ./run test installs what tests/requirements.txt names")
    sys.exit(77)

from perplexity_test import TEXT, ids_of, measure  # noqa: E402
from serving import made, real  # noqa: E402

CONTEXT = 100
EXACT = 1e-4   # nats per token: fp32 arithmetic
FAST = 0.01    # nats per token: perplexity within 1 %


def independent(path, ids):
    model = NumpyModel(path)
    samples = np.concatenate([-model.logprobs(ids[at:at + CONTEXT]) for at in range(0, len(ids), CONTEXT)])
    return float(np.mean(samples)), len(samples)


class EveryKind(unittest.TestCase):
    def test_has_the_perplexity_of_an_independent_forward_in_fp32_and_within_a_percent_on_the_fast_path(self):
        ids = ids_of(made("rand-wide"), TEXT)
        with tempfile.TemporaryDirectory() as folder:
            for kind in KINDS:
                with self.subTest(kind.name):
                    path = os.path.join(folder, kind.name + ".gguf")
                    self.assertEqual(convert(made("rand-wide"), path, kind), 1.0)
                    expected, count = independent(path, ids)
                    exact = measure(path, "--context", str(CONTEXT), "--dtype", "fp32")
                    self.assertEqual(exact["tokens_scored"], count)
                    self.assertAlmostEqual(exact["mean_nll"], expected, delta=EXACT)
                    fast = measure(path, "--context", str(CONTEXT))
                    self.assertAlmostEqual(fast["mean_nll"], expected, delta=FAST)
                    print(f"{kind.name}: {math.exp(expected):.3f}, fp32 {exact['mean_nll'] - expected:+.1e}, "
                          f"fast {fast['mean_nll'] - expected:+.1e}", flush=True)

    @unittest.skipIf(real("smollm2-135m") is None, "TANDEM_TEST_MODELS names no folder with smollm2-135m.gguf")
    def test_the_demo_model_has_the_perplexity_of_an_independent_forward(self):
        path = real("smollm2-135m")
        expected, count = independent(path, ids_of(path, TEXT))
        exact = measure(path, "--context", str(CONTEXT), "--dtype", "fp32")
        self.assertEqual(exact["tokens_scored"], count)
        self.assertAlmostEqual(exact["mean_nll"], expected, delta=EXACT)
        self.assertAlmostEqual(measure(path, "--context", str(CONTEXT))["mean_nll"], expected, delta=FAST)

    def test_rounded_to_8_bits_at_load_stays_within_a_percent_for_each_float_kind(self):
        ids = ids_of(made("rand-wide"), TEXT)
        with tempfile.TemporaryDirectory() as folder:
            for kind in (Kind.F32, Kind.F16, Kind.BF16):
                path = os.path.join(folder, kind.name + ".gguf")
                convert(made("rand-wide"), path, kind)
                expected, _ = independent(path, ids)
                rounded = measure(path, "--context", str(CONTEXT), "--quantization", "int8")
                self.assertAlmostEqual(rounded["mean_nll"], expected, delta=FAST)


if __name__ == "__main__":
    unittest.main()
