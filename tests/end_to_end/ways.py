"""One question asked over every way in, and its answer in one shape.

An answer: text, token_ids, prompt_token_ids, finish_reason, stop_reason, usage, timings, pieces (texts in order of
arrival), logprobs ([(logprob, [alternatives, descending], bytes or None)] where the way gives them).
"""
import base64
import http.client
import json
import os
import socket
import struct
import subprocess

from serving import TANDEM

CHUNK = 1 << 16


def drafts(k, method="draft_model"):
    if k == 0:
        return {"speculative": False}
    return {"speculative": {"method": method, "num_speculative_tokens": k, "adaptive": False}}


class WebSocket:
    """Frames of any length; one thread."""

    def __init__(self, server, timeout=60, path="/ws"):
        self.socket = socket.create_connection((server.host, server.port), timeout=timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n", 1)[0], head

    def more(self):
        received = self.socket.recv(CHUNK)
        if not received:
            raise http.client.RemoteDisconnected("the WebSocket was closed")
        self.buffer += received

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def send(self, message, opcode=1):
        payload = message if isinstance(message, bytes) else message.encode()
        if len(payload) < 126:
            size = struct.pack("!B", 0x80 | len(payload))
        elif len(payload) < 1 << 16:
            size = struct.pack("!BH", 0x80 | 126, len(payload))
        else:
            size = struct.pack("!BQ", 0x80 | 127, len(payload))
        mask = os.urandom(4)
        stretched = (mask * (len(payload) // 4 + 1))[:len(payload)]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(stretched, "big")).to_bytes(len(payload), "big")
        self.socket.sendall(bytes([0x80 | opcode]) + size + mask + masked)

    def receive(self):
        """The next text message. Strict UTF-8, as a browser has it."""
        while True:
            first, second = self.take(2)
            size = second & 0x7F
            if size == 126:
                size, = struct.unpack("!H", self.take(2))
            elif size == 127:
                size, = struct.unpack("!Q", self.take(8))
            payload = self.take(size)
            if first & 0x0F == 1:
                return payload.decode("utf-8")
            if first & 0x0F == 8:
                raise http.client.RemoteDisconnected(f"closed: {payload!r}")

    def close(self):
        self.socket.close()


def post_lines(server, path, fields):
    """Lines of a streamed answer, decoded strictly."""
    connection = server.connect()
    try:
        connection.request("POST", path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            yield line.decode("utf-8").rstrip("\n")
    finally:
        connection.close()


def sse(server, path, fields):
    ended = False
    for line in post_lines(server, path, fields):
        assert not ended or not line, line
        if not line.startswith("data: "):
            continue
        ended = line == "data: [DONE]"
        if not ended:
            yield json.loads(line[len("data: "):])
    assert ended, "no [DONE]"


def whole(server, path, fields):
    status, answer = server.post(path, fields)
    assert status == 200, (status, answer)
    return answer


def completion_logprobs(part):
    """The map of alternatives names the chosen token even when it is none of them."""
    out = []
    for value, top in zip(part["token_logprobs"], part["top_logprobs"]):
        out.append((value, sorted(top.values(), reverse=True) if top else [], None))
    return out


def chat_logprobs(part):
    return [(entry["logprob"], [other["logprob"] for other in entry["top_logprobs"]], bytes(entry["bytes"]))
            for entry in part["content"]]


def map_logprobs(entries, ids):
    """vLLM's maps of the chosen token and its alternatives, by id; their text is no bytes."""
    assert len(entries) == len(ids), (entries, ids)
    return [(entry[str(token)]["logprob"], sorted((one["logprob"] for one in entry.values()), reverse=True), None)
            for token, entry in zip(ids, entries)]


def empty():
    return {"text": "", "token_ids": [], "logprobs": [], "pieces": [], "usage": None, "timings": None}


def add_choice(out, choice, text, logprobs_of):
    out["text"] += text
    out["pieces"].append(text)
    out["token_ids"] += choice["token_ids"]
    if choice.get("logprobs"):
        out["logprobs"] += logprobs_of(choice["logprobs"])
    if choice.get("finish_reason") is not None:
        assert "finish_reason" not in out, "a second finish_reason"
        out["finish_reason"], out["stop_reason"] = choice["finish_reason"], choice["stop_reason"]


def completions(server, prompt, stream, fields):
    body = {"model": server.name, "prompt": prompt, "return_token_ids": True, "include_timings": True, **fields}
    out = empty()
    if not stream:
        answer = whole(server, "/v1/completions", body)
        add_choice(out, answer["choices"][0], answer["choices"][0]["text"], completion_logprobs)
        return {**out, "prompt_token_ids": answer["choices"][0]["prompt_token_ids"], "usage": answer["usage"],
                "timings": answer["timings"]}
    for event in sse(server, "/v1/completions", {**body, "stream": True, "stream_options": {"include_usage": True}}):
        out["usage"] = event.get("usage") or out["usage"]
        out["timings"] = event.get("timings") or out["timings"]
        for choice in event["choices"]:
            out.setdefault("prompt_token_ids", choice.get("prompt_token_ids"))
            add_choice(out, choice, choice["text"], completion_logprobs)
    return out


def chat(server, prompt, stream, fields):
    body = {"model": server.name, "messages": [{"role": "user", "content": prompt}], "return_token_ids": True,
            "include_timings": True, **fields}
    if "logprobs" in body:
        body["logprobs"], body["top_logprobs"] = True, body["logprobs"]
    out = empty()
    if not stream:
        answer = whole(server, "/v1/chat/completions", body)
        choice = answer["choices"][0]
        add_choice(out, choice, choice["message"]["content"], chat_logprobs)
        return {**out, "prompt_token_ids": answer["prompt_token_ids"], "usage": answer["usage"], "timings": answer["timings"]}
    for event in sse(server, "/v1/chat/completions", {**body, "stream": True, "stream_options": {"include_usage": True}}):
        out["usage"] = event.get("usage") or out["usage"]
        out["timings"] = event.get("timings") or out["timings"]
        if "prompt_token_ids" in event:
            out["prompt_token_ids"] = event["prompt_token_ids"]
        for choice in event["choices"]:
            add_choice(out, {"token_ids": [], **choice}, choice["delta"].get("content", ""), chat_logprobs)
    return out


def generate(server, prompt, stream, fields):
    """Its text starts with the prompt; it says no finish_reason."""
    body = {"model": server.name, "prompt": prompt, "return_token_ids": True, "include_timings": True, **fields}
    lines = post_lines(server, "/generate", {**body, "stream": True}) if stream else None
    answers = [json.loads(line) for line in lines if line] if stream else [whole(server, "/generate", body)]
    out = {**empty(), "token_ids": answers[-1]["token_ids"][0], "prompt_token_ids": answers[-1]["prompt_token_ids"][0],
           "timings": answers[-1]["timings"]}
    told = [entry for answer in answers for entry in answer.get("logprobs", [[]])[0]]
    out["logprobs"] = map_logprobs(told, out["token_ids"]) if "logprobs" in fields else []
    shown = prompt if isinstance(prompt, str) else server.detokenize(prompt)
    so_far = ""
    for answer in answers:
        assert answer["text"][0].startswith(shown + so_far), "the cumulative text shrank or changed"
        out["pieces"].append(answer["text"][0][len(shown + so_far):])
        so_far = answer["text"][0][len(shown):]
    return {**out, "text": so_far}


def frames(server, prompt, _, fields):
    """/ws: always streamed."""
    lane = WebSocket(server)
    try:
        lane.send(json.dumps({"id": 7, "prompt": prompt, "include_timings": True, **fields}))
        out = empty()
        while "finish_reason" not in out:
            frame = json.loads(lane.receive())
            assert frame["id"] == 7 and "error" not in frame, frame
            add_choice(out, frame, frame["text"], lambda told, ids=frame["token_ids"]: map_logprobs(told, ids))
            out["usage"], out["timings"] = frame.get("usage"), frame.get("timings")
        return out
    finally:
        lane.close()


def response_fields(prompt, fields):
    body = {"input": prompt, "return_token_ids": True, "include_timings": True, **fields}
    if "logprobs" in body:
        body["include"], body["top_logprobs"] = ["message.output_text.logprobs"], body.pop("logprobs")
    return body


def response_answer(response, pieces):
    """Of a response object that has ended; `pieces` are its texts in order of arrival."""
    part = response["output"][0]["content"][0]
    assert len(response["output"]) == 1 and part["text"] == "".join(pieces), response["output"]
    wanted = {"stop": "completed", "cancelled": "cancelled"}.get(response["finish_reason"], "incomplete")
    assert response["status"] == wanted, response
    used = response["usage"]
    usage = {"prompt_tokens": used["input_tokens"], "completion_tokens": used["output_tokens"],
             "total_tokens": used["total_tokens"], "prompt_tokens_details": used["input_tokens_details"],
             "completion_tokens_details": used["output_tokens_details"]}
    return {"text": part["text"], "pieces": pieces, "usage": usage, "logprobs": chat_logprobs({"content": part["logprobs"]}),
            **{name: response[name] for name in ("token_ids", "prompt_token_ids", "finish_reason", "stop_reason", "timings")}}


def responses(server, prompt, _, fields):
    answer = whole(server, "/v1/responses", response_fields(prompt, fields))
    return response_answer(answer, [answer["output"][0]["content"][0]["text"]])


def response_events(server, prompt, _, fields):
    """/v1/responses as a WebSocket: always streamed."""
    lane = WebSocket(server, path="/v1/responses")
    try:
        lane.send(json.dumps({"type": "response.create", **response_fields(prompt, fields)}))
        pieces = []
        for number in range(1 << 20):
            event = json.loads(lane.receive())
            assert event["type"] != "error" and event["sequence_number"] == number, event
            if event["type"] == "response.output_text.delta":
                pieces.append(event["delta"])
            if event["type"] in ("response.completed", "response.incomplete", "response.failed"):
                return response_answer(event["response"], pieces)
        raise AssertionError("no end")
    finally:
        lane.close()


def offline(model, requests, *flags):
    """`tandem generate` of many requests at once; answers in their order."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    finished = subprocess.run([TANDEM, "generate", model, "--prompts", "-", "--output", "jsonl", *flags], input=lines,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr[-1000:]
    answers = []
    for line in finished.stdout.splitlines():
        answer = json.loads(line)
        choice = answer["outputs"][0]
        logprobs = [(entry["logprob"], [other["logprob"] for other in entry["top"]], None)
                    for entry in choice.get("logprobs", [])]
        answers.append({**choice, "prompt_token_ids": answer["prompt_token_ids"], "usage": answer["usage"],
                        "timings": answer["timings"], "logprobs": logprobs, "pieces": [choice["text"]],
                        "prompt_logprobs": answer.get("prompt_logprobs")})
    return answers


# name → (function, streamed)
WAYS = {"completions": (completions, False), "completions streamed": (completions, True), "chat": (chat, False),
        "chat streamed": (chat, True), "generate": (generate, False), "generate streamed": (generate, True),
        "ws": (frames, True),
        # They render their prompts as chats do.
        "chat responses": (responses, False), "chat responses socket": (response_events, True)}


def ask(server, way, prompt, **fields):
    function, stream = WAYS[way]
    return function(server, prompt, stream, fields)


def score(server, ids, top=5, **fields):
    """ORACLE's log-probabilities of ids[1:], none drafted, nothing cached: [(logprob, [alternatives, descending])]."""
    answer = whole(server, "/v1/completions", {"model": server.name, "prompt": ids, "max_tokens": 0,
                                               "prompt_logprobs": top, **fields})
    entries = answer["choices"][0]["prompt_logprobs"]
    assert entries[0] is None and len(entries) == len(ids)
    out = []
    for token, entry in zip(ids[1:], entries[1:]):
        alternatives = sorted((one["logprob"] for one in entry.values() if one["rank"] <= top), reverse=True)
        out.append((entry[str(token)]["logprob"], alternatives))
    return out
