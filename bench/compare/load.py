"""The client of every server measured: closed loop, streamed, one connection a request, standard library only.

While requests run it only notes when bytes came; what they said is read afterwards. So it takes little of the cores
that the server computes on, and the same of each.
"""
import asyncio
import json
import random
import re
import statistics
import time

WORDS = ("river stone lantern market engine violin harbour copper winter garden signal bridge forest ledger compass "
         "thunder window orchard rocket pepper canvas meadow anchor mirror").split()
PROMPT_WORDS = 32


def story_prompts(count, seed):
    """Open-ended, none like another, all of nearly one length."""
    random_words = random.Random(seed)
    return [f"{seed}-{index}: a story about a {random_words.choice(WORDS)} and a {random_words.choice(WORDS)}. "
            + " ".join(random_words.choice(WORDS) for _ in range(PROMPT_WORDS)) for index in range(count)]


class Exchange(asyncio.Protocol):
    """One request and the pieces of its answer with their times."""

    def __init__(self, request):
        self.request = request
        self.pieces = []
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        self.started = time.perf_counter()
        transport.write(self.request)

    def data_received(self, data):
        self.pieces.append((time.perf_counter(), data))
        if b"[DONE]" in data[-32:]:
            self.transport.close()

    def connection_lost(self, reason):
        if not self.done.done():
            self.done.set_result(reason)


def body_of(pieces):
    """[(time, bytes)] of a chunked body: each chunk with the time at which its last byte came."""
    raw = b"".join(data for _, data in pieces)
    ends = []
    total = 0
    for when, data in pieces:
        total += len(data)
        ends.append((total, when))
    head, _, _ = raw.partition(b"\r\n\r\n")
    if not re.match(rb"HTTP/1\.1 200 ", head):
        raise RuntimeError(f"the server answered {raw[:300].decode(errors='replace')!r}")
    at = len(head) + 4
    place = 0
    chunks = []
    while at < len(raw):
        line_end = raw.index(b"\r\n", at)
        size = int(raw[at:line_end].split(b";")[0], 16)
        if size == 0:
            break
        begin, at = line_end + 2, line_end + 2 + size + 2
        while place + 1 < len(ends) and ends[place][0] < begin + size:
            place += 1
        chunks.append((ends[place][1], raw[begin:begin + size]))
    return chunks


def events_of(pieces):
    """[(time, decoded JSON)] of a stream of server-sent events."""
    events = []
    rest = b""
    for when, data in body_of(pieces):
        rest += data
        *whole, rest = rest.split(b"\n\n")
        for block in whole:
            if block.startswith(b"data: ") and block != b"data: [DONE]":
                events.append((when, json.loads(block[len(b"data: "):])))
    return events


def said(event):
    """Whether an event brings text."""
    for choice in event.get("choices") or []:
        if choice.get("text") or (choice.get("delta") or {}).get("content"):
            return True
    return False


def read_answer(exchange):
    events = events_of(exchange.pieces)
    times = [when for when, event in events if said(event)]
    usage = next((event["usage"] for _, event in reversed(events) if event.get("usage")), None)
    timings = next((event["timings"] for _, event in reversed(events) if event.get("timings")), {})
    if usage is None:
        last = json.dumps([event for _, event in events[-2:]])
        raise RuntimeError("the server's stream ended without usage: " + last)
    tokens = usage["completion_tokens"]
    end = exchange.pieces[-1][0]
    span = times[-1] - times[0] if len(times) > 1 else 0
    return {"tokens": tokens, "prompt_tokens": usage["prompt_tokens"], "seconds": end - exchange.started,
            "ttft_ms": (times[0] - exchange.started) * 1e3 if times else None,
            "decode_tokens_per_s": (tokens - 1) / span if span > 0 else None,
            "draft_n": timings.get("draft_n"), "draft_n_accepted": timings.get("draft_n_accepted")}


def encode(port, path, fields):
    body = json.dumps({"stream": True, "stream_options": {"include_usage": True}, "temperature": 0, **fields}).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


async def exchange(port, request):
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(lambda: Exchange(request), "127.0.0.1", port)
    await protocol.done
    return protocol


async def closed_loop(port, requests, concurrency):
    todo = list(reversed(requests))
    finished = []

    async def worker():
        while todo:
            finished.append(await exchange(port, todo.pop()))

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return finished, time.perf_counter() - started


def run_load(port, model, prompts, concurrency, tokens, bound_s):
    """Tokens per second of `prompts`, `concurrency` at a time, and the median time to the first token."""
    requests = [encode(port, "/v1/completions", {"model": model, "prompt": prompt, "max_tokens": tokens,
                                                 "ignore_eos": True}) for prompt in prompts]
    own = time.process_time()
    finished, wall = asyncio.run(asyncio.wait_for(closed_loop(port, requests, concurrency), bound_s))
    own = time.process_time() - own
    answers = [read_answer(one) for one in finished]
    made = sum(answer["tokens"] for answer in answers)
    if made != tokens * len(prompts):
        raise RuntimeError(f"the server made {made} tokens where {tokens * len(prompts)} were asked for")
    return {"tokens_per_s": made / wall, "client_percent": 100 * own / wall, "prompt_tokens": sum(answer["prompt_tokens"] for answer in answers),
            "ttft_ms": statistics.median(answer["ttft_ms"] for answer in answers if answer["ttft_ms"] is not None)}


def run_chat(port, model, text, tokens, bound_s, extra):
    """One chat request alone."""
    request = encode(port, "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": text}],
                                                    "max_tokens": tokens, "include_timings": True, **extra})
    return read_answer(asyncio.run(asyncio.wait_for(exchange(port, request), bound_s)))
