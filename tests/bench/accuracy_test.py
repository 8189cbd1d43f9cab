#!/usr/bin/env python3
"""The table of accuracy: what it says of figures. Nothing is measured here; tests/gpu/kernels/kinds_test.py tests the files."""
import os
import subprocess
import sys
import unittest

SOURCE = os.environ["TANDEM_SOURCE"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "bench", "accuracy"))

import rows  # noqa: E402


def row(perplexity, exact, **more):
    made = {"model": "m", "kind": "Q4_0", "flags": "", "share_of_kind": 1.0, "tokens_scored": 9980, "perplexity": perplexity,
            "perplexity_fp32": exact, "standard_error": 0.1, "device": "cpu (avx512, 2 threads)", "commit": "C", **more}
    return {**made, "ratio": rows.ratio_of(made)}


class Table(unittest.TestCase):
    def test_a_percent_either_way_is_the_goal(self):
        self.assertEqual([rows.verdict(row(value, 10.0)) for value in (9.89, 9.91, 10.0, 10.09, 10.11)],
                         ["missed", "met", "met", "met", "missed"])

    def test_a_kind_names_its_share_and_its_flags(self):
        self.assertEqual(rows.kind_of(row(1, 1)), "Q4_0")
        self.assertEqual(rows.kind_of(row(1, 1, share_of_kind=0.2)), "Q4_0 (20%, rest Q8_0)")
        self.assertEqual(rows.kind_of(row(1, 1, kind="BF16", flags="--quantization int8")), "BF16 --quantization int8")
        self.assertEqual(rows.kind_of(row(1, 1, kind="as it is", share_of_kind=None)), "as it is")

    def test_the_page_has_a_line_per_row_and_says_how_it_was_measured(self):
        page = rows.page({"date": "D", "commit": "C", "machine": {"cpu": "P", "cores": 2, "instruction_sets": ["avx2"]},
                          "tokens": 10000, "context": 512, "texts": ["GPL-3"], "text_sha256": "0" * 64,
                          "rows": [row(10.05, 10.0), row(20.5, 20.0)]})
        self.assertIn("| m | Q4_0 | 9,980 | 10.0000 | 10.0500 | 0.10 | 1.00500 | met | C |", page)
        self.assertIn("| 1.02500 | missed | C |", page)
        self.assertIn("first 10,000 tokens of GPL-3", page)

    def test_help_is_there_and_needs_no_package(self):
        shown = subprocess.run([sys.executable, os.path.join(SOURCE, "bench", "accuracy", "run"), "--help"],
                               stdout=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(shown.returncode, 0)
        self.assertIn("--quick", shown.stdout)


if __name__ == "__main__":
    unittest.main()
