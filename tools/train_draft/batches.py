"""Answers as padded tensors."""
import dataclasses

import numpy as np
import torch
import torch.nn.functional as F


@dataclasses.dataclass
class Batch:
    states: torch.Tensor         # fp32 [answer][position][features, final][hidden]; 0 behind an answer's end
    tokens: torch.Tensor         # int64 [answer][position]
    lengths: torch.Tensor        # int64 [answer]
    prompt_tokens: torch.Tensor  # int64 [answer]

    def starts(self, step):
        """(answer, position s) of every start in the output whose token s + 1 + step is in the text."""
        position = torch.arange(self.tokens.shape[1], device=self.tokens.device)[None]
        wanted = (position >= self.prompt_tokens[:, None] - 1) & (position + 1 + step < self.lengths[:, None])
        return wanted.nonzero(as_tuple=True)


def to_floats(bits):
    return torch.from_numpy(np.array(bits)).view(torch.bfloat16).float()


def make_batch(sequences, device="cpu"):
    longest = max(len(each.tokens) for each in sequences)
    states = [F.pad(to_floats(each.states), (0, 0, 0, 0, 0, longest - len(each.tokens))) for each in sequences]
    tokens = [F.pad(torch.from_numpy(each.tokens.astype(np.int64)), (0, longest - len(each.tokens))) for each in sequences]
    return Batch(torch.stack(states).to(device), torch.stack(tokens).to(device),
                 torch.tensor([len(each.tokens) for each in sequences], device=device),
                 torch.tensor([each.prompt_tokens for each in sequences], device=device))


def shuffled_batches(sequences, size, rng):
    """All answers once, those of like length together, so that little is padding; batches in random order."""
    order = sorted(rng.permutation(len(sequences)), key=lambda place: len(sequences[place].tokens) // 32)
    groups = [order[begin:begin + size] for begin in range(0, len(order), size)]
    return [[sequences[place] for place in groups[group]] for group in rng.permutation(len(groups))]


def feature_scale(sequences, most=64):
    """Root mean square of every channel of the three features, over the answers of `most` sequences; fp32, above 0."""
    squares, count = 0.0, 0
    for each in sequences[:most]:
        features = to_floats(each.states[each.prompt_tokens - 1:])[:, :3].flatten(1)
        squares, count = squares + features.square().sum(0), count + len(features)
    return (squares / max(1, count)).sqrt().clamp(min=1e-3)
