#!/usr/bin/env python3
"""Writes quant_blocks.txt: for each tensor kind, blocks of raw bytes and the floats they stand for.

Usage: pip install gguf; make_quant_blocks.py > quant_blocks.txt
Lines: "kind NAME", "bytes HEX", "floats HEX" (fp32, little-endian). The floats come from the gguf package's own
dequantisation, an implementation that is not ours.
"""
import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Kind

# Where each kind keeps fp16 numbers: random bits there would be infinities or NaN.
HALVES = {Kind.Q4_0: [0], Kind.Q4_1: [0, 2], Kind.Q5_0: [0], Kind.Q5_1: [0, 2], Kind.Q8_0: [0],
          Kind.Q4_K: [0, 2], Kind.Q5_K: [0, 2], Kind.Q6_K: [208]}


def blocks(kind, random):
    elements, size = GGML_QUANT_SIZES[kind]
    if kind == Kind.F32:
        return np.concatenate([random.standard_normal(28), [0.0, -0.0, 1e-40, 3e38]]).astype("<f4").view(np.uint8)[None]
    if kind == Kind.F16:
        edge = [0.0, -0.0, 6e-8, 6.1e-5, 65504.0, -65504.0]
        return np.concatenate([random.standard_normal(26), edge]).astype("<f2").view(np.uint8)[None]
    if kind == Kind.BF16:
        top = np.concatenate([random.standard_normal(28), [0.0, -0.0, 1e-39, 3e38]]).astype("<f4").view("<u4") >> 16
        return top.astype("<u2").view(np.uint8)[None]
    raw = random.integers(0, 256, (3, size), dtype=np.uint8)
    for at in HALVES[kind]:
        scale = (random.standard_normal(3) * 0.01).astype("<f2")
        scale[2] = np.float16(-3e-7)  # a subnormal
        raw[:, at:at + 2] = scale.view(np.uint8).reshape(3, 2)
    return raw


def main():
    random = np.random.default_rng(20240607)
    for kind in (Kind.F32, Kind.F16, Kind.BF16, *HALVES):
        for raw in blocks(kind, random):
            floats = quants.dequantize(raw, kind).astype("<f4")
            print("kind", kind.name)
            print("bytes", raw.tobytes().hex())
            print("floats", floats.tobytes().hex())


main()
