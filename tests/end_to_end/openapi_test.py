#!/usr/bin/env python3
"""/openapi.json says what there is: every endpoint, every field that is read, its bounds, and every member of an answer."""
import json
import os
import re
import unittest

from serving import Server, made

NET = os.path.join(os.environ["TANDEM_SOURCE"], "net")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROUTE = re.compile(r'route\{"([^"]+)", (true|false), "([A-Z]+)"')
# How the sources of net/ read a field of a request.
READ = re.compile(r'\b(?:fields|inner)\.(?:boolean|integer|number|string|object|array|any|tokens|refuse_unsupported)\(\s*"(\w+)"'
                  r'|\b(?:positive_number|float_or|read_top)\(\s*(?:fields|inner), "(\w+)"'
                  r'|for \(const std::string_view \w+ :\s*\{((?:\s*"\w+",?)+)\s*\}\)')
HEADER_PARAMETERS = {"X-Request-Id", "X-Request-Timeout-Ms", "If-None-Match"}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
WHOLE = 2 ** 63


def read_sources():
    for folder, _, names in os.walk(NET):
        for name in sorted(names):
            if name.endswith(".cpp"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    yield file.read()


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(made("cycle"), "--speculative-config", '{"method": "ngram"}')
        cls.document = json.loads(cls.server.send("GET", "/openapi.json")[2])

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def resolve(self, part):
        while "$ref" in part:
            found = self.document
            for name in part["$ref"][2:].split("/"):
                found = found[name]
            part = found
        return part

    def properties(self, schema):
        """Name → schema, of the object and of all that it is made from."""
        schema = self.resolve(schema)
        all_of_it = {}
        for part in schema.get("allOf", []):
            all_of_it.update(self.properties(part))
        all_of_it.update(schema.get("properties", {}))
        return {name: self.resolve(one) for name, one in all_of_it.items()}

    def request_schemas(self):
        """path → schema of the body, for the endpoints that take one."""
        for path, operations in self.document["paths"].items():
            body = operations.get("post", {}).get("requestBody")
            if body:
                yield path, body["content"]["application/json"]["schema"]

    # --- endpoints ----------------------------------------------------------------------------------------------

    def test_the_paths_are_those_of_the_routers_table(self):
        with open(os.path.join(NET, "router.cpp"), encoding="utf-8") as file:
            table = {(path + ("{" if prefix == "true" else ""), method) for path, prefix, method in ROUTE.findall(file.read())}
        self.assertGreater(len(table), 15)
        # The router tells what follows a prefix no further apart.
        described = {(re.sub(r"\{.*", "{", path), method.upper())
                     for path, operations in self.document["paths"].items() for method in operations}
        self.assertEqual(described, table)

    def test_other_methods_are_refused_with_the_described_ones(self):
        for path in self.document["paths"]:
            described = {method.upper() for other, operations in self.document["paths"].items() for method in operations
                         if other == path or ("{" in path and other.split("{")[0] == path.split("{")[0])}
            allowed = described | ({"HEAD"} if "GET" in described else set())
            for method in METHODS:
                if method in described:
                    continue
                status, headers, _ = self.server.send(method, re.sub(r"\{\w+\}", "x", path))
                self.assertEqual(status, 405, (method, path))
                self.assertEqual({name.strip() for name in headers["Allow"].split(",")}, allowed)

    # --- what is sent -------------------------------------------------------------------------------------------

    def test_every_field_that_is_read_is_described(self):
        read = set()
        for source in read_sources():
            for plain, by_function, listed in READ.findall(source):
                read.update(filter(None, [plain, by_function, *re.findall(r"\w+", listed)]))
        self.assertGreater(len(read), 50)
        self.assertIn("include_drafts", read)
        self.assertIn("guided_json", read)
        described = set()
        for frame in ("SocketRequest", "ClientEvent"):
            described.update(self.properties({"$ref": "#/components/schemas/" + frame}))
        for _, schema in self.request_schemas():
            for name, field in self.properties(schema).items():
                described.add(name)
                for choice in [field, *field.get("oneOf", [])]:
                    described.update(self.properties(choice))
        self.assertLessEqual(read, described)

    def refusal_of(self, path, required, name, value):
        status, answer = self.server.post(path, {**required, name: value})
        self.assertEqual(status, 404 if name == "model" and isinstance(value, str) else 400, (path, name, value, answer))
        # A count or a length that is too large may be refused in another field's words; its name is in them.
        self.assertTrue((answer["error"]["param"] or "").startswith(name) or name in answer["error"]["message"],
                        (path, name, value, answer))

    def required_of(self, path):
        """The least that the endpoint takes."""
        if path == "/v1/responses":
            return {"input": "a", "max_output_tokens": 1}
        if "tokenize" in path:
            return {"tokens": [97]} if "detokenize" in path else {"prompt": "abc"}
        least = {"messages": [{"role": "user", "content": "a"}]} if "chat" in path else {"prompt": "abc"}
        return {**least, "max_tokens": 1}

    def test_every_described_field_is_read_and_has_the_described_kind(self):
        for path, schema in self.request_schemas():
            required = self.required_of(path)
            self.assertEqual(self.server.post(path, required)[0], 200, path)
            for name, field in self.properties(schema).items():
                if not {"type", "enum", "oneOf", "const"} & set(field):
                    continue  # anything is taken
                with self.subTest(path=path, field=name):
                    kinds = {kind for one in [field, *map(self.resolve, field.get("oneOf", []))]
                             for kind in ([one["type"]] if isinstance(one.get("type"), str) else one.get("type", []))}
                    wrong = {"wrong": True} if "object" not in kinds else [True]
                    if name == "messages" and path == "/tokenize":
                        self.refusal_of(path, {}, name, wrong)
                    elif name == "add_special_tokens" and path == "/tokenize":
                        self.refusal_of(path, required, name, wrong)
                    else:
                        self.refusal_of(path, self.with_context(path, name, required), name, wrong)

    @staticmethod
    def with_context(path, name, required):
        """/tokenize reads the fields of a chat only with messages."""
        if path == "/tokenize" and name not in ("prompt", "model"):
            return {"messages": [{"role": "user", "content": "a"}]}
        return required

    def test_numbers_are_refused_just_outside_their_described_bounds(self):
        for path, schema in self.request_schemas():
            required = self.required_of(path)
            for name, field in self.properties(schema).items():
                outside = []
                step = 1 if "integer" in field.get("type", []) else 0.001
                if field.get("minimum", -WHOLE) > -WHOLE:
                    outside.append(field["minimum"] - step)
                if "exclusiveMinimum" in field:
                    outside.append(field["exclusiveMinimum"])
                if field.get("maximum", WHOLE) < WHOLE:
                    outside.append(field["maximum"] + step)
                for value in outside:
                    with self.subTest(path=path, field=name, value=value):
                        self.refusal_of(path, required, name, value)

    def test_defaults_and_null_are_taken(self):
        for path, schema in self.request_schemas():
            required = self.required_of(path)
            for name, field in self.properties(schema).items():
                values = [field["default"]] if "default" in field else []
                kinds = [field, *map(self.resolve, field.get("oneOf", []))]
                if any("null" in one.get("type", []) or None in one.get("enum", []) for one in kinds) and name not in required:
                    values.append(None)
                for value in values:
                    with self.subTest(path=path, field=name, value=value):
                        status, answer = self.server.post(path, {**required, name: value})
                        self.assertEqual(status, 200, answer)

    # --- what is answered ---------------------------------------------------------------------------------------

    def members_beyond(self, schema, value, at="answer"):
        """Where the value has members that the schema does not name."""
        schema = self.resolve(schema)
        choices = [self.resolve(one) for one in schema.get("oneOf", [])]
        if choices:
            schema = next((one for one in choices if "properties" in one or "items" in one), schema)
        if isinstance(value, list):
            return [found for one in value for found in self.members_beyond(schema.get("items", {}), one, at + "[]")]
        if not isinstance(value, dict):
            return []
        named = self.properties(schema)
        found = []
        for name, member in value.items():
            if name in named:
                found += self.members_beyond(named[name], member, f"{at}.{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                found += self.members_beyond(schema["additionalProperties"], member, f"{at}.*")
            elif named:
                found.append(f"{at}.{name}")
        return found

    def test_every_member_of_an_answer_is_described(self):
        everything = {"max_tokens": 3, "return_token_ids": True, "include_timings": True, "n": 2}
        chat = {"messages": [{"role": "user", "content": "a"}], "logprobs": True, "top_logprobs": 2, "prompt_logprobs": 1}
        asked = [("POST", "/v1/completions", {"prompt": "abcdefghijabc", "echo": True, "logprobs": 2, "prompt_logprobs": 1, **everything}),
                 ("POST", "/v1/chat/completions", {**chat, "tools": TOOLS, **everything}),
                 ("POST", "/v1/responses", {"input": "a", "max_output_tokens": 3, "include": ["message.output_text.logprobs"],
                                            "include_timings": True, "tools": [{"type": "function", "name": "f"}]}),
                 ("POST", "/generate", {"prompt": "abc", "logprobs": 1, "prompt_logprobs": 1, **everything}), ("POST", "/tokenize", {"prompt": "abc"}),
                 ("POST", "/detokenize", {"tokens": [97]}), ("GET", "/v1/models", None), ("GET", "/v1/batch", None),
                 ("GET", "/health", None), ("GET", "/live", None), ("GET", "/version", None)]
        for method, path, fields in asked:
            with self.subTest(path=path):
                status, _, body = self.server.send(method, path, json.dumps(fields).encode() if fields else None)
                self.assertEqual(status, 200, body)
                described = self.document["paths"][path][method.lower()]["responses"]["200"]
                schema = described["content"]["application/json"]["schema"]
                self.assertEqual(self.members_beyond(schema, json.loads(body)), [])
                self.assertLessEqual(set(self.resolve(schema).get("required", [])), set(json.loads(body)))

    def test_what_is_said_of_a_kept_response_is_described(self):
        for method, part in (("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", "")):
            made_one = self.server.post("/v1/responses", {"input": "a", "max_output_tokens": 2})[1]
            status, _, body = self.server.send(method, f"/v1/responses/{made_one['id']}{part}")
            self.assertEqual(status, 200, body)
            described = self.document["paths"]["/v1/responses/{id}" + part][method.lower()]["responses"]["200"]
            self.assertEqual(self.members_beyond(described["content"]["application/json"]["schema"], json.loads(body)), [])

    def test_errors_are_as_described(self):
        for method, path in (("GET", "/nowhere"), ("POST", "/v1/cancel/x"), ("GET", "/v1/models/x"), ("GET", "/page/x")):
            status, _, body = self.server.send(method, path)
            self.assertEqual(status, 404)
            self.assertEqual(self.members_beyond({"$ref": "#/components/schemas/Error"}, json.loads(body)), [])

    def test_references_lead_somewhere_and_every_part_is_used(self):
        text = json.dumps(self.document)
        named = set(re.findall(r'"#/components/(\w+/\w+)"', text))
        there = {f"{kind}/{name}" for kind, parts in self.document["components"].items() if kind != "securitySchemes"
                 for name in parts}
        self.assertEqual(named, there)
        parameters = {one["name"] for one in self.document["components"]["parameters"].values()}
        self.assertEqual(parameters, HEADER_PARAMETERS)


if __name__ == "__main__":
    unittest.main()
