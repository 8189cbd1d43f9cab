#!/usr/bin/env python3
"""Every command of README.md and docs/*.md that is marked runs, with a made model under the name that it uses.

A fenced block is marked by a comment on the line before it:
  <!-- run: cli -->      run with the built `tandem` on PATH
  <!-- run: server -->   the same, while a server listens on the port that the block names
  <!-- run: server, nothing to cancel -->   and its answers are 404
"""
import glob
import os
import re
import socket
import subprocess
import tempfile
import unittest

TANDEM = os.environ["TANDEM"]
MADE_MODELS = os.environ["MADE_MODELS"]
SOURCE = os.environ["TANDEM_SOURCE"]
MODEL_NAME = "smollm2-135m"
BLOCK = re.compile(r"<!-- run: ([^>]+) -->\n```\w*\n(.*?)```", re.S)


def marked_blocks(kind):
    for page in [os.path.join(SOURCE, "README.md")] + sorted(glob.glob(os.path.join(SOURCE, "docs", "*.md"))):
        with open(page, encoding="utf-8") as file:
            for match in BLOCK.finditer(file.read()):
                if match.group(1) == kind:
                    yield os.path.basename(page), match.group(2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ReadmeCommands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.symlink(os.path.join(MADE_MODELS, "cycle.gguf"), os.path.join(self.folder.name, MODEL_NAME))
        with open(os.path.join(self.folder.name, "prompts.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"prompt": "abc"}\n{"messages": [{"role": "user", "content": "x"}]}\n')
        self.environment = dict(os.environ, PATH=os.path.dirname(TANDEM) + ":" + os.environ["PATH"])

    def tearDown(self):
        self.folder.cleanup()

    def run_block(self, page, text):
        finished = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder.name, env=self.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        self.assertEqual(finished.returncode, 0, f"{page}:\n{text}\n{finished.stdout}")
        return finished.stdout

    def run_blocks(self, blocks, refused=False):
        for page, text in blocks:
            with self.subTest(page=page, text=text):
                shown = self.run_block(page, text)
                self.assertEqual('{"error"' in shown, refused, shown[-2000:])
                if refused:
                    self.assertIn("not_found", shown)

    def test_command_line_blocks_run(self):
        blocks = [(page, text.replace("8443", str(free_port()))) for page, text in marked_blocks("cli")]
        self.assertGreater(len(blocks), 1)
        self.run_blocks(blocks)

    def test_server_blocks_run(self):
        port = free_port()
        command = [TANDEM, "serve", MODEL_NAME, "--port", str(port), "--max-model-len", "1024", "--log-level", "warning"]
        with subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.PIPE, text=True) as server:
            try:
                self.assertIn("tandem: serving " + MODEL_NAME, server.stdout.readline())
                for kind, refused in (("server", False), ("server, nothing to cancel", True)):
                    blocks = [(page, text.replace(":8000", f":{port}")) for page, text in marked_blocks(kind)]
                    self.assertGreater(len(blocks), 0, kind)
                    self.run_blocks(blocks, refused)
            finally:
                server.terminate()
                self.assertEqual(server.wait(timeout=60), 0)

    def test_every_curl_line_is_marked_to_run(self):
        for page in [os.path.join(SOURCE, "README.md")] + sorted(glob.glob(os.path.join(SOURCE, "docs", "*.md"))):
            with open(page, encoding="utf-8") as file:
                self.assertNotRegex(BLOCK.sub("", file.read()), r"(?m)^curl ", page)


if __name__ == "__main__":
    unittest.main()
