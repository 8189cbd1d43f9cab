#!/usr/bin/env python3
"""Every tensor kind, written and read back by the gguf package, against what tandem reads and what it packs.

Bound: none, every value is equal. Each is a product, or a product and a sum, of fp16 and whole numbers, and both readers
do each fp32 operation in the format's own order. (Packed rows of F16 are equal after rounding to bf16, the form packed.)
Kinds the package can quantise are made from normal numbers; all kinds also from random blocks with valid scales.
"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "bench", "accuracy"))

try:
    import gguf
    import numpy as np
    from gguf_kinds import KINDS, Kind, quantize
except ImportError as missing:
    print(f"skipped: {missing}; ./run test installs what tests/requirements.txt names")
    sys.exit(77)

ROWS, COLUMNS = 37, 768
# Where a block keeps fp16 numbers.
HALVES = {Kind.Q4_0: [0], Kind.Q4_1: [0, 2], Kind.Q5_0: [0], Kind.Q5_1: [0, 2], Kind.Q8_0: [0], Kind.Q4_K: [0, 2],
          Kind.Q5_K: [0, 2], Kind.Q6_K: [208]}


def random_blocks(kind, random):
    """Any bits in every field but the fp16 ones, which are ordinary, negative, subnormal or zero numbers."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (ROWS * COLUMNS // elements, size), dtype=np.uint8)
    for at in HALVES[kind]:
        numbers = (random.standard_normal(len(blocks)) * 0.01).astype("<f2")
        numbers[::11] = np.float16(3e-7)
        numbers[::13] = 0
        blocks[:, at:at + 2] = numbers.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def float_edges(kind):
    """Numbers at the ends of the float formats, in the kind's own bytes."""
    edges = np.array([0.0, -0.0, 6e-8, 6.1e-5, 65504.0, -65504.0, 1e-40, 3e38], np.float32)
    if kind == Kind.F16:
        edges = edges[:6]
    values = np.resize(edges, (ROWS, COLUMNS)).astype(np.float32)
    return values.astype("<f2") if kind == Kind.F16 else quantize(values, kind)


def made_tensors():
    random = np.random.default_rng(7)
    tensors = {}
    for kind in KINDS:
        values = (random.standard_normal((ROWS, COLUMNS)) * 0.05).astype(np.float32)
        tensors[f"{kind.name}.quantised"] = (quantize(values, kind), kind)
        tensors[f"{kind.name}.random"] = (random_blocks(kind, random) if kind in HALVES else float_edges(kind), kind)
    return tensors


def to_bf16(values):
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return (rounded.astype(np.uint32) << 16).view(np.float32)


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "kinds.gguf")
        cls.tensors = made_tensors()
        writer = gguf.GGUFWriter(path, "none")
        for name, (data, kind) in cls.tensors.items():
            writer.add_tensor(name, data, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        listed = subprocess.run([os.environ["KIND_ROWS"], path, cls.folder.name], capture_output=True, text=True, timeout=120,
                                check=False)
        assert listed.returncode == 0, listed.stderr
        cls.listed = listed.stdout.splitlines()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def form(self, name, form):
        numbers = np.fromfile(os.path.join(self.folder.name, f"{name}.{form}"), "<f4")
        return numbers.reshape(ROWS, COLUMNS)

    def test_tandem_lists_every_tensor_with_its_kind_and_shape(self):
        expected = [f"{name} {kind.name} {ROWS} {COLUMNS}" for name, (_, kind) in self.tensors.items()]
        self.assertEqual(self.listed, expected)
        self.assertEqual(len({line.split()[1] for line in self.listed}), 11)

    def test_dequantised_rows_are_those_of_the_package(self):
        for name, (data, kind) in self.tensors.items():
            with self.subTest(name):
                theirs = gguf.dequantize(data, kind).astype(np.float32)
                np.testing.assert_array_equal(self.form(name, "dequantized"), theirs)

    def test_packed_rows_are_the_dequantised_ones_bit_for_bit(self):
        for name, (_, kind) in self.tensors.items():
            with self.subTest(name):
                exact = self.form(name, "dequantized")
                np.testing.assert_array_equal(self.form(name, "fp32"), exact)
                native = to_bf16(exact) if kind == Kind.F16 else exact  # 16-bit floats are packed as bf16
                np.testing.assert_array_equal(self.form(name, "native"), native)

    def test_quantised_rows_are_near_the_numbers_they_were_made_from(self):
        """Guards the quantisers of bench/accuracy: a step is the block's range over its levels."""
        random = np.random.default_rng(7)
        allowed = {Kind.F32: 0, Kind.F16: 1e-3, Kind.BF16: 4e-3, Kind.Q4_0: 0.12, Kind.Q4_1: 0.1, Kind.Q5_0: 0.06,
                   Kind.Q5_1: 0.05, Kind.Q8_0: 0.01, Kind.Q4_K: 0.11, Kind.Q5_K: 0.06, Kind.Q6_K: 0.03}
        for kind in KINDS:
            values = (random.standard_normal((ROWS, COLUMNS)) * 0.05).astype(np.float32)
            if kind in HALVES:
                random_blocks(kind, random)  # keeps the random numbers those of made_tensors()
            error = self.form(f"{kind.name}.quantised", "dequantized") - values
            self.assertLessEqual(np.sqrt(np.mean(error**2)) / 0.05, allowed[kind], kind.name)


if __name__ == "__main__":
    unittest.main()
