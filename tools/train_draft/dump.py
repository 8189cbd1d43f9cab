"""Reads what `tandem generate --dump-hidden PREFIX` wrote."""
import dataclasses
import glob

import numpy as np

from . import safetensors_file

FORMAT = "tandem hidden states 1"


@dataclasses.dataclass
class Sequence:
    """One answer. states: [tokens][features, then the last hidden state after the final norm][hidden], bits of bf16, on
    disk until they are used."""
    name: str
    tokens: np.ndarray
    prompt_tokens: int
    states: np.ndarray


def names_of(tensors):
    return [name.removesuffix(".tokens") for name in tensors if name.endswith(".tokens")]


def read_dump(prefix):
    """(sequences of all files, layers whose input the features are). ValueError for files that do not belong together."""
    paths = sorted(glob.glob(glob.escape(prefix) + "-[0-9]*.safetensors"))
    if not paths:
        raise ValueError(f"there is no file {prefix}-00001.safetensors.")
    sequences, layers = [], None
    for path in paths:
        tensors, metadata = safetensors_file.read(path)
        if metadata.get("format") != FORMAT:
            raise ValueError(f"{path} was not written by `tandem generate --dump-hidden` of this version.")
        found = [int(layer) for layer in metadata["layers"].split(",")]
        if layers not in (None, found):
            raise ValueError(f"{path} has the layers {found}, the files before it {layers}.")
        layers = found
        for name in names_of(tensors):
            sequences.append(Sequence(name, tensors[name + ".tokens"], int(tensors[name + ".prompt_tokens"][0]),
                                      tensors[name + ".states"]))
    return sequences, layers
