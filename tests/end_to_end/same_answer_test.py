#!/usr/bin/env python3
"""Same prompt, same seed: the same ids, whatever the speculation, the company, the step budget, the cache, the threads."""
import concurrent.futures
import unittest

from serving import Server, made, real

SAMPLING = {"temperature": 0.8, "seed": 7, "max_tokens": 32, "ignore_eos": True}


class SameAnswer(unittest.TestCase):
    def check(self, target, draft, prompt, company, *flags):
        answers = {}
        fixed = ()
        adaptive = ("--speculative-config", '{"adaptive": true}')
        for threads, budget, drafting in (("1", "64", fixed), ("1", "512", fixed), ("2", "64", fixed), ("2", "512", fixed),
                                          ("2", "512", adaptive)):
            with Server(target, "--draft-model", draft, "--threads", threads, "--max-num-batched-tokens", budget,
                        *drafting, *flags) as server:
                self.gather(answers, server, (threads, budget, *drafting), prompt, company)
        reference = next(iter(answers.values()))
        self.assertEqual(len(reference), SAMPLING["max_tokens"])
        for what, ids in answers.items():
            self.assertEqual(ids, reference, what)

    def gather(self, answers, server, setting, prompt, company):
        methods = [("off", False), ("ngram", {"method": "ngram", "num_speculative_tokens": 4}),
                   ("as the server does", {"adaptive": True})]
        methods += [(f"draft_model k={k}", {"method": "draft_model", "num_speculative_tokens": k, "adaptive": False})
                    for k in range(1, 9)]
        for name, speculative in methods:
            for run in ("first run", "prefix hit"):
                answer = server.complete(prompt, speculative=speculative, **SAMPLING)
                answers[(*setting, name, run)] = answer["token_ids"]
                if name.startswith("draft_model"):
                    self.assertGreater(answer["timings"]["draft_n"], 0, name)
        others = [f"{company} {i} " * (i + 1) for i in range(15)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for name, speculative in methods[:4] + methods[-1:]:
                busy = [pool.submit(server.complete, other, speculative=speculative, temperature=0.8, max_tokens=32)
                        for other in others]
                alone = pool.submit(server.complete, prompt, speculative=speculative, **SAMPLING)
                answers[(*setting, name, "among 15 others")] = alone.result()["token_ids"]
                for answer in busy:
                    self.assertGreater(answer.result()["usage"]["completion_tokens"], 0)
        server.wait_idle()

    def test_of_a_made_model_in_fp32_and_its_noisy_draft(self):
        self.check(made("rand"), made("rand-noisy"), "the same prompt each time, longer than a block", "other",
                   "--dtype", "fp32")

    def test_of_the_demo_model_as_its_own_draft(self):
        model = real("smollm2-135m")
        if model is None:
            self.skipTest("TANDEM_TEST_MODELS names no folder with smollm2-135m.gguf")
        self.check(model, model, "Write three sentences about the sea and the ships that cross it.", "Tell me about topic")


if __name__ == "__main__":
    unittest.main()
