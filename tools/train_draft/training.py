"""Trains one head on answers whose hidden states are known."""
import dataclasses

import numpy as np
import torch

from .batches import make_batch, shuffled_batches
from .budget import TRAINING_TICK_S, Budget
from .losses import soft_cross_entropy

BATCH_ANSWERS = 4
LEARNING_RATE = 2e-3
NORM_RATE = 3.0             # times the rate of the matrices
WEIGHT_DECAY = 0.05
WARM_UP_STEPS = 40
LONGEST_GRADIENT = 1.0
STEP_WEIGHT = 0.8           # of each further draft step, against the one before
ONE_STEP_SHARE = 0.6        # of the time, before training-time test begins
TEST_STEPS = 3              # draft steps of training-time test
SAMPLED_OTHERS = 2048       # ids outside the frequent ones that a batch also sees, where the head speaks the whole vocabulary
CHECKS = 12                 # of held-out answers, over the run
CHECK_ANSWERS = 16


@dataclasses.dataclass
class Task:
    head: torch.nn.Module
    embedding: torch.Tensor  # fp32 or fp16 [vocabulary][hidden]
    output: torch.Tensor     # fp32 [vocabulary][hidden]
    ids: torch.Tensor        # of the frequent tokens: what the loss is about
    whole_vocabulary: bool   # the head is read by the target's own output matrix
    most_steps: int          # draft steps it can make
    device: str = "cpu"


def steps_now(task, spent):
    """Draft steps of a training step when `spent` of the time is over."""
    if task.whole_vocabulary:  # Medusa: all heads, always
        return task.most_steps
    return 1 if spent < ONE_STEP_SHARE else TEST_STEPS


def loss_weight_matrix(task, rng):
    """Rows of the output matrix that a batch's softmax is over."""
    if not task.whole_vocabulary:
        return task.output[task.ids]
    others = torch.from_numpy(rng.integers(0, len(task.output), SAMPLED_OTHERS)).to(task.device)
    return task.output[torch.cat([task.ids, others]).unique()]


def step_losses(task, batch, steps, weight):
    """Per draft step (loss, what the head gives the output matrix, the target's distribution): rows are starts."""
    hidden = task.head(batch.states, task.embedding[batch.tokens].float(), steps)
    answer, position = batch.starts(1)
    with torch.no_grad():
        place = torch.zeros_like(batch.tokens)
        place[answer, position + 1] = torch.arange(len(answer), device=task.device)
        teacher = (batch.states[answer, position + 1, -1] @ weight.T).softmax(-1)
    out = []
    for step in range(1, steps + 1):
        answer, position = batch.starts(step)
        x, wanted = hidden[step - 1][answer, position], teacher[place[answer, position + step]]
        out.append((soft_cross_entropy(x, wanted, weight), x, wanted))
    return out


def check(task, held_out):
    """(loss, share of starts at which head and target have the same best token) per draft step, over held-out answers."""
    totals, weight = np.zeros((min(task.most_steps, TEST_STEPS), 3)), task.output[task.ids]
    with torch.no_grad():
        for begin in range(0, len(held_out), BATCH_ANSWERS):
            batch = make_batch(held_out[begin:begin + BATCH_ANSWERS], task.device)
            for row, (loss, x, wanted) in zip(totals, step_losses(task, batch, len(totals), weight)):
                same = ((x @ weight.T).argmax(-1) == wanted.argmax(-1)).sum()
                row += (float(loss) * len(x), float(same), len(x))
    return [(loss / max(1, starts), same / max(1, starts)) for loss, same, starts in totals]


def make_optimizer(head):
    matrices = [parameter for parameter in head.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in head.parameters() if parameter.dim() == 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY, "times": 1.0},
                              {"params": vectors, "weight_decay": 0.0, "times": NORM_RATE}], lr=LEARNING_RATE, betas=(0.9, 0.95))


def set_rate(optimizer, step, spent):
    rate = LEARNING_RATE * min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.0, 1 - spent)**0.8
    for group in optimizer.param_groups:
        group["lr"] = rate * group["times"]


def train_batch(task, optimizer, answers, steps, rng):
    batch = make_batch(answers, task.device)
    losses = step_losses(task, batch, steps, loss_weight_matrix(task, rng))
    total = sum(STEP_WEIGHT**place * loss for place, (loss, _, _) in enumerate(losses))
    optimizer.zero_grad()
    total.backward()
    torch.nn.utils.clip_grad_norm_(task.head.parameters(), LONGEST_GRADIENT)
    optimizer.step()
    return float(losses[0][0].detach()), int(batch.lengths.sum())


def train(task, answers, held_out, seconds, say, seed=0):
    """For `seconds`, one batch at least. Gives curves for the report, lists by check, and what was done."""
    rng, optimizer, waiting = np.random.default_rng(seed), make_optimizer(task.head), []
    curves = {"seconds": [], "epochs": [], "training_loss": [], "held_out": []}
    seen, step, running, total = 0, 0, None, sum(len(each.tokens) for each in answers)
    budget = Budget(seconds, TRAINING_TICK_S)
    while (spent := budget.spent()) < 1 or step == 0:
        waiting = waiting or shuffled_batches(answers, BATCH_ANSWERS, rng)
        set_rate(optimizer, step, spent)
        loss, tokens = train_batch(task, optimizer, waiting.pop(), steps_now(task, spent), rng)
        running = loss if running is None else 0.98 * running + 0.02 * loss
        seen, step = seen + tokens, step + 1
        if budget.spent() >= len(curves["seconds"]) / CHECKS:
            checked = check(task, held_out[:CHECK_ANSWERS])
            for name, value in zip(curves, (budget.used, seen / total, running, checked)):
                curves[name].append(value)
            say(f"{budget.used:5.0f} s, {seen / total:.2f} epochs, {seen / budget.used:.0f} tokens/s, loss {running:.3f}; held out: "
                + ", ".join(f"{loss:.3f} ({agree:.3f})" for loss, agree in checked))
    return curves, {"steps": step, "tokens_seen": seen, "epochs": seen / total, "seconds": budget.used}
