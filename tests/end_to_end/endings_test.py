#!/usr/bin/env python3
"""A1, A3, A4, C1, C3 over every way in: where an answer ends and what of it is shown, for every k.

CYCLE answers "abc" with "defghi...": the whole answer is known before the test runs.
"""
import itertools
import os
import unittest

from serving import MADE_MODELS, Server, made
from ways import WAYS, ask, drafts, offline

GREEDY = {"temperature": 0}
TEXT = "defghijklmnopqrstuvwxyz"
SAYS_REASON = [way for way in WAYS if not way.startswith("generate")]


class Asking(unittest.TestCase):
    target, draft, flags = "cycle", "cycle-bad", ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(made(cls.target), "--draft-model", made(cls.draft), "--threads", "1", *cls.flags)

    @classmethod
    def tearDownClass(cls):
        cls.server.wait_idle()
        cls.server.__exit__()


class Stops(Asking):
    def expect(self, way, answer, text, reason, stop_reason, tokens):
        self.assertEqual(answer["text"], text)
        self.assertEqual("".join(answer["pieces"]), text)
        self.assertEqual(len(answer["token_ids"]), tokens)
        if way in SAYS_REASON:
            self.assertEqual((answer["finish_reason"], answer["stop_reason"]), (reason, stop_reason))
            self.assertEqual(answer["usage"]["completion_tokens"], tokens)

    def first(self, way):
        """What the model says behind this way's prompt: chat's template ends with a line feed."""
        return "".join(map(chr, range(11, 64))) if way.startswith("chat") else TEXT

    def test_A1_a_stop_string_anywhere_in_a_run(self):
        for way, start, length, k in itertools.product(WAYS, range(0, 11), (1, 2, 5), (0, 1, 8)):
            text = self.first(way)
            stop = text[start:start + length]
            with self.subTest(way=way, stop=stop, k=k):
                answer = ask(self.server, way, "abc", stop=stop, max_tokens=20, **GREEDY, **drafts(k))
                self.expect(way, answer, text[:start], "stop", stop, start + length)

    def test_C3_a_stop_is_shown_when_asked_for(self):
        for way, k in itertools.product(WAYS, (0, 3)):
            text = self.first(way)
            answer = ask(self.server, way, "abc", stop=text[4:7], include_stop_str_in_output=True, max_tokens=20, **GREEDY,
                         **drafts(k))
            self.expect(way, answer, text[:7], "stop", text[4:7], 7)

    def test_C3_near_matches_are_flushed_at_the_cap_and_overlapping_stops_end_at_the_first(self):
        for way, k in itertools.product(WAYS, (0, 3, 8)):
            text = self.first(way)
            cases = [(text[6:9] + "?", text[:8], "length", None, 8), ([text[6:12], text[8:10]], text[:8], "stop", text[8:10], 10),
                     ([text[3:9], text[3:5]], text[:3], "stop", text[3:5], 5), ([text[4:6], text[2:6]], text[:2], "stop",
                                                                                text[2:6], 6)]
            for stop, shown, reason, stop_reason, tokens in cases:
                with self.subTest(way=way, stop=stop, k=k):
                    cap = 8 if reason == "length" else 20
                    answer = ask(self.server, way, "abc", stop=stop, max_tokens=cap, **GREEDY, **drafts(k))
                    self.expect(way, answer, shown, reason, stop_reason, tokens)

    def test_A3_the_cap_is_what_is_delivered_over_every_way(self):
        for way, k, cap in itertools.product(WAYS, (0, 1, 4, 8), (1, 2, 3, 9, 10, 20)):
            with self.subTest(way=way, k=k, cap=cap):
                answer = ask(self.server, way, "abc", max_tokens=cap, ignore_eos=True, **GREEDY, **drafts(k))
                self.expect(way, answer, self.first(way)[:cap], "length", None, cap)

    def test_stop_string_stop_id_and_cap_in_one_run_the_earliest_wins(self):
        for way, k in itertools.product(WAYS, (0, 1, 5, 8)):
            text = self.first(way)
            for string_at, id_at, cap in itertools.permutations((3, 5, 6)):
                with self.subTest(way=way, k=k, string_at=string_at, id_at=id_at, cap=cap):
                    answer = ask(self.server, way, "abc", stop=text[string_at - 2:string_at], max_tokens=cap,
                                 stop_token_ids=[ord(text[id_at - 1])], **GREEDY, **drafts(k))
                    if string_at == 3:
                        self.expect(way, answer, text[:1], "stop", text[1:3], 3)
                    elif id_at == 3:
                        self.expect(way, answer, text[:2], "stop", ord(text[2]), 3)
                    else:
                        self.expect(way, answer, text[:3], "length", None, 3)

    def test_a_stop_that_completes_exactly_at_the_cap_wins(self):
        for way, k in itertools.product(WAYS, (0, 4)):
            text = self.first(way)
            answer = ask(self.server, way, "abc", stop=text[3:5], max_tokens=5, **GREEDY, **drafts(k))
            self.expect(way, answer, text[:3], "stop", text[3:5], 5)

    def test_A1_and_A3_hold_for_generate_on_the_command_line(self):
        requests = [{"prompt": "abc", "stop": TEXT[start:start + 2], "max_tokens": cap, **GREEDY, **drafts(k)}
                    for start in range(0, 10) for cap in (5, 20) for k in (0, 1, 5, 8)]
        answers = offline(made("cycle"), requests, "--draft-model", made("cycle-bad"))
        for request, answer in zip(requests, answers):
            start = TEXT.index(request["stop"])
            if start + 2 <= request["max_tokens"]:
                self.expect("ws", answer, TEXT[:start], "stop", request["stop"], start + 2)
            else:
                # A near match at the cap is flushed.
                self.expect("ws", answer, TEXT[:request["max_tokens"]], "length", None, request["max_tokens"])


    def test_bytes_that_are_no_text_become_valid_text_everywhere(self):
        # Once round the ring: every byte, those above 127 never as UTF-8.
        for way, k, cap in itertools.product(WAYS, (0, 3, 8), (125, 126, 260)):
            with self.subTest(way=way, k=k, cap=cap):
                answer = ask(self.server, way, "abc", max_tokens=cap, logprobs=2, **GREEDY, **drafts(k))
                self.assertEqual(len(answer["token_ids"]), cap)
                self.assertEqual(answer["text"], self.server.detokenize(answer["token_ids"]))
                self.assertEqual("".join(answer["pieces"]), answer["text"])


