#!/usr/bin/env python3
"""tools/tidy finds what it should, and nothing else."""
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LOADER = importlib.machinery.SourceFileLoader("tidy", os.path.join(HERE, "tidy"))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", LOADER))
LOADER.exec_module(tidy)

CLEAN = '#pragma once\n#include "core/ids.hpp"\nnamespace tandem {\nstruct box {\n  int size() const { return 1; }\n};\n}\n'


class Tidy(unittest.TestCase):
    def reasons(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return [reason for _, _, reason in tidy.findings(root)]

    def one(self, path, text, part):
        reasons = self.reasons({path: text})
        self.assertEqual(len(reasons), 1, reasons)
        self.assertIn(part, reasons[0])

    def test_clean_code_has_no_findings(self):
        self.assertEqual(self.reasons({"core/box.hpp": CLEAN}), [])

    def test_a_long_file_is_found(self):
        self.one("core/a.cpp", "int x;\n" * 501, "501 lines")

    def test_a_long_function_is_found_and_a_long_namespace_is_not(self):
        body = "  x += 1;\n" * 71
        self.one("core/a.cpp", "namespace tandem {\nvoid f(int x) {\n" + body + "}\n}\n", "a function of")
        self.assertEqual(self.reasons({"core/a.cpp": "namespace tandem {\n" + "int f();\n" * 100 + "}\n"}), [])

    def test_a_long_lambda_counts_as_part_of_its_function(self):
        self.one("core/a.cpp", "void f() {\n  g([] {\n" + "    h();\n" * 71 + "  });\n}\n", "a function of")

    def test_a_header_without_pragma_once_is_found(self):
        self.one("core/a.hpp", "int f();\n", "#pragma once")

    def test_a_foreign_folder_is_found(self):
        self.one("core/a.cpp", '#include "net/server.hpp"\n', "core does not link net")

    def test_a_linked_folder_is_allowed_also_through_another(self):
        files = {
            "net/CMakeLists.txt": "tandem_folder(net LINKS tandem_actors)\n",
            "actors/CMakeLists.txt": "tandem_folder(actors LINKS tandem_core)\n",
            "net/a.cpp": '#include "core/ids.hpp"\n',
        }
        self.assertEqual(self.reasons(files), [])

    def test_actor_and_socket_headers_stay_where_they_belong(self):
        self.one("net/a.cpp", "#include <caf/all.hpp>\n", "does not belong here")
        self.one("app/a.cpp", "#include <boost/beast/core.hpp>\n", "does not belong here")
        self.assertEqual(self.reasons({"actors/a.cpp": "#include <caf/all.hpp>\n"}), [])

    def test_banned_calls_are_found_but_not_in_comments_or_strings(self):
        self.one("core/a.cpp", "void f(char* p) { sprintf(p, p); }\n", "sprintf")
        self.one("core/a.cpp", "void f() { assert(true); }\n", "TANDEM_ASSERT")
        self.one("core/a.cpp", 'void f() { fmt::printf("x"); }\n', "standard output")
        self.assertEqual(self.reasons({"core/a.cpp": '// sprintf(p)\nconst char* s = "rand()";\n'}), [])
        self.assertEqual(self.reasons({"core/a.cpp": "static_assert(true);\nvoid f() { std::fprintf(stderr, p); }\n"}), [])

    def test_names_that_say_nothing_are_found(self):
        self.one("core/a.cpp", "class slot_manager;\n", "the name says nothing")

    def test_unfinished_work_is_found(self):
        self.one("docs/a.md", "TO" + "DO: write this\n", "unfinished")

    def test_a_registry_host_and_a_machine_path_are_found(self):
        self.one("docs/a.md", "see py" + "pi.org\n", "registry")
        self.one("docs/a.md", "see /wo" + "rk/thing\n", "machine")

    def test_a_limit_nobody_uses_is_found(self):
        self.one("config/limits.hpp", "#pragma once\ninline constexpr int kMaxThings = 3;\n", "bounds nothing")


if __name__ == "__main__":
    unittest.main()
