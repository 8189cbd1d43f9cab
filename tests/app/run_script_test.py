#!/usr/bin/env python3
"""The run script: what it says about itself and about missing packages."""
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest
from unittest import mock

SOURCE = os.environ["TANDEM_SOURCE"]
RUN = os.path.join(SOURCE, "run")


def run(*arguments, **more):
    return subprocess.run([RUN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False, **more)


@contextlib.contextmanager
def listener_on(port):
    """Somebody listens there: we, or whoever was first."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", port))
            taken.listen()
        yield


class made_tree:
    """A copy of the script in a folder of its own, with a space in its name, and programs that only note their calls."""

    def __init__(self, test, programs=None, model_fetch="exit 0"):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.root = os.path.join(folder.name, "a tree")
        self.build = os.path.join(self.root, "build", "release")
        self.tools = os.path.join(folder.name, "tools")
        os.makedirs(self.build)
        os.makedirs(self.tools)
        shutil.copy(RUN, self.root)
        usual = {"dpkg-query": "echo installed", "id": "echo 1000", "sudo": "exit 1", "apt-get": "exit 0",
                 "cmake": "exit 0", "ninja": f'mkdir -p "{self.build}"; cp "{self.tools}/tandem" "{self.build}"',
                 "tandem": f'[ "$1" = models ] || exit 0; {model_fetch}'}
        for name, body in {**usual, **(programs or {})}.items():
            path = os.path.join(self.tools, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "{name} $*" >> "{folder.name}/log"\n{body}\n')
            os.chmod(path, 0o755)
        self.log_path = os.path.join(folder.name, "log")

    def run(self, *arguments):
        environment = dict(os.environ, PATH=self.tools + ":" + os.environ["PATH"])
        return subprocess.run([os.path.join(self.root, "run"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=environment)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()


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
        tree = made_tree(self, {"dpkg-query": "exit 1", "apt-get": "exit 99"})
        finished = tree.run("build")
        self.assertEqual(finished.returncode, 1)
        self.assertIn("apt-get install -y --no-install-recommends g++", finished.stderr)

    def test_without_root_a_missing_pip_alone_does_not_end_a_build(self):
        tree = made_tree(self, {"dpkg-query": '[ "$4" = python3-pip ] && exit 1; echo installed', "python3": "exit 1",
                                "apt-get": "exit 99"})
        finished = tree.run("build")
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("python3-pip", finished.stdout)
        self.assertIn("ninja -C build/release", tree.log())

    def test_packages_that_no_source_offers_are_named_in_one_sentence(self):
        tree = made_tree(self, {"dpkg-query": "exit 1", "id": "echo 0", "apt-get": '[ "$1" = update ]',
                                "apt-cache": '[ "$2" = libcaf-dev ] || echo "$2 | 1"'})
        finished = tree.run("build")
        self.assertEqual(finished.returncode, 1)
        self.assertRegex(finished.stderr, r"^run: this system's package sources do not offer: libcaf-dev \(.*\n$")

    def test_a_failed_update_is_one_clear_sentence(self):
        tree = made_tree(self, {"dpkg-query": "exit 1", "id": "echo 0", "apt-get": "exit 100"})
        finished = tree.run("build")
        self.assertEqual(finished.returncode, 1)
        self.assertIn("online?", finished.stderr)

    def test_a_build_folder_of_another_place_is_started_anew(self):
        tree = made_tree(self)
        cache = os.path.join(tree.build, "CMakeCache.txt")
        with open(cache, "w", encoding="utf-8") as file:
            file.write("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        finished = tree.run("build")
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("starting it anew", finished.stdout)
        self.assertFalse(os.path.exists(cache))
        self.assertIn("cmake --preset release", tree.log())

    def test_demo_takes_the_next_free_port_and_says_so(self):
        tree = made_tree(self)
        with listener_on(8000):
            finished = tree.run("demo", "--threads", "1")
        self.assertEqual(finished.returncode, 0, finished.stderr)
        port = re.search(r"port 8000 is taken, so this is port (80\d\d)", finished.stdout).group(1)
        self.assertIn(f"curl http://127.0.0.1:{port}/v1/chat/completions", finished.stdout)
        self.assertIn(f"tandem serve smollm2-135m --port {port} --threads 1", tree.log())

    def test_demo_serves_on_the_port_that_was_asked_for(self):
        for flags in (["--port", "8123"], ["--port=8123"]):
            tree = made_tree(self)
            finished = tree.run("demo", *flags)
            self.assertEqual(finished.returncode, 0, finished.stderr)
            self.assertIn("curl http://127.0.0.1:8123/", finished.stdout)
            self.assertEqual(tree.log().count("8123"), 1)
            self.assertNotIn("8000", tree.log())

    def test_demo_without_its_model_ends_with_a_sentence(self):
        tree = made_tree(self, model_fetch="exit 1")
        finished = tree.run("demo")
        self.assertEqual(finished.returncode, 1)
        self.assertIn("run: the demo model could not be fetched", finished.stderr)

    def test_tests_go_on_without_python_packages_and_install_them_once_with_their_checksums(self):
        for pip, said in (("exit 1", True), ('while [ "$1" != --target ]; do shift; done; mkdir -p "$2"', False)):
            tree = made_tree(self, {"python3": pip, "ctest": "exit 0"})
            os.makedirs(os.path.join(tree.root, "tests"))
            for name in ("requirements.txt", "api_requirements.txt"):
                shutil.copy(os.path.join(SOURCE, "tests", name), os.path.join(tree.root, "tests"))
            for _ in range(2):
                finished = tree.run("test")
                self.assertEqual(finished.returncode, 0, finished.stderr)
                self.assertEqual("going on without the Python packages" in finished.stdout, said)
            self.assertEqual(tree.log().count("--require-hashes"), 4 if said else 2)
            self.assertIn("ctest", tree.log())

    def test_a_browser_is_installed_only_where_it_is_asked_for_and_its_absence_ends_nothing(self):
        no_browser = {"dpkg-query": 'case "$*" in *chromium*) ;; *) echo installed ;; esac', "ctest": "exit 0"}
        for wanted, user, installed in (("", "0", False), ("install", "0", True), ("install", "1000", False)):
            tree = made_tree(self, {**no_browser, "id": f"echo {user}"})
            with mock.patch.dict(os.environ, TANDEM_TEST_BROWSER=wanted):
                finished = tree.run("test")
            self.assertEqual(finished.returncode, 0, finished.stderr)
            self.assertEqual(" chromium chromium-driver" in tree.log(), installed)
            self.assertEqual("going on without a browser" in finished.stdout, bool(wanted) and not installed)
            self.assertIn("ctest", tree.log())

    def test_ci_is_exactly_run_test(self):
        with open(os.path.join(SOURCE, ".ci", "run"), encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith('/../run" test'), lines[0])


if __name__ == "__main__":
    unittest.main()
