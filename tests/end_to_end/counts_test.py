#!/usr/bin/env python3
"""A3, A4, A1 through a socket: what is delivered, counted and charged agrees, for every k."""
import unittest

from serving import Server, made


def drafts(k):
    if k == 0:
        return {"speculative": False}
    return {"speculative": {"method": "draft_model", "num_speculative_tokens": k, "adaptive": False}}


class Counts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("cycle"), "--draft-model", made("cycle-bad"))

    @classmethod
    def tearDownClass(cls):
        cls.server.wait_idle()
        cls.server.__exit__()

    def test_A3_max_tokens_is_what_is_delivered_and_charged(self):
        for k in range(0, 9):
            for max_tokens in range(1, 21):
                before = self.server.metric("tandem:generation_tokens_total")
                answer = self.server.complete("abc", max_tokens=max_tokens, ignore_eos=True, temperature=0, logprobs=1,
                                              **drafts(k))
                counts = (len(answer["token_ids"]), answer["usage"]["completion_tokens"],
                          len(answer["logprobs"]["tokens"]),
                          int(self.server.metric("tandem:generation_tokens_total") - before))
                self.assertEqual(counts, (max_tokens,) * 4, f"k={k}")

    def test_A4_end_token_ignore_eos_and_min_tokens(self):
        # Ring ids 0 to 255; a stop id plays the end token, four tokens ahead of the prompt.
        for k in range(0, 7):
            for minimum in range(0, 9):
                answer = self.server.complete("abc", max_tokens=12, temperature=0, stop_token_ids=[ord("g")],
                                              min_tokens=minimum, **drafts(k))
                plain = self.server.complete("abc", max_tokens=12, temperature=0, stop_token_ids=[ord("g")],
                                             min_tokens=minimum, **drafts(0))
                self.assertEqual(answer["token_ids"], plain["token_ids"], f"k={k} min_tokens={minimum}")
                self.assertNotIn(ord("g"), answer["token_ids"][:minimum])

    def test_A1_a_stop_string_anywhere_in_a_run_ends_it(self):
        text = "defghijklmnop"
        for start in range(0, 10):
            stop = text[start:start + 2]
            for k in (0, 1, 3, 8):
                fields = {"prompt": "abc", "max_tokens": 13, "temperature": 0, "stop": stop, **drafts(k)}
                answer = self.server.complete(**fields)
                self.assertEqual((answer["text"], answer["finish_reason"], answer["stop_reason"]),
                                 (text[:start], "stop", stop), f"k={k}")
                events = self.server.stream("/v1/completions", fields)
                self.assertEqual("".join(e["choices"][0]["text"] for e in events if e["choices"]), text[:start])

    def test_accepted_drafts_equal_a_hand_count(self):
        # The draft leads one too far at every third ring position, so a full proposal of 3 or more accepts two of three.
        answer = self.server.complete("abc", max_tokens=61, ignore_eos=True, temperature=0, **drafts(8))
        timings = answer["timings"]
        self.assertLess(timings["steps"], 30)
        self.assertEqual(timings["steps"] + timings["draft_n_accepted"], 61)
        self.assertAlmostEqual(timings["mean_accepted_length"], 1 + timings["draft_n_accepted"] / timings["steps"], places=3)
        self.assertAlmostEqual(timings["spec_token_acceptance_rate"], timings["draft_n_accepted"] / timings["draft_n"],
                               places=3)
        details = answer["usage"]["completion_tokens_details"]
        self.assertEqual(details["accepted_prediction_tokens"], timings["draft_n_accepted"])
        self.assertEqual(details["rejected_prediction_tokens"], timings["draft_n"] - timings["draft_n_accepted"])


if __name__ == "__main__":
    unittest.main()
