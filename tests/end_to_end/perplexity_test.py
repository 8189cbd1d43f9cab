#!/usr/bin/env python3
"""`tandem perplexity`: its figures against log-probabilities of `tandem generate`, its flags, its refusals."""
import json
import math
import os
import subprocess
import tempfile
import unittest

from serving import TANDEM, made, real
from ways import offline

FP32 = ("--dtype", "fp32", "--threads", "1")
TEXT = "It was a bright cold day in April, and the clocks were striking thirteen. " * 6


def run(*arguments, text=None):
    return subprocess.run([TANDEM, "perplexity", *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300, check=False)


def measure(model, *flags, text=TEXT):
    finished = run(model, "--output", "json", *flags, text=text)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def ids_of(model, text):
    return [int(word) for word in
            subprocess.run([TANDEM, "tokenize", model, "--ids"], input=text, stdout=subprocess.PIPE, text=True, timeout=60,
                           check=True).stdout.split()]


def by_generate(model, ids, context, *flags):
    """Negative log-likelihoods of the same chunks, as prompt_logprobs of separate requests."""
    chunks = [ids[at:at + context] for at in range(0, len(ids), context)]
    requests = [{"prompt_token_ids": chunk, "max_tokens": 0, "prompt_logprobs": 0} for chunk in chunks if len(chunk) > 1]
    return [-entry["logprob"] for answer in offline(model, requests, *flags) for entry in answer["prompt_logprobs"]]


class Perplexity(unittest.TestCase):
    def compare(self, model, found, samples):
        mean = sum(samples) / len(samples)
        variance = sum((one - mean)**2 for one in samples) / (len(samples) - 1)
        self.assertEqual(found["tokens_scored"], len(samples))
        self.assertAlmostEqual(found["mean_nll"], mean, delta=1e-6)
        self.assertAlmostEqual(found["mean_nll_error"], math.sqrt(variance / len(samples)), delta=1e-6)
        self.assertAlmostEqual(found["perplexity"], math.exp(mean), delta=1e-5 * math.exp(mean))
        self.assertAlmostEqual(found["perplexity_error"], found["perplexity"] * found["mean_nll_error"], delta=1e-4)

    def test_figures_are_those_of_the_same_chunks_scored_by_generate(self):
        for model in (made("rand"), made("rand-wide"), real("smollm2-135m")):
            if model is None:
                continue
            ids = ids_of(model, TEXT)
            for context in (32, 50):
                for flags in (FP32, ("--threads", "2")):
                    with self.subTest(model=model, context=context, flags=flags):
                        found = measure(model, "--context", str(context), *flags)
                        self.compare(model, found, by_generate(model, ids, context, *flags))
                        self.assertEqual(found["tokens"], len(ids))

    def test_the_last_chunk_is_shorter_and_a_single_token_left_over_is_not_scored(self):
        found = measure(made("rand"), "--context", "10", "--max-tokens", "31")
        self.assertEqual((found["chunks"], found["tokens"], found["tokens_scored"]), (3, 31, 27))
        found = measure(made("rand"), "--context", "10", "--max-tokens", "32")
        self.assertEqual((found["chunks"], found["tokens_scored"]), (4, 28))

    def test_a_model_that_wants_a_bos_gets_it_in_every_chunk_and_all_of_the_text_is_scored(self):
        found = measure(made("rand-bos"), "--context", "10", "--max-tokens", "31", *FP32)
        self.assertEqual((found["chunks"], found["tokens"], found["tokens_scored"]), (4, 31, 31))
        ids = ids_of(made("rand-bos"), TEXT)[:31]
        [bos] = [int(word) for word in subprocess.run([TANDEM, "tokenize", made("rand-bos"), "--ids", "--special", "--text",
                                                       "<|endoftext|>"], stdout=subprocess.PIPE, text=True, timeout=60,
                                                      check=True).stdout.split()]
        chunks = [[bos, *ids[at:at + 9]] for at in range(0, 31, 9)]
        answers = offline(made("rand-bos"), [{"prompt_token_ids": chunk, "max_tokens": 0, "prompt_logprobs": 0}
                                             for chunk in chunks], *FP32)
        self.compare("rand-bos", found, [-entry["logprob"] for answer in answers for entry in answer["prompt_logprobs"]])

    def test_a_certain_model_has_perplexity_1_and_a_text_of_its_own_making_scores_better(self):
        self.assertAlmostEqual(measure(made("cycle"), text="abcdefghijklmnop")["perplexity"], 1.0, places=6)
        self.assertGreater(measure(made("cycle"), text="qxqxqxqx")["perplexity"], 1e6)

    def test_special_tokens_in_the_text_are_plain_text(self):
        self.assertEqual(measure(made("rand"), text="<|im_end|>")["tokens"], 10)

    def test_the_text_comes_from_a_file_or_standard_input_and_all_say_the_same(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(TEXT)
            file.flush()
            shown = {run(*words, text=TEXT).stdout for words in
                     ([made("rand")], [made("rand"), "--file", "-"], [made("rand"), "--file", file.name],
                      [made("rand"), file.name], ["--model", made("rand"), "--file", file.name])}
        self.assertEqual(len(shown), 1)
        self.assertRegex(shown.pop(), r"\Aperplexity \d+\.\d{4} ± \d+\.\d{4}\n"
                                      r"mean negative log-likelihood \d+\.\d{5} ± \d\.\d{5} nats per token\n"
                                      r"tokens scored: 443 of 444, in 1 chunk of up to 512\n\Z")

    def test_help_says_which_tokens_are_scored_and_every_default(self):
        shown = " ".join(run("--help").stdout.split())
        self.assertIn("Every token of a chunk but its first is scored", shown)
        for words in ("default 10000", "default 512", "default text", "default -", "default none; int8", "default auto"):
            self.assertIn(words, shown)

    def test_what_cannot_be_scored_is_refused_in_one_sentence(self):
        for flags, text, code, words in (
                ([], "", 2, "the text is empty"), ([], "a", 2, "1 token,"), (["--context", "1"], "abc", 2, "--context"),
                (["--context", "2000"], "abc", 2, "--context is 2000, but the model can hold"),
                (["--file", "/nowhere/text"], None, 1, "/nowhere/text"), (["--max-tokens", "0"], "abc", 2, "--max-tokens"),
                (["--output", "xml"], "abc", 2, "--output"),
                (["--dtype", "fp32", "--quantization", "int8"], "abc", 2, "--quantization int8")):
            finished = run(made("rand"), *flags, text=text)
            self.assertEqual(finished.returncode, code, (flags, finished.stderr))
            self.assertIn(words, finished.stderr)
            self.assertEqual(len(finished.stderr.strip().splitlines()), 1, finished.stderr)

    def test_a_text_that_is_not_utf8_is_refused_and_not_scored_as_another_text(self):
        for content in ("naïve".encode("latin-1"), "naïve".encode("utf-16"), bytes(range(256))):
            with tempfile.NamedTemporaryFile("wb", suffix=".txt") as file:
                file.write(content * 5)
                file.flush()
                finished = run(made("rand"), "--file", file.name)
            self.assertEqual((finished.returncode, finished.stdout), (2, ""), finished.stderr)
            self.assertIn("not UTF-8", finished.stderr)

    def test_quantization_of_a_file_that_is_quantised_already_says_that_nothing_was_rounded(self):
        if real("smollm2-135m") is None:
            self.skipTest("needs smollm2-135m in TANDEM_TEST_MODELS")
        finished = run(real("smollm2-135m"), "--quantization", "int8", "--log-level", "info", "--max-tokens", "8",
                       text=TEXT)
        self.assertIn("nothing was rounded", finished.stderr)

    def test_quantization_reaches_every_command_and_a_draft_model(self):
        plain = measure(made("rand-wide"), *FP32)
        rounded = measure(made("rand-wide"), "--quantization", "int8")
        self.assertEqual((plain["quantization"], rounded["quantization"]), ("none", "int8"))
        self.assertLess(abs(plain["mean_nll"] - rounded["mean_nll"]), 0.03)
        self.assertNotEqual(plain["mean_nll"], rounded["mean_nll"])
        # f32: 4 bytes a weight; int8: 34 bytes for 32. With AMX outputs are padded to 32 instead of 16.
        native = measure(made("rand-wide"))
        self.assertLessEqual(native["weight_bytes"] * 34, rounded["weight_bytes"] * 128)
        self.assertLess(rounded["weight_bytes"] * 128, native["weight_bytes"] * 34 * 1.01)
        drafted = measure(made("rand-wide"), "--quantization", "int8", "--draft-model", made("rand-wide"))
        self.assertEqual(drafted["weight_bytes"], 2 * rounded["weight_bytes"])
        answers = [offline(made("rand-wide"), [{"prompt": "hello", "temperature": 0, "max_tokens": 12, "ignore_eos": True}],
                           "--quantization", "int8", *more) for more in ([], ["--draft-model", made("rand-wide")])]
        self.assertEqual(answers[0][0]["token_ids"], answers[1][0]["token_ids"])


if __name__ == "__main__":
    unittest.main()
