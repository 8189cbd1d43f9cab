"""The trimmed vocabulary of a draft head: the target's tokens that it may propose."""
import numpy as np


def choose(sequences, size, target_size):
    """`size` ids, ascending: those most frequent in the answers; among equals the lowest, which byte-pair merges make
    the most frequent elsewhere."""
    counts = np.zeros(target_size, np.int64)
    for sequence in sequences:
        counts += np.bincount(sequence.tokens[sequence.prompt_tokens:], minlength=target_size)
    order = np.argsort(-counts, kind="stable")
    return np.sort(order[:min(size, target_size)])


def coverage(sequences, ids):
    """Share of the answers' tokens that are among `ids`."""
    output = np.concatenate([sequence.tokens[sequence.prompt_tokens:] for sequence in sequences])
    return float(np.isin(output, ids).mean())


def to_d2t(ids):
    """What the public layout stores: target id − draft id."""
    return ids.astype(np.int64) - np.arange(len(ids), dtype=np.int64)


def to_t2d(ids, target_size):
    mask = np.zeros(target_size, bool)
    mask[ids] = True
    return mask
