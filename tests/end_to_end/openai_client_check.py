#!/usr/bin/env python3
"""The official openai client and the websockets package against `tandem serve`: what their users write must work.

Each half runs only where its package can be imported. With neither the exit status is 77, which ctest shows as skipped.
Of the answers of a made model only the shape is known; with the demo model also that chat says something.
"""
import asyncio
import json
import sys
import unittest

from client_packages import SKIPPED, have
from serving import Server, made, real

HAVE_OPENAI = have("openai")
HAVE_WEBSOCKETS = have("websockets")
if HAVE_OPENAI:
    import openai
if HAVE_WEBSOCKETS:
    import websockets

WAIT_S = 60
QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name a colour."}]


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(real("smollm2-135m") or made("rand"), "--max-model-len", "512",
                            "--max-num-queued-reqs", "64")
        cls.root = f"{cls.server.host}:{cls.server.port}"

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()


@unittest.skipUnless(HAVE_OPENAI, "the openai package is not there")
class openai_client(Served):
    def setUp(self):
        self.client = openai.OpenAI(base_url=f"http://{self.root}/v1", api_key="any", max_retries=0, timeout=WAIT_S)
        self.model = self.server.name

    def tearDown(self):
        self.client.close()

    def test_models_are_listed_and_found_by_name(self):
        self.assertEqual([model.id for model in self.client.models.list()], [self.model])
        one = self.client.models.retrieve(self.model)
        self.assertEqual((one.id, one.object), (self.model, "model"))

    def test_a_completion_has_text_usage_and_a_finish_reason(self):
        answer = self.client.completions.create(model=self.model, prompt="Hello", max_tokens=5, temperature=0,
                                                extra_body={"ignore_eos": True})
        self.assertEqual((answer.object, answer.model), ("text_completion", self.model))
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 5)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 5)
        self.assertIsInstance(answer.usage.prompt_tokens_details.cached_tokens, int)
        self.assertIsInstance(answer.created, int)

    def test_two_prompts_with_two_choices_each_are_four_choices_in_order(self):
        answer = self.client.completions.create(model=self.model, prompt=["Hello", "World"], n=2, max_tokens=3, seed=1)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])

    def test_a_prompt_may_be_token_ids(self):
        answer = self.client.completions.create(model=self.model, prompt=[5, 6, 7], max_tokens=2)
        self.assertEqual(answer.usage.prompt_tokens, 3)

    def test_a_streamed_completion_is_the_plain_one_in_pieces(self):
        wanted = dict(model=self.model, prompt="Once upon a time", max_tokens=8, temperature=0,
                      extra_body={"ignore_eos": True})
        plain = self.client.completions.create(**wanted)
        events = list(self.client.completions.create(**wanted, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(event.choices[0].text for event in events if event.choices), plain.choices[0].text)
        self.assertEqual(events[-1].usage.completion_tokens, 8)
        self.assertEqual([event.choices[0].finish_reason for event in events if event.choices][-1], "length")
        self.assertEqual(len({event.id for event in events}), 1)

    def test_completion_logprobs_are_parallel_lists(self):
        answer = self.client.completions.create(model=self.model, prompt="Hello", max_tokens=4, temperature=0,
                                                logprobs=2, extra_body={"ignore_eos": True})
        logprobs = answer.choices[0].logprobs
        lengths = {len(part) for part in (logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs,
                                          logprobs.text_offset)}
        self.assertEqual(lengths, {4})
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs))

    def test_a_chat_answers_as_the_assistant(self):
        answer = self.client.chat.completions.create(model=self.model, messages=QUESTION, max_tokens=8, temperature=0)
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertIsInstance(answer.choices[0].message.content, str)
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))

    def test_a_streamed_chat_is_the_plain_one_in_pieces(self):
        wanted = dict(model=self.model, messages=QUESTION, max_completion_tokens=8, temperature=0)
        plain = self.client.chat.completions.create(**wanted)
        events = list(self.client.chat.completions.create(**wanted, stream=True))
        self.assertEqual(events[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(event.choices[0].delta.content or "" for event in events),
                         plain.choices[0].message.content)
        self.assertEqual(events[-1].choices[0].finish_reason, plain.choices[0].finish_reason)

    def test_the_stream_accumulator_of_the_client_gives_a_whole_chat_completion(self):
        with self.client.chat.completions.stream(model=self.model, messages=QUESTION, max_tokens=8, temperature=0,
                                                 stream_options={"include_usage": True}) as stream:
            kinds = {event.type for event in stream}
            whole = stream.current_completion_snapshot  # the final one would refuse an answer that max_tokens cut
        self.assertIn("chunk", kinds)
        self.assertEqual(whole.choices[0].message.role, "assistant")
        self.assertIn(whole.choices[0].finish_reason, ("stop", "length"))
        self.assertGreater(whole.usage.completion_tokens, 0)

    def test_chat_logprobs_have_a_token_its_bytes_and_its_rivals(self):
        answer = self.client.chat.completions.create(model=self.model, messages=QUESTION, max_tokens=3, temperature=0,
                                                     logprobs=True, top_logprobs=2)
        entries = answer.choices[0].logprobs.content
        self.assertEqual(len(entries), answer.usage.completion_tokens)
        for entry in entries:
            self.assertLessEqual(entry.logprob, 0)
            self.assertIsInstance(entry.bytes, list)
            self.assertEqual(len(entry.top_logprobs), 2)
            self.assertEqual(entry.top_logprobs[0].token, entry.token)

    def test_content_parts_and_stop_strings_work(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "Count: 1, 2, 3,"}]}]
        answer = self.client.chat.completions.create(model=self.model, messages=parts, max_tokens=8,
                                                     stop=["zzzz", "qqqq"])
        self.assertIsNotNone(answer.choices[0].message.content)

    def test_every_mistake_has_its_exception(self):
        create = self.client.completions.create
        with self.assertRaises(openai.BadRequestError) as bad:
            create(model=self.model, prompt="Hello", max_tokens=5, temperature=-1)
        self.assertEqual((bad.exception.status_code, bad.exception.param), (400, "temperature"))
        self.assertEqual(bad.exception.type, "invalid_request_error")
        with self.assertRaises(openai.NotFoundError) as unknown:
            create(model="nobody", prompt="Hello", max_tokens=5)
        self.assertEqual(unknown.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError):
            create(model=self.model, prompt="word " * 4000, max_tokens=5)
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(model=self.model, messages=[])
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model=self.model, input="Hello")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("nobody")

    def test_a_mistake_in_a_streamed_request_is_raised_before_the_first_event(self):
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(model=self.model, messages=QUESTION, stream=True, top_p=7)

    def test_a_stream_left_half_way_frees_its_sequence(self):
        stream = self.client.completions.create(model=self.model, prompt="Hello", max_tokens=400, stream=True,
                                                extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.server.wait_idle()

    def test_the_raw_response_carries_the_request_id(self):
        raw = self.client.completions.with_raw_response.create(model=self.model, prompt="Hello", max_tokens=2,
                                                               extra_headers={"X-Request-Id": "mine-1"})
        self.assertEqual(raw.headers["x-request-id"], raw.parse().id)
        self.assertTrue(raw.parse().id.endswith("mine-1"))

    def test_the_asynchronous_client_runs_many_at_once(self):
        async def all_of_them():
            async with openai.AsyncOpenAI(base_url=f"http://{self.root}/v1", api_key="any", max_retries=0) as client:
                async def one(number):
                    text = ""
                    async for event in await client.chat.completions.create(
                            model=self.model, messages=[{"role": "user", "content": f"Number {number}."}], max_tokens=6,
                            stream=True):
                        text += event.choices[0].delta.content or ""
                    return text
                return await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(16))), WAIT_S)
        self.assertEqual(len(asyncio.run(all_of_them())), 16)


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


