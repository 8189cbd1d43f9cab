"""Runs a head over held-out answers and hands what it proposes to acceptance.py."""
import numpy as np
import torch

from . import acceptance
from .batches import make_batch


def lengths_of_text(task, sequence, ids, temperature, drafts, rng):
    """Drafts accepted from each start of one answer; `temperature` 0: greedy. ids: what the head may propose."""
    batch = make_batch([sequence], task.device)
    hidden = task.head(batch.states, task.embedding[batch.tokens].float(), drafts)
    first, count = sequence.prompt_tokens - 1, len(sequence.tokens)
    noise = noise_of_text(task, batch, sequence, ids, temperature, rng) if temperature > 0 else None
    agrees = np.zeros((max(0, count - 1 - first), drafts), bool)
    for step in range(1, drafts + 1):
        starts = count - 1 - step - first  # those whose token s + 1 + step is in the text
        if starts <= 0:
            break
        logits = (hidden[step - 1][0, first:first + starts] @ task.output[ids].T).numpy(force=True)
        if noise is not None:
            logits = logits / temperature + noise[step:step + starts]
        proposed = ids.numpy(force=True)[logits.argmax(-1)]
        agrees[:starts, step - 1] = proposed == sequence.tokens[first + 1 + step:first + 1 + step + starts]
    return acceptance.accepted_lengths(agrees)


def noise_of_text(task, batch, sequence, ids, temperature, rng):
    """Row t: the noise with which the target chose the token after output position t (from the last prompt token)."""
    first = sequence.prompt_tokens - 1
    logits = batch.states[0, first:-1, -1] @ task.output.T
    log_p = torch.log_softmax(logits / temperature, -1)[:, ids].numpy(force=True).astype(np.float64)
    place = np.full(len(task.output), -1)
    place[ids.numpy(force=True)] = np.arange(len(ids))
    return acceptance.posterior_noise(log_p, place[sequence.tokens[first + 1:]], rng)


def evaluate(task, sequences, temperature, seed=5):
    drafts = min(task.most_steps, acceptance.DRAFTS)
    ids = torch.arange(len(task.output), device=task.device) if task.whole_vocabulary else task.ids
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        texts = [lengths_of_text(task, each, ids, temperature, drafts, rng) for each in sequences]
    return acceptance.summarize(texts, drafts)