class EndTokens(Asking):
    """The ring: a b c d e f END g h i j END2 k ... behind "abc" the end tokens are the 4th and the 9th."""
    target, draft = "cycle-end", "cycle-end-bad"
    IDS_WAYS = [way for way in WAYS if not way.startswith("chat")]
    BEHIND = [100, 101, 102, 257, 103, 104, 105, 106, 258] + [ord(c) for c in "klmnopqrs"]

    def test_A4_min_tokens_and_ignore_eos_for_every_k(self):
        for way, k, minimum, ignored in itertools.product(self.IDS_WAYS, (0, 1, 2, 3, 6), range(0, 9), (False, True)):
            with self.subTest(way=way, k=k, minimum=minimum, ignored=ignored):
                fields = {"max_tokens": 12, "min_tokens": minimum, "ignore_eos": ignored}
                answer = ask(self.server, way, "abc", **GREEDY, **fields, **drafts(k))
                plain = ask(self.server, "completions", "abc", **GREEDY, **fields, **drafts(0))
                ids = answer["token_ids"]
                self.assertEqual(ids, plain["token_ids"])
                held = ids[:minimum] if not ignored else []
                self.assertFalse({257, 258} & set(held))
                ended = [place for place, token in enumerate(ids) if token in (257, 258)]
                if not ignored:
                    self.assertEqual(ended, [len(ids) - 1] if len(ids) < 12 else [])
                self.assertNotIn("<|", answer["text"])
                if k > 0:
                    self.assertGreater(answer["timings"]["draft_n"], 0)

    def test_any_of_several_end_tokens_ends_inside_a_run_and_is_not_shown(self):
        for way, k, (prompt, expected) in itertools.product(self.IDS_WAYS, (0, 1, 3, 5, 8),
                                                            (("abc", self.BEHIND[:4]), ("g", self.BEHIND[5:9]))):
            with self.subTest(way=way, k=k, prompt=prompt):
                answer = ask(self.server, way, prompt, max_tokens=15, **GREEDY, **drafts(k))
                self.assertEqual(answer["token_ids"], expected)
                self.assertEqual(answer["text"], bytes(expected[:-1]).decode())
                if way in SAYS_REASON:
                    self.assertEqual((answer["finish_reason"], answer["stop_reason"]), ("stop", None))
                    self.assertEqual(answer["usage"]["completion_tokens"], 4)

    def test_an_end_token_a_stop_and_the_cap_in_one_run_the_earliest_wins(self):
        for way, k in itertools.product(self.IDS_WAYS, (0, 3, 8)):
            cases = [({"stop": "ef"}, "d", 3), ({"max_tokens": 3}, "def", 3), ({"stop": "fg"}, "def", 4),
                     ({"max_tokens": 4}, "def", 4), ({"stop_token_ids": [101]}, "d", 2),
                     ({"stop": "fg", "ignore_eos": True}, "de", 5), ({"stop_token_ids": [257], "ignore_eos": True}, "def", 4)]
            for fields, text, tokens in cases:
                with self.subTest(way=way, k=k, fields=fields):
                    answer = ask(self.server, way, "abc", **{"max_tokens": 12, **GREEDY, **fields, **drafts(k)})
                    self.assertEqual((answer["text"], len(answer["token_ids"])), (text, tokens))

    def test_A4_log_probabilities_and_ids_describe_the_same_tokens(self):
        for k in (0, 3, 8):
            for way in ("completions", "completions streamed"):
                answer = ask(self.server, way, "abc", max_tokens=12, logprobs=2, **GREEDY, **drafts(k))
                self.assertEqual(len(answer["logprobs"]), len(answer["token_ids"]))


