#!/usr/bin/env python3
"""HTTPS and WSS through the whole binary, with certificates that the openssl command makes."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from serving import Server, made

WAIT_S = 30


def make_certificate(folder, name):
    """Paths of a self-signed certificate for 127.0.0.1 and of its key."""
    certificate, key = (os.path.join(folder, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "1", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    return certificate, key


def client_context(certificate, *own):
    context = ssl.create_default_context(cafile=certificate)
    if own:
        context.load_cert_chain(*own)
    return context


def wait_until(reached, what):
    until = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < until, what
        time.sleep(0.05)


class SecureServer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.certificate, self.key = make_certificate(self.folder, "first")

    def start(self, *flags, **more):
        server = Server(made("cycle"), "--ssl-certfile", self.certificate, "--ssl-keyfile", self.key, *flags, **more)
        self.addCleanup(server.__exit__)
        return server

    def connect(self, server, *own, certificate=None):
        context = client_context(certificate or self.certificate, *own)
        return http.client.HTTPSConnection(server.host, server.port, timeout=WAIT_S, context=context)

    def ask(self, connection, method, path, fields=None):
        connection.request(method, path, json.dumps(fields) if fields else None,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def shown_certificate(self, server):
        return ssl.get_server_certificate((server.host, server.port))


class Https(SecureServer):
    def test_a_client_that_checks_the_certificate_gets_answers_and_streams(self):
        server = self.start()
        connection = self.connect(server)
        self.assertEqual(self.ask(connection, "GET", "/health")[0], 200)
        wanted = {"prompt": "abc", "max_tokens": 8, "temperature": 0}
        status, whole = self.ask(connection, "POST", "/v1/completions", wanted)
        self.assertEqual(status, 200, whole)
        status, streamed = self.ask(connection, "POST", "/v1/completions", {**wanted, "stream": True})
        events = [json.loads(line[6:]) for line in streamed.decode().splitlines()
                  if line.startswith("data: ") and line != "data: [DONE]"]
        self.assertEqual("".join(event["choices"][0]["text"] for event in events),
                         json.loads(whole)["choices"][0]["text"])
        connection.close()

    def test_a_body_larger_than_a_record_and_a_client_that_leaves(self):
        server = self.start()
        connection = self.connect(server)
        status, told = self.ask(connection, "POST", "/tokenize", {"prompt": "abc " * 20000})
        self.assertEqual(status, 200, told[:200])
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "abc", "max_tokens": 2000, "stream": True,
                                                                  "ignore_eos": True}),
                           {"Content-Type": "application/json"})
        connection.getresponse().read(10)
        connection.sock.close()
        connection.close()
        other = self.connect(server)

        def idle():
            _, metrics = self.ask(other, "GET", "/metrics")
            running = [line for line in metrics.decode().splitlines() if line.startswith("tandem:num_requests_running")]
            return all(float(line.split()[-1]) == 0 for line in running)
        wait_until(idle, "the request of a client that left still runs")
        other.close()

    def test_a_hangup_reads_the_certificate_again_and_keeps_connections(self):
        with open(os.path.join(self.folder, "log"), "w+", encoding="utf-8") as log:
            server = self.start(log=log)
            kept = self.connect(server)
            self.assertEqual(self.ask(kept, "GET", "/live")[0], 200)
            before = self.shown_certificate(server)
            second, key = make_certificate(self.folder, "second")
            os.replace(second, self.certificate)
            os.replace(key, self.key)
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: self.shown_certificate(server) != before, "the new certificate is not used")
            self.assertEqual(self.ask(kept, "GET", "/live")[0], 200)
            after = self.shown_certificate(server)
            with open(self.certificate, "w", encoding="utf-8") as broken:
                broken.write("no certificate")
            server.process.send_signal(signal.SIGHUP)

            def told():
                with open(log.name, encoding="utf-8") as lines:
                    return [line for line in lines if "the old certificate stays in use: --ssl-certfile" in line]
            wait_until(told, "a broken certificate is not told of")
            self.assertEqual(len(told()), 1)
            self.assertEqual(self.shown_certificate(server), after)
            self.assertEqual(self.ask(kept, "GET", "/live")[0], 200)
            kept.close()

    def test_clients_may_have_to_show_a_certificate(self):
        server = self.start("--ssl-ca-certs", self.certificate)
        connection = self.connect(server, self.certificate, self.key)
        self.assertEqual(self.ask(connection, "GET", "/live")[0], 200)
        connection.close()
        stranger, key = make_certificate(self.folder, "stranger")
        for own in ((), (stranger, key)):
            refused = self.connect(server, *own)
            with self.assertRaises((ssl.SSLError, OSError, http.client.HTTPException)):
                self.ask(refused, "GET", "/live")
            refused.close()


class Wss(SecureServer):
    def test_a_websocket_works_over_tls(self):
        server = self.start("--api-key", "right")
        self.assertIn(b" 401 ", self.open(server, "wrong")[1])
        stream, head = self.open(server, "right")
        self.assertIn(b" 101 ", head)
        self.send_text(stream, json.dumps({"id": 1, "prompt": "abc", "max_tokens": 4, "temperature": 0}))
        frames = []
        while not frames or "usage" not in frames[-1]:
            frames.append(json.loads(self.receive_text(stream)))
        self.assertEqual(frames[-1]["usage"]["completion_tokens"], sum(len(frame["token_ids"]) for frame in frames))
        stream.close()

    def open(self, server, key):
        raw = socket.create_connection((server.host, server.port), WAIT_S)
        stream = client_context(self.certificate).wrap_socket(raw, server_hostname=server.host)
        self.addCleanup(stream.close)
        nonce = base64.b64encode(os.urandom(16)).decode()
        stream.sendall((f"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Authorization: Bearer {key}\r\n"
                        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += stream.recv(1)
        return stream, head

    def send_text(self, stream, text):
        mask = os.urandom(4)
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(text.encode()))
        assert len(body) < 126
        stream.sendall(bytes([0x81, 0x80 | len(body)]) + mask + body)

    def receive_text(self, stream):
        head = self.receive(stream, 2)
        assert head[0] == 0x81, head
        size = head[1]
        if size == 126:
            size = int.from_bytes(self.receive(stream, 2), "big")
        return self.receive(stream, size)

    def receive(self, stream, count):
        data = b""
        while len(data) < count:
            more = stream.recv(count - len(data))
            assert more, "the connection ended"
            data += more
        return data


if __name__ == "__main__":
    unittest.main(verbosity=2)