@unittest.skipUnless(HAVE_OPENAI and real("qwen2.5-coder-0.5b"), "no openai package or no model that knows tools")
class openai_client_with_tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(real("qwen2.5-coder-0.5b"), "--max-model-len", "1024")
        cls.client = openai.OpenAI(base_url=f"http://{cls.server.host}:{cls.server.port}/v1", api_key="any",
                                   max_retries=0, timeout=WAIT_S)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()

    def wanted(self, **more):
        question = [{"role": "user", "content": "What is the weather in Paris? Use the tool."}]
        return {"model": self.server.name, "messages": question, "tools": [WEATHER], "max_tokens": 64,
                "temperature": 0, **more}

    def check(self, choice):
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertIn(choice.message.content, (None, ""))
        call, = choice.message.tool_calls
        self.assertEqual((call.type, call.function.name), ("function", "get_weather"))
        self.assertEqual(json.loads(call.function.arguments), {"city": "Paris"})
        self.assertTrue(call.id.startswith("call_"))
        return call

    def test_a_call_and_its_result_go_round(self):
        answer = self.client.chat.completions.create(**self.wanted())
        call = self.check(answer.choices[0])
        wanted = self.wanted()
        wanted["messages"] += [answer.choices[0].message.model_dump(exclude_none=True),
                               {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 23 degrees."}]
        reply = self.client.chat.completions.create(**{**wanted, "tool_choice": "none"})
        self.assertEqual(reply.choices[0].message.role, "assistant")
        self.assertGreater(reply.usage.prompt_tokens, answer.usage.total_tokens)

    def test_the_accumulator_of_the_client_puts_a_stream_of_calls_together(self):
        with self.client.chat.completions.stream(**self.wanted()) as stream:
            kinds = {event.type for event in stream}
            self.check(stream.get_final_completion().choices[0])
        self.assertIn("tool_calls.function.arguments.done", kinds)

    def test_every_choice_has_calls_of_its_own(self):
        answer = self.client.chat.completions.create(**self.wanted(n=2))
        first, second = (self.check(choice) for choice in answer.choices)
        self.assertNotEqual(first.id, second.id)

    def test_without_tool_choice_the_call_stays_text(self):
        answer = self.client.chat.completions.create(**self.wanted(tool_choice="none"))
        self.assertIsNone(answer.choices[0].message.tool_calls)
        self.assertIn("get_weather", answer.choices[0].message.content)

    def test_a_call_that_is_required_comes_whatever_was_asked(self):
        hello = [{"role": "user", "content": "Say hello."}]
        free = self.client.chat.completions.create(**self.wanted(messages=hello))
        self.assertIsNone(free.choices[0].message.tool_calls)
        for choice, reason in (("required", "tool_calls"),
                               ({"type": "function", "function": {"name": "get_weather"}}, "stop")):
            answer = self.client.chat.completions.create(**self.wanted(messages=hello, tool_choice=choice,
                                                                       parallel_tool_calls=False))
            first = answer.choices[0]
            self.assertEqual(first.finish_reason, reason)
            call, = first.message.tool_calls
            self.assertEqual(call.function.name, "get_weather")
            self.assertEqual({key: type(value) for key, value in json.loads(call.function.arguments).items()},
                             {"city": str})

    def test_strict_arguments_follow_the_schema(self):
        function = {**WEATHER["function"], "strict": True, "parameters": {
            "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer"}},
            "required": ["city", "days"], "additionalProperties": False}}
        answer = self.client.chat.completions.create(**self.wanted(
            tools=[{"type": "function", "function": function}], tool_choice="required", parallel_tool_calls=False))
        arguments = json.loads(answer.choices[0].message.tool_calls[0].function.arguments)
        self.assertIn(arguments["city"], ("Rome", "Oslo"))
        self.assertIsInstance(arguments["days"], int)

    def test_what_is_not_offered_is_told(self):
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(**self.wanted(tools=[{"type": "function", "function": {"name": "no name"}}]))


