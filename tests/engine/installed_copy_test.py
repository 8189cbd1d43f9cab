#!/usr/bin/env python3
"""Installs tandem into a folder of its own and builds every example against it, as a user's program would be."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

CMAKE = os.environ["CMAKE"]
SOURCE = os.environ["TANDEM_SOURCE"]
MODEL = os.path.join(os.environ["MADE_MODELS"], "cycle.gguf")


def run(*command, **more):
    return subprocess.run(command, **more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)


class InstalledCopy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        installed = run(CMAKE, "--install", os.environ["TANDEM_BUILD"], "--prefix", cls.prefix)
        assert installed.returncode == 0, installed.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build(self, example, source=None):
        source = source or os.path.join(SOURCE, "examples", example)
        build = os.path.join(self.folder.name, "build of " + os.path.basename(source))
        configured = run(CMAKE, "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + self.prefix,
                         "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER=" + os.environ["CXX"])
        self.assertEqual(configured.returncode, 0, configured.stdout)
        built = run(CMAKE, "--build", build)
        self.assertEqual(built.returncode, 0, built.stdout)
        return os.path.join(build, example)

    def test_only_the_public_headers_are_installed(self):
        headers = sorted(os.path.relpath(os.path.join(place, name), self.prefix)
                         for place, _, names in os.walk(self.prefix) for name in names if name.endswith(".hpp"))
        self.assertEqual(headers, ["include/tandem/actor.hpp", "include/tandem/draft_source.hpp", "include/tandem/engine.hpp"])

    def test_embed_plain_streams_and_prints_ids(self):
        finished = run(self.build("embed_plain"), MODEL, "abc", "4")
        self.assertEqual((finished.returncode, finished.stdout), (0, "defg\ntoken ids: 100 101 102 103\n"))

    def test_the_program_of_the_readme_is_a_whole_one(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            program = re.search(r"```cpp\n(.*?)```", file.read(), re.S).group(1)
        source = os.path.join(self.folder.name, "readme")
        shutil.copytree(os.path.join(SOURCE, "examples", "embed_plain"), source)
        with open(os.path.join(source, "main.cpp"), "w", encoding="utf-8") as file:
            file.write(program)
        place = os.path.join(self.folder.name, "place")
        os.mkdir(place)
        os.symlink(MODEL, os.path.join(place, "smollm2-135m"))
        binary = self.build("embed_plain", source)
        finished = run(binary, cwd=place)
        self.assertEqual((finished.returncode, len(finished.stdout) > 0), (0, True), finished.stdout)

    def test_embed_caf_asks_streams_and_ends(self):
        finished = run(self.build("embed_caf"), MODEL, "abc", "4")
        self.assertEqual(finished.returncode, 0, finished.stdout)
        self.assertIn("answer: defg\npieces: defg\nfinish_reason: length\n", finished.stdout)
        self.assertIn("the engine has ended", finished.stdout)

    def test_custom_drafts_gives_the_same_answer_in_fewer_steps_where_it_knows_it(self):
        finished = run(self.build("custom_drafts"), MODEL, "abc=defghijklmno", "xyz=wrong")
        self.assertEqual(finished.returncode, 0, finished.stdout)
        right, wrong = "defghijklmno", "{|}~"
        lines = finished.stdout.splitlines()
        self.assertEqual(lines[0], f"none: {right} (12 tokens in 12 steps)")
        # The step that computes the prompt gives one token, each further one five drafts and its own.
        self.assertEqual(lines[1], f"custom: {right} (12 tokens in 3 steps)")
        self.assertTrue(lines[2].startswith(f"none: {wrong}") and lines[2].endswith("(12 tokens in 12 steps)"), lines)
        self.assertEqual(lines[3], lines[2].replace("none", "custom"))

    def test_a_model_that_is_missing_is_one_sentence(self):
        finished = run(self.build("embed_plain"), "/nowhere/model.gguf", "abc")
        self.assertEqual(finished.returncode, 1)
        self.assertIn("/nowhere/model.gguf", finished.stdout)


if __name__ == "__main__":
    unittest.main()
