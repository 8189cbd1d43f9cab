#!/usr/bin/env python3
"""What idle WebSockets cost: memory of each, and the gaps between events of active streams with and without them.

  bench/idle_sockets.py TANDEM MODEL [--idle 1000] [--active 64] [--tokens 64]

Prints one JSON object. Standard library only. Needs idle + active + 100 file descriptors, for itself and for the server.
An idle socket that the server gives up before the end is a failure, and so is a stream that ends early.
"""
import argparse
import asyncio
import base64
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import time
import zlib

OFFER = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
SPARE_DESCRIPTORS = 100
STEP_BOUND_S = 600  # of each part of the measurement
CLOSE, PING, PONG = 8, 9, 10
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class Closed(Exception):
    pass


class Socket:
    """A WebSocket of the Responses protocol. Frames are masked with zeros, which leaves them as they are."""

    async def open(self, port, offer=OFFER):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write(("GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"{offer}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise Closed(f"no WebSocket but {head!r}")
        return self

    async def send(self, payload, opcode=1):
        size = len(payload)
        assert size < 65536
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
        self.writer.write(bytes([0x80 | opcode]) + length + bytes(4) + payload)
        await self.writer.drain()

    async def create(self, **fields):
        await self.send(json.dumps({"type": "response.create", "store": False, **fields}).encode())

    async def event(self):
        """The next event. Pings are answered on the way."""
        while True:
            first, second = await self.reader.readexactly(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
            payload = await self.reader.readexactly(size)
            opcode = first & 0x0F
            if opcode == PING:
                await self.send(payload, PONG)
            elif opcode == CLOSE:
                raise Closed(f"closed by the server: {payload!r}")
            elif opcode == 1:
                # Without context takeover each message is a stream of its own.
                return json.loads(zlib.decompress(payload + b"\x00\x00\xff\xff\x01\x00\x00\xff\xff", -15)
                                  if first & 0x40 else payload)

    async def until_end(self):
        """Events up to the last one of a response, each with its time."""
        while True:
            event = await self.event()
            yield event, time.monotonic()
            if event["type"] in ENDS:
                return

    async def stay(self):
        """Answers pings for as long as the socket is open."""
        with contextlib.suppress(Closed, asyncio.IncompleteReadError, ConnectionError):
            while True:
                await self.event()

    def close(self):
        self.writer.close()


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def percentile(values, part):
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 2) if ordered else None


async def stream(port, tokens):
    """Milliseconds between the text events of one response."""
    socket = await Socket().open(port, offer="")
    await socket.create(input="Tell me a story.", max_output_tokens=tokens, ignore_eos=True)
    times, last = [], {}
    async for last, now in socket.until_end():
        if last["type"] == "response.output_text.delta":
            times.append(now)
    socket.close()
    made = ((last.get("response") or {}).get("usage") or {}).get("output_tokens")
    if made != tokens:
        raise Closed(f"a stream ended behind {made} of {tokens} tokens: {json.dumps(last)[:300]}")
    return [1000 * (after - before) for before, after in zip(times, times[1:])]


async def active(port, count, tokens):
    every = await asyncio.gather(*(stream(port, tokens) for _ in range(count)))
    gaps = [gap for one in every for gap in one]
    return {"events": len(gaps), "p50_ms": percentile(gaps, 0.5), "p99_ms": percentile(gaps, 0.99)}


async def use_once(sockets):
    """Each gets an answer that is long enough to be compressed."""
    for socket in sockets:
        await socket.create(input="x" * 600, generate=False)
        async for _ in socket.until_end():
            pass


async def measure(process, port, arguments):
    async def part(work):
        return await asyncio.wait_for(work, STEP_BOUND_S)

    await part(active(port, arguments.active, 8))  # every buffer of the server has its size now
    without = await part(active(port, arguments.active, arguments.tokens))
    before = resident_kib(process.pid)
    idle = [await part(Socket().open(port)) for _ in range(arguments.idle)]
    opened = resident_kib(process.pid)
    await part(use_once(idle))
    used = resident_kib(process.pid)
    staying = [asyncio.create_task(socket.stay()) for socket in idle]
    beside = await part(active(port, arguments.active, arguments.tokens))
    lost = sum(task.done() for task in staying)
    for task, socket in zip(staying, idle):
        task.cancel()
        socket.close()
    await asyncio.gather(*staying, return_exceptions=True)
    after = await part(active(port, arguments.active, arguments.tokens))
    each = max(1, arguments.idle)
    return {"idle_sockets": arguments.idle, "idle_sockets_lost": lost, "active_streams": arguments.active,
            "kib_per_socket_opened": round((opened - before) / each, 2),
            "kib_per_socket_used_once": round((used - before) / each, 2),
            "gaps_before_idle": without, "gaps_beside_idle": beside, "gaps_after_idle": after}


def raise_descriptor_limit(wanted):
    """For this process and, inherited, for the server."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard not in (resource.RLIM_INFINITY,) and hard < wanted:
        sys.exit(f"idle_sockets: {wanted} file descriptors are needed, {hard} are allowed; ask for fewer sockets.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else hard, hard))


def started(arguments):
    command = [arguments.tandem, "serve", arguments.model, "--port", "0", "--max-model-len", "512", "--log-level", "warning"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ready = re.search(r"http://[\d.]+:(\d+)", process.stdout.readline())
    if not ready:
        process.kill()
        sys.exit(f"idle_sockets: the server did not start (status {process.wait()}).")
    return process, int(ready.group(1))


def end(process):
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tandem")
    parser.add_argument("model")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--active", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    arguments = parser.parse_args()
    raise_descriptor_limit(arguments.idle + arguments.active + SPARE_DESCRIPTORS)
    process, port = started(arguments)
    try:
        result = asyncio.run(measure(process, port, arguments))
    except (Closed, asyncio.IncompleteReadError, asyncio.TimeoutError, ConnectionError) as problem:
        sys.exit(f"idle_sockets: {type(problem).__name__} {problem}; the server's status is {process.poll()}.")
    finally:
        end(process)
    print(json.dumps(result, indent=1))
    return 1 if result["idle_sockets_lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
