"""Results as one JSON file and one page of tables. Parts that a run did not measure keep their earlier figures."""
import json
import os
import statistics

OWN = "tandem"
SERVING_PEER = "llama.cpp"  # the one that is measured through its server, and with drafts
PEERS = (SERVING_PEER, "OpenVINO GenAI", "vLLM")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"parts": {}}


def write(path, results):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rest = os.path.splitext(path)[0]
    with open(rest + ".json", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    with open(rest + ".md", "w", encoding="utf-8") as file:
        file.write(page(results))


def rounded(value):
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def shown(samples):
    """Median, and the range where there is one."""
    if not samples:
        return "–"
    text = rounded(statistics.median(samples))
    if len(samples) > 1:
        text += f" ({rounded(min(samples))}–{rounded(max(samples))})"
    return text


def ratio(above, below):
    if not above or not below or not statistics.median(below):
        return None
    return statistics.median(above) / statistics.median(below)


def verdict(value, goal):
    if value is None or goal is None:
        return ""
    return f"{goal:g} × " + ("met" if value >= goal else "missed")


def below(samples, limit):
    if limit is None or not samples:
        return ""
    return f"≤ {limit:g} " + ("met" if statistics.median(samples) <= limit else "missed")


def best_peer(samples):
    """The peer with the highest median; None where none was measured."""
    measured = [label for label in PEERS if samples.get(label)]
    return max(measured, key=lambda label: statistics.median(samples[label]), default=None)


def peers_of(part, rows):
    """The peers with a column: measured, or looked for in vain."""
    return [label for label in PEERS
            if label in part.get("absent", {}) or any(row["samples"].get(label) for row in rows)]


def peer_cell(part, row, label):
    samples = row["samples"].get(label)
    if not samples or len(samples) < len(row["samples"].get(OWN, ())):
        reason = part.get("absent", {}).get(label)
        return f"{shown(samples)}, then {reason}" if samples and reason else reason or shown(samples)
    return shown(samples)


def ratio_cell(times, best, peers):
    """Of which peer is said where there are several."""
    if not times:
        return "–"
    return f"{times:.2f} ({best})" if len(peers) > 1 else f"{times:.2f}"


def table_head(peers):
    ratio_name = [] if not peers else ["ratio"] if len(peers) == 1 else ["ratio to the best peer"]
    names = ["", "unit", OWN, *peers, *ratio_name, "goal"]
    return ["|" + "|".join(f" {name} " if name else " " for name in names) + "|", "|" + "---|" * len(names)]


def peer_lines(part):
    """Rows measured against the other programs: the ratio and its goal are of the best of those measured."""
    rows = [row for row in part["rows"] if not row.get("against")]
    if not rows:
        return []
    peers = peers_of(part, rows)
    lines = table_head(peers)
    for row in rows:
        own, best = row["samples"].get(OWN), best_peer(row["samples"])
        times = ratio(own, row["samples"].get(best)) if row["unit"] == "tokens/s" else None
        cells = [row["name"], row["unit"], shown(own), *(peer_cell(part, row, label) for label in peers)]
        if peers:
            cells.append(ratio_cell(times, best, peers))
        lines.append("| " + " | ".join([*cells, verdict(times, row.get("goal")) or below(own, row.get("limit"))]) + " |")
    return lines + [""]


def accepted(row, program):
    details = [one for one in row.get("details", {}).get(program, []) if one.get("draft_n")]
    if not details:
        return ""
    taken, guessed = (sum(one[name] or 0 for one in details) for name in ("draft_n_accepted", "draft_n"))
    return f"{100 * taken / guessed:.0f} %"


def own_lines(part):
    """Rows measured against another row of the same program: drafts against none."""
    rows = [row for row in part["rows"] if row.get("against")]
    if not rows:
        return []
    by_name = {row["name"]: row for row in part["rows"]}
    lines = ["| over plain decoding | tandem | drafts accepted | goal | llama.cpp | drafts accepted |",
             "|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row["name"]):
        plain = by_name[row["against"]]["samples"]
        own, peer = (ratio(row["samples"].get(program), plain.get(program)) for program in (OWN, SERVING_PEER))
        lines.append("| " + " | ".join([row["name"], f"{own:.2f} ×" if own else "–", accepted(row, OWN),
                                        verdict(own, row.get("goal")), f"{peer:.2f} ×" if peer else "–",
                                        accepted(row, SERVING_PEER)]) + " |")
    return lines + [""]


def memory_lines(part):
    """What share of the raw memory read a figure is, where weights are read once a token."""
    raw = [value for value in part["raw_read_gb_s"] if value]
    lines = []
    for row in part["rows"]:
        own = row["samples"].get(OWN)
        if not row.get("model_bytes") or not own or not raw:
            continue
        used = row["model_bytes"] * statistics.median(own) / 1e9
        lines.append(f"{row['name']}: {used:.1f} GB/s of weights (file size × tokens/s), "
                     f"{100 * used / statistics.median(raw):.0f} % of the raw read.")
    return lines + [""] if lines else []


def read_lines(part):
    """What each program read, where not all read the same."""
    reads = part.get("reads", {})
    if len(set(reads.values())) < 2:
        return []
    return ["Read: " + ", ".join(f"{label} {name}" for label, name in reads.items()) + ".", ""]


def page(results):
    machine = results.get("machine", {})
    versions = "; ".join(f"{label}: {version}" for label, version in results.get("programs", {}).items())
    lines = ["# tandem and its peers, side by side", "",
             "Written by `bench/compare/run`; how to read it: [docs/benchmarks.md](../../docs/benchmarks.md). Medians, the "
             "range of all rounds in brackets.", "",
             f"Machine: {machine.get('cpu')}, {machine.get('cores')} cores, {machine.get('memory_gib')} GiB, "
             f"{' '.join(machine.get('instruction_sets', []))}; {machine.get('threads')} threads. {versions}.", ""]
    for name, part in results["parts"].items():
        raw = ", ".join(rounded(value) for value in part["raw_read_gb_s"] if value) or "not measured"
        lines += [f"## {name}", "",
                  f"{part['date']}, commit {part['commit']}, {part['rounds']} rounds, {part['seconds']:.0f} s; raw memory "
                  f"read before and after: {raw} GB/s; others took {part['others_percent']:g} % of the cores before.", ""]
        lines += [f"* {note}" for note in part["notes"]] + ([""] if part["notes"] else [])
        lines += peer_lines(part) + own_lines(part) + read_lines(part) + memory_lines(part)
    return "\n".join(lines).rstrip() + "\n"
