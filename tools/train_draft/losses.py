"""Cross entropy against the target's own distribution."""
import torch

ROWS_AT_ONCE = 512  # rows of logits in memory


class SoftCrossEntropy(torch.autograd.Function):
    """Mean over rows of −Σ p log softmax(x Wᵀ), W fixed. The gradient is made in the forward pass, some rows at a time, so
    that the logits of all rows are never in memory together."""

    @staticmethod
    def forward(ctx, x, teacher, weight):
        gradient, total = torch.empty_like(x), torch.zeros((), device=x.device)
        for begin in range(0, len(x), ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            logits = x[rows] @ weight.T
            normalizer = logits.logsumexp(-1, keepdim=True)
            total += (normalizer.squeeze(-1) - (teacher[rows] * logits).sum(-1)).sum()
            gradient[rows] = ((logits - normalizer).exp_() - teacher[rows]) @ weight
        ctx.save_for_backward(gradient / max(1, len(x)))
        return total / max(1, len(x))

    @staticmethod
    def backward(ctx, upstream):
        return ctx.saved_tensors[0] * upstream, None, None


def soft_cross_entropy(x, teacher, weight):
    """x: rows × hidden; teacher: rows × ids, each row sums to 1; weight: ids × hidden."""
    return SoftCrossEntropy.apply(x, teacher, weight)
