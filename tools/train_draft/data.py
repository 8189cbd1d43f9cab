"""The folder of training data: train-NNN-*.safetensors, held-out-greedy-* and held-out-sampled-*. Made once, reused after."""
import glob
import os

from . import dump, generate, prompts

PROMPTS_PER_BATCH = 192
HELD_OUT_PROMPTS = 48  # for greedy and for sampled answers, each


def train_prefixes(folder):
    return sorted(path.removesuffix(generate.DONE)
                  for path in glob.glob(os.path.join(glob.escape(folder), "train-*" + generate.DONE)))


def make_held_out(folder, tandem, target):
    texts = prompts.make_prompts(HELD_OUT_PROMPTS, held_out=True)
    for name, temperature in (("greedy", 0.0), ("sampled", generate.TEMPERATURE)):
        prefix = os.path.join(folder, "held-out-" + name)
        if not os.path.exists(prefix + generate.DONE):
            requests = [generate.request(text, temperature, place) for place, text in enumerate(texts)]
            generate.answer(tandem, target, requests, prefix)


def make_training(folder, tandem, target, budget, say):
    """Batches of answers until the budget is spent; at least one."""
    done = len(train_prefixes(folder))
    while budget.spent() < 1 or done == 0:
        texts = prompts.make_prompts((done + 1) * PROMPTS_PER_BATCH)[done * PROMPTS_PER_BATCH:]
        prefix = os.path.join(folder, f"train-{done:03}")
        generate.answer(tandem, target, generate.mixed(texts, done * PROMPTS_PER_BATCH), prefix)
        done += 1
        say(f"{done * PROMPTS_PER_BATCH} prompts answered after {budget.used:.0f} s")


def read(folder):
    """({"train", "greedy", "sampled"} → sequences with something to learn from, feature layers)."""
    found, layers = {"train": []}, None
    for prefix in train_prefixes(folder):
        sequences, layers = dump.read_dump(prefix)
        found["train"] += sequences
    for name in ("greedy", "sampled"):
        found[name], layers = dump.read_dump(os.path.join(folder, "held-out-" + name))
    return {name: [each for each in sequences if len(each.tokens) - each.prompt_tokens >= 8]
            for name, sequences in found.items()}, layers


def output_tokens(sequences):
    return sum(len(each.tokens) - each.prompt_tokens for each in sequences)
