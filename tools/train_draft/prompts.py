"""Prompts from the bundled lists, some of them held out: no topic or task of a held-out prompt is in a training prompt."""
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
HOLD_OUT_EVERY = 8  # of the lists' lines
LANGUAGES = ("Python", "Python", "JavaScript", "C", "Java", "C++", "Rust", "Go")
CODE_TEMPLATES = ("Write a {language} function that {task}.",
                  "Write a {language} program that {task}. Add comments.",
                  "Show {language} code that {task}, and explain each line.",
                  "Write a unit test in {language} for a function that {task}.")
SUMS = ("What is {a} plus {b}? Show your work.",
        "A shop sells {a} apples a day for {b} cents each. How much does it earn in a week?",
        "A train travels {a} miles in {b} minutes. How fast is it?",
        "List the numbers from {a} to {b}.")
MOST_MISSES = 2000  # draws in a row that gave nothing new: the lists are used up
SHARE_OF_TOPICS, SHARE_OF_CODE = 0.70, 0.25  # the rest are sums


def read_lines(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def divide(lines):
    """(kept for training, held out)."""
    held_out = lines[HOLD_OUT_EVERY - 1::HOLD_OUT_EVERY]
    return [line for line in lines if line not in set(held_out)], held_out


def one_prompt(topics, templates, tasks, draw):
    kind = draw.random()
    if kind < SHARE_OF_TOPICS:
        return draw.choice(templates).format(draw.choice(topics))
    if kind < SHARE_OF_TOPICS + SHARE_OF_CODE:
        return draw.choice(CODE_TEMPLATES).format(language=draw.choice(LANGUAGES), task=draw.choice(tasks))
    return draw.choice(SUMS).format(a=draw.randint(2, 60), b=draw.randint(2, 90))


def make_prompts(count, held_out=False, seed=1):
    """`count` different prompts in an order that `seed` fixes; a shorter list is the beginning of a longer one."""
    part = 1 if held_out else 0
    topics, tasks = divide(read_lines("topics.txt"))[part], divide(read_lines("tasks.txt"))[part]
    templates = read_lines("templates.txt")
    draw = random.Random(f"{seed} {held_out}")
    prompts, misses = {}, 0
    while len(prompts) < count and misses < MOST_MISSES:
        before = len(prompts)
        prompts[one_prompt(topics, templates, tasks, draw)] = None
        misses = misses + 1 if len(prompts) == before else 0
    if len(prompts) == count:
        return list(prompts)
    raise ValueError(f"the lists do not give {count} different prompts; ask for fewer or add lines to topics.txt")
