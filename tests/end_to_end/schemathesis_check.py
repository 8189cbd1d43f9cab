#!/usr/bin/env python3
"""Schemathesis over /openapi.json: whatever is sent, no server error, no status and no body that is not described.

Runs where Python has the schemathesis package (./run test installs it), else the exit status is 77. It ends within
TANDEM_SCHEMATHESIS_SECONDS (default 60), whatever it has got to; TANDEM_SCHEMATHESIS_SEED sets what is drawn.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

from client_packages import SKIPPED, have
from serving import Server, made

SECONDS = float(os.environ.get("TANDEM_SCHEMATHESIS_SECONDS", "60"))
SEED = os.environ.get("TANDEM_SCHEMATHESIS_SEED", "1")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
START = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())"


def description(server):
    """/openapi.json with the one model that is served, so that most requests get further than its name."""
    document = json.loads(server.send("GET", "/openapi.json")[2])
    for schema in document["components"]["schemas"].values():
        if "model" in schema.get("properties", {}) and "choices" not in schema["properties"]:
            schema["properties"]["model"] = {"enum": [server.name, None]}
    return json.dumps(document)


def failures(server, key, folder):
    """What schemathesis prints when it finds something, else nothing."""
    path = os.path.join(folder, "openapi.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(description(server))
    url = f"http://{server.host}:{server.port}"
    # One worker: with two, one may change the recursion limit while the other parses Python, which CPython 3.11 calls a SystemError.
    command = [sys.executable, "-c", START, "run", path, "--url", url, "--checks", CHECKS, "--phases", "examples,coverage,fuzzing",
               "--max-examples", "8", "--seed", SEED, "--generation-database", "none", "--request-timeout", "30",
               "--workers", "1", "--warnings", "off", "--no-color", "--header", f"Authorization: Bearer {key}"]
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder) as process:
            try:
                failed = process.wait(SECONDS) != 0
            except subprocess.TimeoutExpired:
                print(f"schemathesis_check: stopped after {SECONDS:.0f} s")
                failed = False
                process.kill()
        output.seek(0)
        told = output.read()
    # Stopped half-way it prints no summary; a found failure is marked at its place all the same.
    return told if failed or "❌" in told or "🚫" in told else ""


def main():
    if not have("schemathesis"):
        print("schemathesis_check: skipped, the schemathesis package is not there; try pip install schemathesis.")
        return SKIPPED
    begun = time.monotonic()
    with Server(made("cycle"), "--api-key", "key", "--max-model-len", "256", "--speculative-config",
                '{"method": "ngram"}') as server, tempfile.TemporaryDirectory() as folder:
        told = failures(server, "key", folder)
        health = server.send("GET", "/health")[0]
    assert health == 200, health
    print(told or f"schemathesis_check: nothing found in {time.monotonic() - begun:.0f} s")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