@unittest.skipUnless(HAVE_OPENAI, "the openai package is not there")
class openai_client_with_keys(unittest.TestCase):
    def test_a_wrong_key_is_an_authentication_error_and_the_right_one_works(self):
        with Server(made("rand"), "--api-key", "right") as server:
            url = f"http://{server.host}:{server.port}/v1"
            with openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as wrong:
                with self.assertRaises(openai.AuthenticationError):
                    wrong.models.list()
            with openai.OpenAI(base_url=url, api_key="right", max_retries=0) as right:
                self.assertEqual(right.models.list().data[0].id, server.name)


@unittest.skipUnless(HAVE_WEBSOCKETS, "the websockets package is not there")
class websockets_client(Served):
    def talk(self, conversation):
        async def run():
            async with websockets.connect(f"ws://{self.root}/ws", max_size=1 << 24) as socket:
                return await conversation(socket)
        return asyncio.run(asyncio.wait_for(run(), WAIT_S))

    @staticmethod
    async def until_end(socket, wanted):
        """Frames per id, until each id of `wanted` had its last one."""
        frames = {one: [] for one in wanted}
        open_ids = set(wanted)
        while open_ids:
            frame = json.loads(await socket.recv())
            frames[frame["id"]].append(frame)
            if "usage" in frame or "error" in frame:
                open_ids.discard(frame["id"])
        return frames

    def test_requests_share_a_socket_and_each_ends_with_its_usage(self):
        async def conversation(socket):
            for number in range(8):
                await socket.send(json.dumps({"id": number, "prompt": f"Number {number}", "max_tokens": 6,
                                              "ignore_eos": True}))
            return await self.until_end(socket, range(8))
        for frames in self.talk(conversation).values():
            self.assertEqual(frames[-1]["usage"]["completion_tokens"], 6)
            self.assertEqual(sum(len(frame["token_ids"]) for frame in frames), 6)
            self.assertEqual([frame["finish_reason"] for frame in frames if frame.get("finish_reason")], ["length"])

    def test_chat_errors_and_cancels_leave_the_socket_open(self):
        async def conversation(socket):
            await socket.send("not json")
            first = json.loads(await socket.recv())
            await socket.send(json.dumps({"id": "long", "prompt": "Hello", "max_tokens": 400, "ignore_eos": True}))
            await socket.recv()
            await socket.send(json.dumps({"id": "long", "cancel": True}))
            cancelled = await self.until_end(socket, ["long"])
            await socket.send(json.dumps({"id": "chat", "messages": QUESTION, "max_tokens": 4}))
            chat = await self.until_end(socket, ["chat"])
            return first, cancelled["long"][-1], chat["chat"][-1]
        first, cancelled, chat = self.talk(conversation)
        self.assertIsNone(first["id"])
        self.assertIn("message", first["error"])
        self.assertEqual(cancelled["finish_reason"], "cancelled")
        self.assertIn(chat["finish_reason"], ("stop", "length"))

    def test_pings_are_answered_and_a_close_is_clean(self):
        async def conversation(socket):
            await asyncio.wait_for(await socket.ping(), WAIT_S)
            await socket.close()
            return socket.close_code
        self.assertEqual(self.talk(conversation), 1000)

    def test_a_binary_frame_closes_with_1003(self):
        async def conversation(socket):
            await socket.send(b"\x00")
            try:
                await socket.recv()
            except websockets.exceptions.ConnectionClosed as closed:
                return closed.rcvd.code
            return None
        self.assertEqual(self.talk(conversation), 1003)


if __name__ == "__main__":
    if not HAVE_OPENAI and not HAVE_WEBSOCKETS:
        print("openai_client_check: skipped, neither the openai nor the websockets package is there; "
              "try pip install openai websockets.")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
