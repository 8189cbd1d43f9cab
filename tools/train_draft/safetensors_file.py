"""Safetensors files with numpy alone. bf16, which numpy lacks, is uint16 here: its bits."""
import json
import os
import struct

import numpy as np

DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2"), "I64": np.dtype("<i8"),
          "I32": np.dtype("<i4"), "BOOL": np.dtype("?")}
NAMES = {np.dtype("<f4"): "F32", np.dtype("<f2"): "F16", np.dtype("<i8"): "I64", np.dtype("<i4"): "I32",
         np.dtype("?"): "BOOL"}
ALIGNMENT = 8


def read(path):
    """(tensors by name as arrays that stay on disk, metadata). ValueError for a file that is cut short or broken."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if 8 + length > size:
            raise ValueError(f"{path} is cut short: its header has {length} bytes, the file {size}.")
        header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    data = np.memmap(path, np.uint8, "r", offset=8 + length) if size > 8 + length else np.empty(0, np.uint8)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= len(data):
            raise ValueError(f"{path} is cut short: {name} ends at byte {end} of {len(data)}.")
        tensors[name] = data[begin:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def write(path, tensors, metadata=None):
    """Arrays by name, in that order."""
    header, begin = {"__metadata__": metadata or {"format": "pt"}}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, begin + array.nbytes]}
        begin += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
