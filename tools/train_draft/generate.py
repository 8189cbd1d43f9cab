"""Lets tandem answer prompts and write down their hidden states."""
import json
import os
import subprocess

GREEDY_SHARE = 1 / 3  # of training prompts; the rest is sampled, which repeats itself less
TEMPERATURE = 0.8
MAX_TOKENS = 200
DONE = ".done"


def request(prompt, temperature, seed):
    return {"messages": [{"role": "user", "content": prompt}], "temperature": temperature, "seed": seed,
            "max_tokens": MAX_TOKENS}


def mixed(prompts, first_seed):
    """Requests of one batch of training prompts."""
    greedy = round(len(prompts) * GREEDY_SHARE)
    return [request(prompt, 0.0 if place < greedy else TEMPERATURE, first_seed + place) for place, prompt in enumerate(prompts)]


def answer(tandem, target, requests, prefix, flags=()):
    """Writes PREFIX.jsonl (requests), PREFIX.answers.jsonl, PREFIX-00001.safetensors and on, and then PREFIX.done: without it
    the others may be half written."""
    os.makedirs(os.path.dirname(os.path.abspath(prefix)), exist_ok=True)
    with open(prefix + ".jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in requests)
    with open(prefix + ".answers.jsonl", "w", encoding="utf-8") as answers:
        subprocess.run([tandem, "generate", target, "--prompts", prefix + ".jsonl", "--output", "jsonl", "--dump-hidden", prefix,
                        *flags], stdout=answers, check=True)
    with open(prefix + DONE, "w", encoding="utf-8"):
        pass
