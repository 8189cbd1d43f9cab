"""The table of bench/accuracy: what a row says, and the page."""

GOAL = 0.01  # perplexity of the fast path over that of fp32, from 1


def ratio_of(row):
    return row["perplexity"] / row["perplexity_fp32"]


def verdict(row):
    return "met" if abs(row["ratio"] - 1) <= GOAL else "missed"


def kind_of(row):
    """How the kind is told: made files name it, with its share when not all matrices could have it."""
    share = row["share_of_kind"]
    name = row["kind"] if share is None or share == 1 else f"{row['kind']} ({share:.0%}, rest Q8_0)"
    return f"{name} {row['flags']}".strip()


def page(results):
    seen = results["machine"]
    devices = sorted({row["device"] for row in results["rows"]})
    lines = ["# Accuracy per kind", "",
             "Perplexity of the fast path over that of `--dtype fp32` of the same file; goal: within "
             f"{GOAL:.0%}. Made by `bench/accuracy/run`.", "",
             f"Text: the first {results['tokens']:,} tokens of {', '.join(results['texts'])} of /usr/share/common-licenses "
             f"(SHA-256 {results['text_sha256'][:16]}…), in chunks of {results['context']}, each scored from its own beginning; "
             "every token but a chunk's first counts (`tandem perplexity --help`).", "",
             f"{results['date']}, {seen['cpu']}, {seen['cores']} cores, "
             f"{' '.join(seen['instruction_sets'])}; {', '.join(devices)}.", "",
             "± is one standard error over the tokens of the text; both paths see the same text, so the ratio is far surer than "
             "that. Kinds other than the files' own are made from the dequantised file: compare within a row, not down the "
             "column (a Q4 file of a Q4 file loses twice).", "",
             "| model | kind | tokens scored | fp32 | fast | ± | ratio | goal | commit |", "|---|---|---|---|---|---|---|---|---|"]
    for row in results["rows"]:
        lines.append(f"| {row['model']} | {kind_of(row)} | {row['tokens_scored']:,} | {row['perplexity_fp32']:.4f} | "
                     f"{row['perplexity']:.4f} | {row['standard_error']:.2f} | {row['ratio']:.5f} | {verdict(row)} | {row['commit']} |")
    return "\n".join(lines) + "\n"
