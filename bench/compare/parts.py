"""The parts of the comparison. Each alternates the programs and notes one sample a round and program."""
import contextlib
import dataclasses
import os
import time

import load
from programs import Unavailable

SMALL = "smollm2-135m"
MIDDLE = "qwen2.5-coder-1.5b"
DRAFT = "qwen2.5-coder-0.5b"
OWN = "tandem"


@dataclasses.dataclass(frozen=True)
class Settings:
    rounds: int = 3
    bound_s: int = 120            # of one measurement
    small_tokens: int = 128       # SmolLM2, one request
    small_prompt: int = 512
    served_tokens: int = 64
    served_at_once: tuple = (1, 4, 16, 32)
    batch_prompt: int = 32
    small_batches: tuple = (4, 16, 32)
    middle_batches: tuple = (16,)
    middle_tokens: int = 32
    middle_prompt: int = 256
    middle_served_tokens: int = 24
    middle_at_once: tuple = (8, 16)
    chat_tokens: int = 64
    more_drafts: tuple = (3, 5)   # beside DRAFTS, in the first round only


FULL = Settings()
QUICK = dataclasses.replace(FULL, rounds=1, middle_tokens=24, chat_tokens=48, more_drafts=())
TINY = Settings(rounds=1, bound_s=300, small_tokens=4, small_prompt=32, served_tokens=4, served_at_once=(1, 2),
                batch_prompt=4, small_batches=(2,), middle_batches=(2,),
                middle_tokens=2, middle_prompt=16, middle_served_tokens=2, middle_at_once=(2,), chat_tokens=6,
                more_drafts=())
DRAFTS = 4


@dataclasses.dataclass
class Row:
    name: str
    unit: str
    samples: dict = dataclasses.field(default_factory=dict)  # program → one value a round
    details: dict = dataclasses.field(default_factory=dict)  # program → one object a round
    goal: float = None      # of the ratio to the best other program, or of what `against` names
    limit: float = None     # of the value itself, which should be lower
    against: str = None     # the row of the same program that this one is compared with
    model_bytes: int = 0    # weights read per token, where the raw memory read bounds the figure

    def note(self, program, value, **details):
        self.samples.setdefault(program, []).append(value)
        if details:
            self.details.setdefault(program, []).append(details)


class Comparison:
    def __init__(self, settings, programs, models_folder, say, deadline):
        self.settings, self.programs, self.models_folder, self.say = settings, programs, models_folder, say
        self.deadline = deadline  # of time.monotonic(): no new round begins behind it
        self.rows = {}
        self.notes = []
        self.reads = {}   # program → name of the file or folder that it read
        self.absent = {}  # program → "missing" or "failed": not asked again in this part

    def model(self, name):
        path = os.path.join(self.models_folder, name + ".gguf")
        if not os.path.isfile(path):
            raise Unavailable(f"there is no {name}.gguf in the models' folder; fetch it, or name the folder with "
                              "--models.")
        return path

    def row(self, name, unit="tokens/s", **fields):
        return self.rows.setdefault(name, Row(name, unit, **fields))

    def turns(self):
        """(round, program), the order turned round each time, so that no program always follows the other."""
        for number in range(self.settings.rounds):
            if time.monotonic() > self.deadline:
                self.notes.append(f"time was up behind {number} rounds")
                return
            for program in self.programs if number % 2 == 0 else reversed(self.programs):
                yield number, program

    def measure(self, row, program, value, **details):
        row.note(program.label, value, **details)
        self.say(f"{program.label:<14} {row.name:<44} {value:10.2f} {row.unit}")

    def attempt(self, row, program, path, measured):
        """Notes what `measured` returns. A peer that cannot be measured is left out of the part; tandem ends it."""
        if program.label in self.absent:
            return
        try:
            self.reads[program.label] = os.path.basename(program.reads(path))
            self.measure(row, program, measured())
        except (Unavailable, RuntimeError, OSError) as reason:
            if program.label == OWN:
                raise
            missing = isinstance(reason, Unavailable)
            self.absent[program.label] = "missing" if missing else "failed"
            self.notes.append(str(reason) if missing else f"{program.label} failed: {reason}")


@contextlib.contextmanager
def running(servers):
    """Servers started one after the other, each paused until its turn."""
    started = {}
    try:
        for key, start in servers.items():
            started[key] = start()
            started[key].pause()
        yield started
    finally:
        for server in started.values():
            server.stop()


@contextlib.contextmanager
def turn_of(server):
    server.resume()
    try:
        yield server
    finally:
        server.pause()


# --- engine alone -----------------------------------------------------------------------------------------------


