#!/usr/bin/env python3
"""The run script: what it says about itself and about missing packages."""
import os
import subprocess
import tempfile
import unittest

SOURCE = os.environ["TANDEM_SOURCE"]
RUN = os.path.join(SOURCE, "run")


def run(*arguments, **more):
    return subprocess.run([RUN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False, **more)


class RunScript(unittest.TestCase):
    def test_help_names_every_command(self):
        finished = run("help")
        self.assertEqual(finished.returncode, 0)
        for command in ("demo", "build", "test", "install", "clean"):
            self.assertIn("\n  " + command, finished.stdout)

    def test_an_unknown_command_is_refused(self):
        finished = run("tset")
        self.assertEqual(finished.returncode, 1)
        self.assertIn('"tset"', finished.stderr)

    def test_without_root_the_line_for_the_administrator_is_printed(self):
        # Programs that say: no package is there, and we are nobody who can change that.
        with tempfile.TemporaryDirectory() as folder:
            for name, body in (("dpkg-query", "exit 1"), ("id", "echo 1000"), ("sudo", "exit 1"), ("apt-get", "exit 99")):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\n" + body + "\n")
                os.chmod(path, 0o755)
            finished = run("build", env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]))
        self.assertEqual(finished.returncode, 1)
        self.assertIn("apt-get install -y --no-install-recommends g++ cmake", finished.stderr)

    def test_ci_is_exactly_run_test(self):
        with open(os.path.join(SOURCE, ".ci", "run"), encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith('/../run" test'), lines[0])


if __name__ == "__main__":
    unittest.main()
