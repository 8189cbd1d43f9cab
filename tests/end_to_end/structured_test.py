#!/usr/bin/env python3
"""Structured output over every way in: the answer is what was asked for, mistakes are told before its first byte."""
import json
import random
import subprocess
import threading
import unittest

import random_schemas
from serving import TANDEM, Server, made
from ways import WAYS, WebSocket, ask, drafts, offline

PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0,
                                                                                               "maximum": 150}},
          "required": ["name", "age"], "additionalProperties": False}
CHOICES = ["no", "no way", "perhaps \"so\""]
# As a client may write it; how an answer is judged.
ASKED = [
    ({"response_format": {"type": "json_object"}, "max_tokens": 12}, None),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}}, PERSON),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": True, "schema": PERSON}}}, PERSON),
    ({"structured_outputs": {"json": PERSON}}, PERSON),
    ({"guided_json": json.dumps(PERSON)}, PERSON),
    ({"structured_outputs": {"regex": "[a-c]{3}-[0-9]"}}, r"^[a-c]{3}-[0-9]$"),
    ({"guided_regex": "[a-c]{3}-[0-9]"}, r"^[a-c]{3}-[0-9]$"),
    ({"structured_outputs": {"choice": CHOICES}}, CHOICES),
    ({"guided_choice": CHOICES}, CHOICES),
    ({"structured_outputs": {"grammar": "root ::= \"x\" [yz]{2} | \"w\""}}, ["w", "xyy", "xyz", "xzy", "xzz"]),
    ({"guided_grammar": "root ::= \"x\" [yz]{2} | \"w\""}, ["w", "xyy", "xyz", "xzy", "xzz"]),
]
REFUSED = [
    ("structured_outputs.regex", {"structured_outputs": {"regex": "(a"}}),
    ("guided_regex", {"guided_regex": "(?=a)b"}),
    ("structured_outputs.json", {"structured_outputs": {"json": {"type": "objekt"}}}),
    ("structured_outputs.json", {"structured_outputs": {"json": {"type": "array", "uniqueItems": True}}}),
    ("guided_json", {"guided_json": "{\"type\": "}),
    ("response_format.json_schema.schema",
     {"response_format": {"type": "json_schema", "json_schema": {"strict": True, "schema": {"not": {}}}}}),
    ("response_format", {"response_format": {"type": "yaml"}}),
    ("guided_grammar", {"guided_grammar": "root ::= missing"}),
    ("structured_outputs", {"structured_outputs": {}}),
    ("guided_regex", {"guided_regex": "a" * 70_000}),
    ("structured_outputs.choice", {"structured_outputs": {"choice": ["a"] * 2000}}),
    ("guided_choice", {"guided_regex": "a", "guided_choice": ["b"]}),
    ("ignore_eos", {"guided_regex": "a", "ignore_eos": True}),
    ("min_tokens", {"guided_regex": "a", "min_tokens": 3}),
]
QUESTION = "one two one two, what then? "


def judge(case, text, wanted):
    if isinstance(wanted, dict):
        case.assertTrue(random_schemas.fits(text, wanted), text)
    elif isinstance(wanted, list):
        case.assertIn(text, wanted)
    elif wanted is not None:
        case.assertRegex(text, wanted)
    else:
        case.assertTrue(text.startswith("{"), text)