def engine_part(run, name, tokens, goal):
    path = run.model(name)
    row = run.row(f"{name}, engine alone, 1 request", goal=goal, model_bytes=os.path.getsize(path))
    for _, program in run.turns():
        run.attempt(row, program, path, lambda: program.decode_speed(path, tokens, run.settings.bound_s))


def prefill_part(run, name, tokens, rounds, goal):
    path = run.model(name)
    row = run.row(f"{name}, prefill of {tokens}", goal=goal)
    for _, program in run.turns():
        run.attempt(row, program, path, lambda: program.prefill_speed(path, tokens, rounds, run.settings.bound_s))


def batch_part(run, name, batches, tokens, goals):
    """Each program's own interface for batches, no server between: the prompts' time counts, as it does when served."""
    path = run.model(name)
    prompt = run.settings.batch_prompt
    for _, program in run.turns():
        for count in batches:
            row = run.row(f"{name}, engine alone, {count} at once", goal=goals.get(count))
            run.attempt(row, program, path,
                        lambda: program.batch_speed(path, count, prompt, tokens, run.settings.bound_s))


# --- through the server -----------------------------------------------------------------------------------------


def served_requests(at_once):
    """Two waves, that joining and leaving be measured too; four of one alone."""
    return 4 if at_once == 1 else 2 * at_once


def server_part(run, name, at_once, tokens, requests, goals):
    path = run.model(name)
    slots = max(at_once)
    starts = {program.label: (lambda program=program: program.serve(path, slots)) for program in run.programs}
    with running(starts) as servers:
        for program in run.programs:
            warm_up(run, servers[program.label], tokens)
        for number, program in run.turns():
            server = servers[program.label]
            for count in at_once:
                row = run.row(f"{name}, served, {count} at once", goal=goals.get(count))
                prompts = load.story_prompts(requests(count), 1000 * number + count)
                with turn_of(server):
                    got = load.run_load(server.port, server.model, prompts, count, tokens, run.settings.bound_s)
                run.measure(row, program, got.pop("tokens_per_s"), **got)
        note_processes(run, name, servers)


def warm_up(run, server, tokens):
    with turn_of(server):
        load.run_load(server.port, server.model, load.story_prompts(1, 1), 1, min(tokens, 8), run.settings.bound_s)


def note_processes(run, name, servers):
    memory = run.row(f"{name}, served, memory now", "MiB")
    highest = run.row(f"{name}, served, memory at its highest", "MiB")
    start = run.row(f"{name}, served, start until ready", "s")
    for program in run.programs:
        now, peak = servers[program.label].resident_mib()
        run.measure(memory, program, now)
        run.measure(highest, program, peak)
        run.measure(start, program, servers[program.label].start_seconds)


# --- speculation ------------------------------------------------------------------------------------------------

INVENTORY = '''class Inventory:
    def __init__(self):
        self.items = {}

    def add(self, name, count):
        if name in self.items:
            self.items[name] += count
        else:
            self.items[name] = count

    def remove(self, name, count):
        if name not in self.items:
            raise KeyError(name)
        if self.items[name] < count:
            raise ValueError("not enough " + name)
        self.items[name] -= count
'''
CHATS = {
    "edit": "Rename the method add to put and return the whole class, code only:\n```python\n" + INVENTORY + "```",
    "write": "Write a Python function that parses a CSV line with quoted fields.",
    "prose": "Explain in a few sentences what a message queue is good for.",
}
SPECULATION_GOALS = {"edit": 3.5, "write": 1.05, "prose": 1.05}  # of the best source over plain decoding


def tandem_modes(settings):
    def drafts(method, count):
        return {"speculative": {"method": method, "num_speculative_tokens": count, "adaptive": False}}
    modes = {"off": {"speculative": False}, "ngram": drafts("ngram", DRAFTS),
             f"draft k={DRAFTS}": drafts("draft_model", DRAFTS), "adaptive": {"speculative": {"adaptive": True}}}
    return modes, {f"draft k={count}": drafts("draft_model", count) for count in settings.more_drafts}


def speculation_servers(run, path, draft):
    """Server and mode → how to start it. llama.cpp has one mode a server, tandem one a request."""
    starts = {}
    for program in run.programs:
        if program.label == "tandem":
            starts["tandem"] = lambda program=program: program.serve(
                path, 4, draft, ["--speculative-config", '{"adaptive": true}'])
            continue
        count = str(DRAFTS)
        starts["off"] = lambda program=program: program.serve(path, 1)
        starts["ngram"] = lambda program=program: program.serve(
            path, 1, extra=["--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "3",
                            "--spec-ngram-simple-size-m", count])
        starts[f"draft k={DRAFTS}"] = lambda program=program: program.serve(path, 1, draft,
                                                                            ["--spec-draft-n-max", count])
    return starts


