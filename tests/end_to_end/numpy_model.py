"""A llama model in float64, from a GGUF file: log-probabilities that owe nothing to tandem. Needs numpy and gguf."""
import gguf
import numpy as np


class NumpyModel:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.weights = {tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
                        for tensor in reader.tensors}

        def number(key, otherwise=None):
            field = reader.fields.get("llama." + key)
            return otherwise if field is None else field.contents()
        self.layers = number("block_count")
        self.heads, self.kv_heads = number("attention.head_count"), number("attention.head_count_kv")
        self.head_size = number("attention.key_length", number("embedding_length") // self.heads)
        self.epsilon = number("attention.layer_norm_rms_epsilon")
        self.theta = number("rope.freq_base")

    def normalize(self, hidden, weight):
        return hidden / np.sqrt(np.mean(hidden**2, axis=-1, keepdims=True) + self.epsilon) * self.weights[weight]

    def rotate(self, heads):
        """GGUF's llama: pairs (2i, 2i + 1). heads: position × head × channel."""
        angles = np.arange(len(heads))[:, None] * self.theta ** (-np.arange(0, self.head_size, 2) / self.head_size)
        turn = np.exp(1j * angles)[:, None, :]
        pairs = (heads[..., 0::2] + 1j * heads[..., 1::2]) * turn
        return np.stack([pairs.real, pairs.imag], axis=-1).reshape(heads.shape)

    def attend(self, hidden, layer):
        count = len(hidden)

        def heads_of(part, number):
            return (hidden @ self.weights[f"{layer}.attn_{part}.weight"].T).reshape(count, number, self.head_size)
        query, key = self.rotate(heads_of("q", self.heads)), self.rotate(heads_of("k", self.kv_heads))
        share = self.heads // self.kv_heads
        key, value = np.repeat(key, share, axis=1), np.repeat(heads_of("v", self.kv_heads), share, axis=1)
        scores = np.einsum("qhc,khc->hqk", query, key) / np.sqrt(self.head_size)
        scores[:, np.triu(np.ones((count, count), bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = np.einsum("hqk,khc->qhc", scores / scores.sum(axis=-1, keepdims=True), value)
        return mixed.reshape(count, -1) @ self.weights[f"{layer}.attn_output.weight"].T

    def feed_forward(self, hidden, layer):
        gate = hidden @ self.weights[f"{layer}.ffn_gate.weight"].T
        up = hidden @ self.weights[f"{layer}.ffn_up.weight"].T
        return (gate / (1 + np.exp(-gate)) * up) @ self.weights[f"{layer}.ffn_down.weight"].T

    def hidden_states(self, ids):
        """What enters each layer, what leaves the last one, and that after the final norm: [which][position][hidden]."""
        states = [self.weights["token_embd.weight"][ids]]
        for index in range(self.layers):
            layer = f"blk.{index}"
            hidden = states[-1] + self.attend(self.normalize(states[-1], layer + ".attn_norm.weight"), layer)
            states.append(hidden + self.feed_forward(self.normalize(hidden, layer + ".ffn_norm.weight"), layer))
        return np.stack([*states, self.normalize(states[-1], "output_norm.weight")])

    def distributions(self, ids):
        """Log-probabilities of every token behind each of ids."""
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        logits = self.hidden_states(ids)[-1] @ head.T
        logits -= logits.max(axis=-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    def logprobs(self, ids):
        """Of ids[1:], each given those before it."""
        return self.distributions(ids)[np.arange(len(ids) - 1), ids[1:]]
