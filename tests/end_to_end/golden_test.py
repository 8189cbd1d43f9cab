#!/usr/bin/env python3
"""The demo model against golden data of an independent implementation, through `tandem generate`."""
import json
import os
import subprocess
import unittest

from serving import TANDEM, real

GOLDEN = os.path.join(os.environ["TANDEM_SOURCE"], "tests", "golden", "ref-smollm2.json")


class Golden(unittest.TestCase):
    def test_the_fp32_path_gives_the_reference_ids(self):
        model = real("smollm2-135m")
        if model is None:
            self.skipTest("TANDEM_TEST_MODELS names no folder with smollm2-135m.gguf")
        with open(GOLDEN, encoding="utf-8") as file:
            case = next(c for c in json.load(file)["cases"] if c["id"] == "capital")
        finished = subprocess.run([TANDEM, "generate", model, "--prompt", case["prompt"], "--max-tokens", "30",
                                   "--temperature", "0", "--dtype", "fp32", "--output", "json"], stdout=subprocess.PIPE,
                                  check=True, timeout=120)
        answer = json.loads(finished.stdout)["results"][0]
        self.assertEqual(answer["prompt_token_ids"], case["prompt_ids"])
        self.assertEqual(answer["outputs"][0]["token_ids"], case["greedy_ids"][:30])


if __name__ == "__main__":
    unittest.main()
