"""How many drafts a target would accept, read off its own texts: whatever the head is given, the text says what the target
chose there. Rules as in the engine: greedy, and at a temperature the coupled rule, where draft and target add the same
Gumbel noise and a draft is accepted when both chose the same token."""
import numpy as np

DRAFTS = 5


def accepted_lengths(agrees):
    """agrees: [start][draft] of booleans. Drafts accepted from each start: those before the first that differs."""
    return np.cumprod(agrees.astype(np.int64), axis=1).sum(axis=1)


def by_position(lengths, drafts):
    """Acceptance at draft 1, 2, …, of those starts at which all drafts before it were accepted; None where there is none.
    lengths: of starts that have `drafts` tokens of text behind them."""
    rates = []
    for place in range(1, drafts + 1):
        reached = int((lengths >= place - 1).sum())
        rates.append(float((lengths >= place).sum() / reached) if reached else None)
    return rates


def tokens_per_pass(texts, k):
    """Walks each text: a pass gives the accepted drafts, k at most, and one token. texts: lengths by start, per text."""
    passes = tokens = 0
    for lengths in texts:
        at = 0
        while at < len(lengths):
            taken = min(int(lengths[at]), k, len(lengths) - at - 1) + 1
            passes, tokens, at = passes + 1, tokens + taken, at + taken
    return tokens / passes if passes else None


def posterior_noise(log_p, chosen, rng):
    """Gumbel noise per token given that argmax(log_p + noise) was `chosen`. log_p: [row][token], normalised over the whole
    vocabulary even where only some tokens are given, all tokens that are not are then left out; `chosen`: [row], −1 where the
    choice is none of the given. Method: the maximum of all is Gumbel(0) whichever token has it; the others are Gumbels
    truncated at it (Maddison, Tarlow, Minka 2014)."""
    top = rng.gumbel(size=len(log_p))
    free = log_p + rng.gumbel(size=log_p.shape)
    total = -np.logaddexp(-top[:, None], -free)  # truncated: −log(e^−top + e^−free)
    rows = np.flatnonzero(chosen >= 0)
    total[rows, chosen[rows]] = top[rows]
    return total - log_p


def summarize(texts, drafts=DRAFTS):
    """texts: per text, accepted drafts from each start. The rates leave out the last starts, whose text ends too early."""
    whole = [lengths[:max(0, len(lengths) - drafts)] for lengths in texts]
    lengths = np.concatenate(whole) if whole else np.zeros(0, np.int64)
    return {"texts": len(texts), "starts": int(len(lengths)), "acceptance_by_position": by_position(lengths, drafts),
            "tokens_per_pass": {str(k): tokens_per_pass(texts, k) for k in range(1, drafts + 1)}}
