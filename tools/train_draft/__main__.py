"""python -m train_draft TARGET.gguf --out FOLDER --kind medusa|eagle3 --minutes N"""
import argparse
import os
import platform
import sys

import torch

from . import data, folder, generate, report, vocabulary
from .batches import feature_scale
from .budget import GENERATING_TICK_S, Budget
from .evaluation import evaluate
from .heads import ROPE_THETA, Eagle3, Medusa
from .target import read_target
from .training import Task, train

GENERATING_SHARE = 0.4  # of the minutes, where there is no data yet
EAGLE_STEPS = 5         # that are evaluated


def say(line):
    print("train_draft: " + line, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="train_draft", description="Trains a draft head for TARGET on TARGET's own text.")
    parser.add_argument("target", help="the target, a .gguf file")
    parser.add_argument("--out", required=True, help="folder of the head; made if missing")
    parser.add_argument("--kind", choices=("medusa", "eagle3"), default="eagle3")
    parser.add_argument("--minutes", type=float, default=60, help="for generating (if --data has nothing yet) and training")
    parser.add_argument("--data", help="folder of answers and hidden states, kept and reused; default OUT-data")
    parser.add_argument("--tandem", default="tandem", help="the binary that generates; default: of the PATH")
    parser.add_argument("--heads", type=int, default=4, help="of medusa: tokens it drafts; default 4")
    parser.add_argument("--vocabulary", type=int, default=8192, help="tokens an eagle3 head may draft; default 8192")
    parser.add_argument("--intermediate", type=int, help="of eagle3's layer; default the target's, at most 3 times its hidden size")
    parser.add_argument("--threads", type=int, help="of PyTorch on the CPU; default: all cores")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only-data", action="store_true", help="generate for the whole time, train nothing")
    return parser.parse_args()


def make_data(args, where):
    """Seconds that are left for training."""
    have_any = bool(data.train_prefixes(where))
    share = 1.0 if args.only_data else GENERATING_SHARE
    if args.only_data or not have_any:
        data.make_held_out(where, args.tandem, args.target)
        data.make_training(where, args.tandem, args.target, Budget(60 * args.minutes * share, GENERATING_TICK_S), say)
    return 60 * args.minutes * (1.0 if have_any else 1 - share)


def make_head(args, target, answers):
    if args.kind == "medusa":
        return Medusa(target.hidden, args.heads)
    intermediate = args.intermediate or min(target.intermediate, 3 * target.hidden)
    return Eagle3(target.hidden, target.heads, target.kv_heads, target.head_dim, intermediate, target.epsilon,
                  torch.from_numpy(target.final_norm), feature_scale(answers))


def make_task(args, target, answers):
    ids = torch.from_numpy(vocabulary.choose(answers, args.vocabulary, target.vocabulary))
    medusa = args.kind == "medusa"
    return Task(make_head(args, target, answers).to(args.device), torch.from_numpy(target.embedding).to(args.device),
                torch.from_numpy(target.output).float().to(args.device), ids.to(args.device), whole_vocabulary=medusa,
                most_steps=args.heads if medusa else EAGLE_STEPS, device=args.device)


def write_head(args, target, task, layers):
    """Bytes written."""
    weights = {name: value.numpy(force=True) for name, value in task.head.state_dict().items()}
    if args.kind == "medusa":
        return folder.write_medusa(args.out, weights, target)
    return folder.write_eagle3(args.out, weights, target, task.ids.numpy(force=True), layers, ROPE_THETA)


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    if args.threads:
        torch.set_num_threads(args.threads)
    where = args.data or os.path.normpath(args.out) + "-data"
    seconds = make_data(args, where)
    if args.only_data:
        return
    sets, layers = data.read(where)
    target = read_target(args.target)
    task = make_task(args, target, sets["train"])
    covered = vocabulary.coverage(sets["greedy"] + sets["sampled"], task.ids.numpy(force=True))
    say(f"{len(sets['train'])} answers, {data.output_tokens(sets['train'])} tokens; the head has "
        f"{sum(each.numel() for each in task.head.parameters()) / 1e6:.2f} M parameters; its {len(task.ids)} most frequent tokens "
        f"cover {covered:.3f} of the held-out answers")
    curves, effort = train(task, sets["train"], sets["greedy"][::2] + sets["sampled"][::2], seconds, say, args.seed)
    size = write_head(args, target, task, layers)
    acceptance = {"greedy": evaluate(task, sets["greedy"], 0.0),
                  f"T={generate.TEMPERATURE}": evaluate(task, sets["sampled"], generate.TEMPERATURE)}
    report.write(args.out, {
        "kind": args.kind, "target": os.path.basename(args.target), "acceptance": acceptance, "rule": "greedy, coupled",
        "training": {"answers": len(sets["train"]), "output_tokens": data.output_tokens(sets["train"]), **effort},
        "vocabulary": {"tokens": len(task.ids), "trimmed": not task.whole_vocabulary, "held_out_coverage": covered},
        "layers": layers, "parameters": sum(each.numel() for each in task.head.parameters()), "folder_bytes": size,
        "curves": curves, "seed": args.seed, "device": args.device, "threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__}})
    for line in report.table(acceptance):
        print(line)
    print(f"{args.out}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
