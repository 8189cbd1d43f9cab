"""GGUF files of any kind made from another one: dequantise, quantise again, write.

Needs the packages of tests/requirements.txt (./run test puts them into build/python-packages).
Kinds that the gguf package cannot quantise (Q4_K, Q5_K, Q6_K) are quantised here, plainly: scales from each group's
extremes, no search. Their files are valid and a little worse than those of a tool that searches.
"""
import gguf
import numpy as np

Kind = gguf.GGMLQuantizationType
# Every kind tandem reads.
KINDS = [Kind.F32, Kind.F16, Kind.BF16, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K]
SUPER = 256


def _halves(values):
    return values.astype("<f2").view(np.uint8).reshape(len(values), 2)


def _divide(values, by):
    return np.divide(values, by, out=np.zeros_like(values), where=by != 0)


def _pack_scales(scales, minima):
    """Eight 6-bit scales and eight 6-bit minima of each block into 12 bytes."""
    packed = np.empty((len(scales), 12), np.uint8)
    packed[:, 0:4] = scales[:, :4] | (scales[:, 4:] >> 4) << 6
    packed[:, 4:8] = minima[:, :4] | (minima[:, 4:] >> 4) << 6
    packed[:, 8:12] = (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4
    return packed


def _quantize_with_minima(values, bits):
    """Q4_K and Q5_K: x = d·scale·q − dmin·minimum in groups of 32."""
    groups = values.reshape(-1, 8, 32)
    minima = np.maximum(0, -groups.min(axis=2))
    scales = (groups.max(axis=2) + minima) / (2**bits - 1)
    d = (scales.max(axis=1) / 63).astype("<f2").astype(np.float32)
    d_min = (minima.max(axis=1) / 63).astype("<f2").astype(np.float32)
    whole_scales = np.clip(np.rint(_divide(scales, d[:, None])), 0, 63).astype(np.uint8)
    whole_minima = np.clip(np.rint(_divide(minima, d_min[:, None])), 0, 63).astype(np.uint8)
    step = (d[:, None] * whole_scales)[:, :, None]
    shifted = groups + (d_min[:, None] * whole_minima)[:, :, None]
    quants = np.clip(np.rint(_divide(shifted, np.broadcast_to(step, shifted.shape))), 0, 2**bits - 1).astype(np.uint8)
    low = quants & 15
    nibbles = (low[:, 0::2] | low[:, 1::2] << 4).reshape(-1, 128)
    parts = [_halves(d), _halves(d_min), _pack_scales(whole_scales, whole_minima)]
    if bits == 5:
        fifth = np.zeros((len(groups), 32), np.uint8)
        for group in range(8):
            fifth |= (quants[:, group] >> 4) << group
        parts.append(fifth)
    return np.concatenate([*parts, nibbles], axis=1)


def _quantize_q6_k(values):
    """x = d·scale·(q − 32) in groups of 16, signed 8-bit scales."""
    groups = values.reshape(-1, 16, 16)
    scales = np.abs(groups).max(axis=2) / 31
    d = (scales.max(axis=1) / 127).astype("<f2").astype(np.float32)
    whole_scales = np.clip(np.rint(_divide(scales, d[:, None])), 0, 127).astype(np.int8)
    step = (d[:, None] * whole_scales)[:, :, None]
    quants = np.clip(np.rint(_divide(groups, np.broadcast_to(step, groups.shape))), -32, 31).astype(np.int8) + 32
    quarters = quants.astype(np.uint8).reshape(-1, 2, 4, 32)  # half, quarter, position
    low = quarters & 15
    low_bytes = np.concatenate([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], axis=2)
    high = quarters >> 4
    high_bytes = high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6
    return np.concatenate([low_bytes.reshape(-1, 128), high_bytes.reshape(-1, 64), whole_scales.view(np.uint8), _halves(d)],
                          axis=1)


OWN = {Kind.Q4_K: lambda values: _quantize_with_minima(values, 4), Kind.Q5_K: lambda values: _quantize_with_minima(values, 5),
       Kind.Q6_K: _quantize_q6_k}


def fits(kind, columns):
    return columns % gguf.GGML_QUANT_SIZES[kind][0] == 0


def quantize(values, kind):
    """Rows of fp32 numbers as a kind's bytes (F32 and F16: as numbers). The last dimension must fit the kind's blocks."""
    if kind not in OWN:
        return gguf.quantize(values, kind)
    blocks = OWN[kind](np.ascontiguousarray(values, np.float32).reshape(-1, SUPER))
    return blocks.reshape(*values.shape[:-1], -1)


def _copy_fields(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == gguf.Keys.General.ARCHITECTURE:
            continue
        array = field.types[0] == gguf.GGUFValueType.ARRAY
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=field.types[-1] if array else None)


def convert(source, target, kind, fallback=Kind.Q8_0):
    """Writes `source` with its matrices as `kind`, or as `fallback` where the kind's blocks do not divide the columns.

    Returns the share of the matrices' weights that have the kind itself. Norms and biases stay F32.
    """
    reader = gguf.GGUFReader(source)
    architecture = reader.fields[gguf.Keys.General.ARCHITECTURE].contents()
    writer = gguf.GGUFWriter(target, architecture)
    _copy_fields(reader, writer)
    wanted, total = 0, 0
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if values.ndim < 2:
            writer.add_tensor(tensor.name, values, raw_dtype=Kind.F32)
            continue
        used = kind if fits(kind, values.shape[-1]) else fallback
        total += values.size
        wanted += values.size if used == kind else 0
        writer.add_tensor(tensor.name, quantize(values, used), raw_dtype=used)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return wanted / max(1, total)