def chat(run, program, server, kind, mode, extra):
    row = run.row(f"{MIDDLE}, {kind}, {mode}", against=None if mode == "off" else f"{MIDDLE}, {kind}, off",
                  goal=None if mode == "off" else SPECULATION_GOALS[kind])
    with turn_of(server):
        got = load.run_chat(server.port, server.model, CHATS[kind], run.settings.chat_tokens, run.settings.bound_s,
                            extra)
    if got["decode_tokens_per_s"] is None:
        raise RuntimeError(f"{program.label} answered {kind} with fewer than two pieces of text")
    run.measure(row, program, got["decode_tokens_per_s"], tokens=got["tokens"], draft_n=got["draft_n"],
                draft_n_accepted=got["draft_n_accepted"])


def speculation_part(run):
    settings = run.settings
    path, draft = run.model(MIDDLE), run.model(DRAFT)
    modes, more = tandem_modes(settings)
    with running(speculation_servers(run, path, draft)) as servers:
        for key, server in servers.items():
            if key != "tandem":
                warm_up(run, server, 4)
        if "tandem" in servers:
            warm_up(run, servers["tandem"], 4)
        for number, program in run.turns():
            for mode, extra in {**modes, **(more if number == 0 and program.label == "tandem" else {})}.items():
                for kind in CHATS:
                    if program.label == "tandem":
                        # Past answers are not to be drawn on: each of these chats was answered before.
                        alone = {"cache_salt": f"{number} {mode} {kind}"}
                        chat(run, program, servers["tandem"], kind, mode, {**extra, **alone})
                    elif mode in servers:
                        chat(run, program, servers[mode], kind, mode, {})


# --- the engine's own part --------------------------------------------------------------------------------------


OVERHEAD_PERCENT = 2


def overhead_part(run):
    """Wall time of a step less the device's, from the engine's own histograms; llama.cpp has no such figure."""
    path = run.model(SMALL)
    for program in run.programs:
        if program.label != "tandem":
            continue
        for sequences in (1, 16):
            for _ in range(min(run.settings.rounds, 2)):
                got = program.bench(path, run.settings.bound_s, 16, run.settings.small_tokens, 2, sequences)
                overhead, step = got["engine_overhead_ms"], got["step_ms"]
                name = f"{SMALL}, engine overhead a step, {sequences} at once"
                run.measure(run.row(name + ", median", "ms"), program, overhead["p50"])
                run.measure(run.row(name + ", p99", "ms"), program, overhead["p99"])
                share = run.row(name + ", median of a step", "%", limit=OVERHEAD_PERCENT)
                run.measure(share, program, 100 * overhead["p50"] / step["p50"],
                            step_ms=step, engine_overhead_ms=overhead)
                run.measure(run.row(name + ", sum over all steps", "%"), program, 100 * got["engine_overhead_share"])


PARTS = {
    "smollm2-engine": lambda run: engine_part(run, SMALL, run.settings.small_tokens, 1.2),
    "smollm2-prefill": lambda run: prefill_part(run, SMALL, run.settings.small_prompt, 3, 2.0),
    "smollm2-batch": lambda run: batch_part(run, SMALL, run.settings.small_batches, run.settings.served_tokens,
                                            {4: 2.5, 16: 2.5, 32: 3.0}),
    "smollm2-server": lambda run: server_part(run, SMALL, run.settings.served_at_once, run.settings.served_tokens,
                                              served_requests, {1: 1.4, 4: 2.5, 16: 2.5, 32: 3.0}),
    "overhead": overhead_part,
    "qwen-engine": lambda run: engine_part(run, MIDDLE, run.settings.middle_tokens, 1.2),
    "qwen-prefill": lambda run: prefill_part(run, MIDDLE, run.settings.middle_prompt, 1, 2.5),
    "qwen-batch": lambda run: batch_part(run, MIDDLE, run.settings.middle_batches, run.settings.middle_served_tokens,
                                         {16: 3.0}),
    "qwen-server": lambda run: server_part(run, MIDDLE, run.settings.middle_at_once, run.settings.middle_served_tokens,
                                           lambda at_once: at_once, {16: 3.0}),
    "speculation": speculation_part,
}
ENGINE_PARTS = {"smollm2-engine", "smollm2-prefill", "smollm2-batch", "qwen-engine", "qwen-prefill", "qwen-batch"}