class Structured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("rand"), "--draft-model", made("rand-noisy"), "--dtype", "fp32", "--max-num-seqs", "32")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def test_every_way_of_asking_over_every_way_in_with_drafts_and_without(self):
        for fields, wanted in ASKED:
            for way in WAYS:
                answers = []
                for k in (0, 4):
                    with self.subTest(fields=fields, way=way, k=k):
                        sampled = {"max_tokens": 200, "temperature": 0.9, "seed": 5, **fields, **drafts(k)}
                        answers.append(ask(self.server, way, QUESTION, **sampled))
                        judge(self, answers[-1]["text"], wanted)
                        if wanted is not None and "finish_reason" in answers[-1]:
                            self.assertEqual(answers[-1]["finish_reason"], "stop")
                            self.assertIn(answers[-1]["token_ids"][-1], (257, 258))
                self.assertEqual(answers[0]["token_ids"], answers[1]["token_ids"])

    def test_offline_by_lines_and_by_flag(self):
        lines = [{"prompt": QUESTION, "max_tokens": 200, "seed": 5, **fields} for fields, _ in ASKED]
        for (fields, wanted), answer in zip(ASKED, offline(made("rand"), lines, "--dtype", "fp32")):
            with self.subTest(fields=fields):
                judge(self, answer["text"], wanted)
        done = subprocess.run([TANDEM, "generate", made("rand"), "--prompt", QUESTION, "--structured-outputs",
                               json.dumps({"choice": CHOICES})], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn(done.stdout.removesuffix("\n"), CHOICES)

    def test_choices_of_one_prompt_each_follow_the_grammar(self):
        body = {"prompt": QUESTION, "n": 6, "max_tokens": 200, "guided_json": PERSON, "seed": 2, "temperature": 1.5}
        status, answer = self.server.post("/v1/completions", body)
        self.assertEqual(status, 200, answer)
        for choice in answer["choices"]:
            judge(self, choice["text"], PERSON)
        self.assertGreater(len({choice["text"] for choice in answer["choices"]}), 1)

    def test_mistakes_are_told_before_the_first_byte(self):
        for field, fields in REFUSED:
            for path, asked in (("/v1/completions", {"prompt": "a"}), ("/generate", {"prompt": "a"}),
                                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})):
                for stream in (False, True):
                    with self.subTest(field=field, path=path, stream=stream):
                        status, answer = self.server.post(path, {**asked, **fields, "stream": stream, "max_tokens": 5})
                        self.assertEqual(status, 400, answer)
                        self.assertEqual(answer["error"]["param"], field)
                        self.assertIn(field.split(".")[0], answer["error"]["message"])
            lane = WebSocket(self.server)
            lane.send(json.dumps({"id": 1, "prompt": "a", **fields})) if len(json.dumps(fields)) < 60_000 else lane.send(
                json.dumps({"id": 1, "prompt": "a", "guided_regex": "("}))
            self.assertIn("error", json.loads(lane.receive()))
            lane.close()
        self.server.wait_idle()

    def test_parameters_that_leave_no_token_end_the_answer_with_a_sentence(self):
        body = {"prompt": "a", "guided_regex": "ab", "allowed_token_ids": [ord("a"), ord("c")], "max_tokens": 5}
        status, answer = self.server.post("/v1/completions", body)
        self.assertEqual(status, 400, answer)
        self.assertIn("'guided_regex' cannot be followed any further after 1 tokens", answer["error"]["message"])
        events = self.server.stream("/v1/completions", body)
        self.assertIn("guided_regex", events[-1]["error"]["message"])
        self.server.wait_idle()

    def test_grammars_that_take_long_hurt_nobody_else(self):
        hard = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(1000)}}
        statuses = []
        slow = threading.Thread(target=lambda: statuses.append(
            self.server.post("/v1/completions", {"prompt": "a", "guided_json": hard, "max_tokens": 3})[0]))
        slow.start()
        for seed in range(5):
            self.assertTrue(self.server.complete(QUESTION, max_tokens=5, seed=seed)["text"])
            judge(self, self.server.complete(QUESTION, max_tokens=9, seed=seed, guided_regex="[a-c]{3}-[0-9]")["text"],
                  r"^[a-c]{3}-[0-9]$") if not slow.is_alive() else None
        slow.join()
        self.assertIn(statuses[0], (200, 400))
        self.server.wait_idle()

    def test_random_schemas(self):
        draw = random.Random(2024)
        schemas = [random_schemas.document(draw) for _ in range(60)]
        lines = [{"prompt": f"Number {i}: ", "max_tokens": 450, "temperature": 1, "seed": i, "guided_json": schema,
                  **drafts((0, 4)[i % 2], "ngram")} for i, schema in enumerate(schemas)]
        ended = 0
        for schema, answer in zip(schemas, offline(made("rand"), lines, "--dtype", "fp32")):
            if answer["finish_reason"] == "stop":
                ended += 1
                self.assertTrue(random_schemas.fits(answer["text"], schema), (answer["text"], schema))
        self.assertGreater(ended, len(schemas) * 3 // 4)


if __name__ == "__main__":
    unittest.main()