class ForcedText(Asking):
    """A ring that says a text whose characters are cut at every place, from any token outside the ring on."""
    target, draft = "cycle-text", "cycle-text-bad"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.path.join(MADE_MODELS, "cycle-text.txt"), encoding="utf-8", newline="") as file:
            cls.text = file.read()

    def ask_text(self, way, **fields):
        # Behind chat's template stands a line feed, which is no part of the ring either.
        return ask(self.server, way, "hi" if way.startswith("chat") else [0], **{**GREEDY, "max_tokens": 200, **fields})

    def test_C1_joined_pieces_equal_the_text_for_every_k(self):
        for way, k in itertools.product(WAYS, (0, 1, 3, 8)):
            with self.subTest(way=way, k=k):
                answer = self.ask_text(way, **drafts(k))
                self.assertEqual("".join(answer["pieces"]), self.text)
                self.assertEqual(self.server.detokenize(answer["token_ids"][:-1]), self.text)  # its end token
                for piece in answer["pieces"]:
                    self.assertNotIn("\N{REPLACEMENT CHARACTER}", piece)

    def test_C1_an_answer_cut_inside_a_character_is_valid_text_everywhere(self):
        whole = self.ask_text("completions")["token_ids"]
        requests = []
        for cap in range(1, len(whole), 3):
            expected = self.server.detokenize(whole[:cap])
            for way, k in itertools.product(WAYS, (0, 3)):
                with self.subTest(way=way, k=k, cap=cap):
                    answer = self.ask_text(way, max_tokens=cap, **drafts(k))
                    self.assertEqual(answer["text"], expected)
            requests.append({"prompt": "\0", "max_tokens": cap, **GREEDY, **drafts(3)})
        for request, answer in zip(requests, offline(made("cycle-text"), requests, "--draft-model", made("cycle-text-bad"))):
            self.assertEqual(answer["text"], self.server.detokenize(whole[:request["max_tokens"]]))

    def test_C3_a_stop_with_an_emoji_is_cut_wherever_its_tokens_are_cut(self):
        for stop in ("\N{WOMAN}\u200d\N{GIRL}", "日本", "\N{REGIONAL INDICATOR SYMBOL LETTER D}", "\u0301", "  é", "end"):
            for way, k in itertools.product(WAYS, (0, 3, 8)):
                with self.subTest(way=way, k=k, stop=stop):
                    answer = self.ask_text(way, stop=[stop], **drafts(k))
                    self.assertEqual(answer["text"], self.text[:self.text.index(stop)])
                    self.assertEqual("".join(answer["pieces"]), answer["text"])

    def test_C1_logprobs_carry_every_byte(self):
        for way, k in itertools.product(("chat", "chat streamed"), (0, 3)):
            answer = self.ask_text(way, logprobs=1, **drafts(k))
            told = b"".join(raw for _, _, raw in answer["logprobs"][:-1])
            self.assertEqual(told.decode("utf-8"), self.text)


class Intervals(Stops):
    """The same endings when pieces are joined."""
    flags = ("--stream-interval", "7")


if __name__ == "__main__":
    unittest.main()
