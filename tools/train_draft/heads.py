"""The heads as they are trained.

Timing, for both: the target has computed position s, so its hidden states up to s are known, and its token s + 1 too. Draft
step j = 1, 2, … proposes token s + 1 + j; the target's own distribution of that token is outputs · (final state of s + j).
Hidden states come as [batch][position][features, then the final state][hidden].
"""
import torch
import torch.nn.functional as F
from torch import nn

INIT_STD = 0.02
ROPE_THETA = 10000.0


class Medusa(nn.Module):
    """Head j: one residual block on the final state, x + silu(W x + b); the target's output matrix reads it. W and b begin
    at zero, so every head begins as the target itself."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(heads))
        for block in self.blocks:
            nn.init.zeros_(block.weight)
            nn.init.zeros_(block.bias)

    def forward(self, states, embedded, steps):
        """One [batch][position][hidden] per step, ready for the output matrix."""
        del embedded
        final = states[:, :, -1]
        return [final + F.silu(block(final)) for block in self.blocks[:steps]]


class RmsNorm(nn.Module):
    def __init__(self, size, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(size)), epsilon

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


def rotate(x, positions):
    """Rotary embedding of [batch][head][position][channel], channel i with channel i + half."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * ROPE_THETA ** (-torch.arange(half, device=x.device) / half)
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([-angles.sin(), angles.sin()], -1)
    return x * cos + x.roll(half, -1) * sin


class Eagle3(nn.Module):
    """One layer over [norm(embedding of token s + j) ; norm(feature)]; the feature is fc(three hidden states) in step 1
    and the layer's own output in later steps (training-time test). `feature_scale` (one value per channel of the three
    states) divides what fc sees and is folded into it when the head is written: the layers' sizes differ by orders.
    `final_norm`, the target's, is where the output norm begins."""

    def __init__(self, hidden, heads, kv_heads, head_dim, intermediate, epsilon, final_norm, feature_scale):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim

        def linear(inputs, outputs):
            return nn.Linear(inputs, outputs, bias=False)
        self.register_buffer("feature_scale", feature_scale)
        self.register_buffer("output_scale", final_norm)
        self.fc = linear(3 * hidden, hidden)
        self.input_layernorm, self.hidden_norm = RmsNorm(hidden, epsilon), RmsNorm(hidden, epsilon)
        self.q_proj = linear(2 * hidden, heads * head_dim)
        self.k_proj, self.v_proj = linear(2 * hidden, kv_heads * head_dim), linear(2 * hidden, kv_heads * head_dim)
        self.o_proj = linear(heads * head_dim, hidden)
        self.post_attention_layernorm = RmsNorm(hidden, epsilon)
        self.gate_proj, self.up_proj = linear(hidden, intermediate), linear(hidden, intermediate)
        self.down_proj = linear(intermediate, hidden)
        self.norm = RmsNorm(hidden, epsilon)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=INIT_STD)
        nn.init.constant_(self.norm.weight, 0.5)

    def project(self, x, positions):
        """Query, key and value: [batch][head][position][channel], keys and values repeated for their group."""
        def split(projected, count):
            return projected.unflatten(-1, (count, self.head_dim)).transpose(1, 2)
        group = self.heads // self.kv_heads
        key = rotate(split(self.k_proj(x), self.kv_heads), positions).repeat_interleave(group, 1)
        value = split(self.v_proj(x), self.kv_heads).repeat_interleave(group, 1)
        return rotate(split(self.q_proj(x), self.heads), positions), key, value

    def attend(self, query, keys, values):
        """Step j of the chain from s sees the step-1 entries up to s and the chain's own entries of steps 2 … j."""
        if len(keys) == 1:
            return F.scaled_dot_product_attention(query, keys[0], values[0], is_causal=True)
        count, scale = query.shape[2], self.head_dim**-0.5
        hidden_from = torch.ones(count, count, dtype=torch.bool, device=query.device).triu(1)
        scores = [(query @ keys[0].transpose(-1, -2) * scale).masked_fill(hidden_from, -torch.inf)]
        scores += [(query * key).sum(-1, keepdim=True) * scale for key in keys[1:]]
        weights = torch.cat(scores, -1).softmax(-1)
        mixed = weights[..., :count] @ values[0]
        for place, value in enumerate(values[1:]):
            mixed = mixed + weights[..., count + place, None] * value
        return mixed

    def layer(self, embedded, feature, step, keys, values):
        x = torch.cat([self.input_layernorm(embedded), self.hidden_norm(feature)], -1)
        positions = torch.arange(x.shape[1], device=x.device) + step - 1
        query, key, value = self.project(x, positions)
        keys.append(key)
        values.append(value)
        hidden = feature + self.o_proj(self.attend(query, keys, values).transpose(1, 2).flatten(2))
        x = self.post_attention_layernorm(hidden)
        return hidden + self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))

    def forward(self, states, embedded, steps):
        """embedded: of the tokens [batch][position][hidden]. One [batch][position][hidden] per step, by s."""
        feature = self.fc(states[:, :, :3].flatten(2) / self.feature_scale)
        keys, values, out = [], [], []
        for step in range(1, steps + 1):
            shifted = F.pad(embedded[:, step:], (0, 0, 0, min(step, embedded.shape[1])))  # token s + step
            feature = self.layer(shifted, feature, step, keys, values)
            out.append(self.norm(feature) * self.output_scale)
        return out
