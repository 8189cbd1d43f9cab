#!/usr/bin/env python3
"""What idle WebSockets cost: memory of each, and the gaps between events of active streams with and without them.

  bench/idle_sockets.py TANDEM MODEL [--idle 1000] [--active 64] [--tokens 64]

Prints one JSON object. Standard library only. Needs idle + active + 100 file descriptors, for itself and for the server.
"""
import argparse
import asyncio
import base64
import json
import os
import re
import resource
import subprocess
import time

OFFER = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"


class Socket:
    """A WebSocket of the Responses protocol. Frames are masked with zeros, which leaves them as they are."""

    async def open(self, port):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write(("GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"{OFFER}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head, head
        return self

    async def send(self, event):
        text = json.dumps(event).encode()
        assert len(text) < 65536
        length = bytes([0x80 | len(text)]) if len(text) < 126 else bytes([0x80 | 126]) + len(text).to_bytes(2, "big")
        self.writer.write(b"\x81" + length + bytes(4) + text)
        await self.writer.drain()

    async def frame(self):
        """Payload of the next message, compressed ones as they came."""
        head = await self.reader.readexactly(2)
        length = head[1] & 0x7F
        if length >= 126:
            length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8), "big")
        payload = await self.reader.readexactly(length)
        if head[0] & 0x0F == 9:
            return await self.frame()
        return payload


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


async def stream(port, tokens):
    """Milliseconds between the events of one response."""
    socket = await Socket().open(port)
    await socket.send({"type": "response.create", "input": "Tell me a story.", "max_output_tokens": tokens,
                       "ignore_eos": True, "store": False})
    gaps, last = [], None
    deltas = 0
    while deltas < tokens - 2:  # a piece may hold more than one token; the end is told by a longer, compressed event
        payload = await socket.frame()
        now = time.monotonic()
        if payload.startswith(b'{"type":"response.output_text.delta"'):
            if last is not None:
                gaps.append(1000 * (now - last))
            last = now
            deltas += 1
        elif deltas > 0 and not payload.startswith(b"{"):
            break
    socket.writer.close()
    return gaps


async def active(port, count, tokens):
    every = await asyncio.gather(*(stream(port, tokens) for _ in range(count)))
    gaps = [gap for one in every for gap in one]
    return {"events": len(gaps), "p50_ms": round(percentile(gaps, 0.5), 2), "p99_ms": round(percentile(gaps, 0.99), 2)}


async def measure(process, port, arguments):
    await active(port, arguments.active, 8)  # every buffer of the server has its size now
    without = await active(port, arguments.active, arguments.tokens)
    before = resident_kib(process.pid)
    idle = [await Socket().open(port) for _ in range(arguments.idle)]
    opened = resident_kib(process.pid)
    for socket in idle:  # each has been used once, with a compressed answer
        await socket.send({"type": "response.create", "input": "x" * 600, "generate": False, "store": False})
        for _ in range(3):
            await socket.frame()
    used = resident_kib(process.pid)
    beside = await active(port, arguments.active, arguments.tokens)
    for socket in idle:
        socket.writer.close()
    after = await active(port, arguments.active, arguments.tokens)
    return {"idle_sockets": arguments.idle, "active_streams": arguments.active,
            "kib_per_socket_opened": round((opened - before) / arguments.idle, 2),
            "kib_per_socket_used_once": round((used - before) / arguments.idle, 2),
            "gaps_before_idle": without, "gaps_beside_idle": beside, "gaps_after_idle": after}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tandem")
    parser.add_argument("model")
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--active", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    command = [arguments.tandem, "serve", arguments.model, "--port", "0", "--max-model-len", "512"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            port = int(re.search(r"http://[\d.]+:(\d+)", process.stdout.readline()).group(1))
            print(json.dumps(asyncio.run(measure(process, port, arguments)), indent=1))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
