"""What training needs of the target beside its hidden states: embedding, output matrix and final norm, from its GGUF."""
import dataclasses

import gguf
import numpy as np


@dataclasses.dataclass
class Target:
    embedding: np.ndarray   # fp16 [vocabulary][hidden]
    output: np.ndarray      # fp16, the same array where the model ties them
    final_norm: np.ndarray  # fp32 [hidden]
    layers: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    epsilon: float
    context: int

    @property
    def vocabulary(self):
        return self.embedding.shape[0]

    @property
    def hidden(self):
        return self.embedding.shape[1]


def matrix(tensors, name):
    return gguf.dequantize(tensors[name].data, tensors[name].tensor_type).astype(np.float16)


def read_target(path):
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    architecture = reader.fields["general.architecture"].contents()

    def number(key, otherwise=None):
        field = reader.fields.get(f"{architecture}.{key}")
        return otherwise if field is None else field.contents()
    embedding = matrix(tensors, "token_embd.weight")
    heads = number("attention.head_count")
    return Target(embedding=embedding,
                  output=matrix(tensors, "output.weight") if "output.weight" in tensors else embedding,
                  final_norm=gguf.dequantize(tensors["output_norm.weight"].data,
                                             tensors["output_norm.weight"].tensor_type).astype(np.float32),
                  layers=number("block_count"), intermediate=number("feed_forward_length"), heads=heads,
                  kv_heads=number("attention.head_count_kv", heads),
                  head_dim=number("attention.key_length", embedding.shape[1] // heads),
                  epsilon=number("attention.layer_norm_rms_epsilon"), context=number("context_length"))
