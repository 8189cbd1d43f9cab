"""What a run says about itself: report.json, acceptance.png and loss.png."""
import json
import os

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def table(acceptance):
    """Lines of text: acceptance by position and tokens per pass of the target."""
    lines = []
    for name, found in acceptance.items():
        rates = " ".join("  - " if rate is None else f"{rate:.2f}" for rate in found["acceptance_by_position"])
        tokens = " ".join(f"{value:.2f}" for value in found["tokens_per_pass"].values())
        lines.append(f"{name:12} by position {rates} | tokens per pass, k = 1 and on: {tokens}")
    return lines


def plot_curves(path, curves):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    left.plot(curves["epochs"], curves["training_loss"], "k--", label="training, step 1")
    for step in range(len(curves["held_out"][0])):
        left.plot(curves["epochs"], [check[step][0] for check in curves["held_out"]], label=f"held out, step {step + 1}")
        right.plot(curves["epochs"], [check[step][1] for check in curves["held_out"]], label=f"step {step + 1}")
    left.set_ylabel("cross entropy, nats")
    right.set_ylabel("same best token as the target, held out")
    for axes in (left, right):
        axes.set_xlabel("epochs")
        axes.grid(alpha=0.3)
        axes.legend()
    save(figure, path)


def plot_acceptance(path, acceptance):
    figure, axes = pyplot.subplots(figsize=(5, 4))
    for name, found in acceptance.items():
        rates = [rate for rate in found["acceptance_by_position"] if rate is not None]
        axes.plot(range(1, len(rates) + 1), rates, "o-", label=name)
    axes.set(xlabel="draft", ylabel="accepted, given those before", ylim=(0, 1), xticks=range(1, 6))
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def write(folder, contents):
    """The plots are drawn from what the JSON says."""
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as file:
        json.dump(contents, file, indent=1)
        file.write("\n")
    plot_curves(os.path.join(folder, "loss.png"), contents["curves"])
    plot_acceptance(os.path.join(folder, "acceptance.png"), contents["acceptance"])
