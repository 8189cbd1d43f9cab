#!/usr/bin/env python3
"""The Responses API as the official openai client, LangChain and the websockets package use it, against `tandem serve`.

Each part runs only where its package can be imported. With neither openai nor websockets the exit status is 77, which
ctest shows as skipped.
"""
import asyncio
import json
import sys
import time
import unittest

from client_packages import SKIPPED, have, offered
from serving import Server, made, real

HAVE_OPENAI = have("openai") and have("openai.resources.responses")
HAVE_WEBSOCKETS = have("websockets")
HAVE_LANGCHAIN = have("langchain_openai")
if HAVE_OPENAI:
    import openai
    from openai.resources.responses import Responses
if HAVE_WEBSOCKETS:
    import websockets
HAVE_CONNECT = offered(HAVE_OPENAI and HAVE_WEBSOCKETS and hasattr(Responses, "connect"), "responses.connect() of openai")

WAIT_S = 120
MORE = {"ignore_eos": True}


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(real("smollm2-135m") or made("rand"), "--max-model-len", "512",
                            "--max-num-queued-reqs", "256")
        cls.root = f"{cls.server.host}:{cls.server.port}"

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def setUp(self):
        self.model = self.server.name
        if HAVE_OPENAI:
            self.client = openai.OpenAI(base_url=f"http://{self.root}/v1", api_key="any", max_retries=0, timeout=WAIT_S)
            self.addCleanup(self.client.close)


@unittest.skipUnless(HAVE_OPENAI, "no openai package with the Responses API is there")
class over_http(Served):
    def create(self, **fields):
        wanted = dict(model=self.model, input="Name a colour.", max_output_tokens=8, temperature=0, extra_body=MORE)
        return self.client.responses.create(**{**wanted, **fields})

    def test_a_response_has_text_and_usage(self):
        answer = self.create(instructions="Be brief.", metadata={"mine": "1"})
        self.assertEqual((answer.object, answer.model, answer.status), ("response", self.model, "incomplete"))
        self.assertEqual(answer.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(answer.usage.output_tokens, 8)
        self.assertEqual(answer.usage.total_tokens, answer.usage.input_tokens + 8)
        self.assertEqual((answer.instructions, answer.metadata), ("Be brief.", {"mine": "1"}))
        self.assertIsInstance(answer.output_text, str)
        self.assertEqual(answer.output[0].role, "assistant")
        type(answer).model_validate(answer.model_dump())  # every member has the type that the client names

    def test_a_stream_is_the_plain_answer_in_pieces_with_numbers(self):
        plain = self.create()
        events = list(self.create(stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"),
                         plain.output_text)
        self.assertEqual([event.type for event in events[:2]], ["response.created", "response.in_progress"])
        self.assertEqual(events[-1].type, "response.incomplete")
        self.assertEqual(events[-1].response.output_text, plain.output_text)

    def test_the_stream_helper_of_the_client_accumulates_it(self):
        with self.client.responses.stream(model=self.model, input="Hi", max_output_tokens=5, temperature=0) as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        self.assertIsInstance(text, str)

    def test_responses_are_stored_listed_continued_and_deleted(self):
        first = self.create()
        again = self.client.responses.retrieve(first.id)
        self.assertEqual(again.output_text, first.output_text)
        items = list(self.client.responses.input_items.list(first.id))
        self.assertEqual(items[0].content[0].text, "Name a colour.")
        second = self.create(input="Another one.", previous_response_id=first.id)
        self.assertEqual(second.previous_response_id, first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(first.id)

    def test_a_streamed_response_can_be_streamed_again_from_a_number_on(self):
        made_first = list(self.create(stream=True))
        again = list(self.client.responses.retrieve(made_first[0].response.id, stream=True, starting_after=2))
        self.assertEqual([event.to_dict() for event in again], [event.to_dict() for event in made_first[3:]])

    def test_a_continued_conversation_reads_its_prompt_from_the_cache(self):
        first = self.create(input="word " * 60)
        second = self.create(input="Go on.", previous_response_id=first.id)
        self.assertGreater(second.usage.input_tokens_details.cached_tokens, 64)

    def test_in_the_background_it_is_polled_until_it_has_ended(self):
        begun = self.create(background=True, max_output_tokens=100)
        self.assertEqual((begun.status, begun.background), ("in_progress", True))
        until = time.monotonic() + WAIT_S
        while (now := self.client.responses.retrieve(begun.id)).status == "in_progress" and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual((now.status, now.usage.output_tokens), ("incomplete", 100))
        self.assertEqual(now.output_text, self.create(max_output_tokens=100).output_text)

    def test_a_running_response_is_cancelled_by_its_id(self):
        stream = self.create(stream=True, max_output_tokens=400)
        created = next(iter(stream))
        cancelled = self.client.responses.cancel(created.response.id)
        self.assertEqual(cancelled.status, "cancelled")
        self.assertEqual(list(stream)[-1].response.status, "cancelled")
        self.server.wait_idle()

    def test_log_probabilities(self):
        answer = self.create(include=["message.output_text.logprobs"], top_logprobs=2)
        logprobs = answer.output[0].content[0].logprobs
        self.assertEqual(len(logprobs), 8)
        self.assertEqual(len(logprobs[0].top_logprobs), 2)
        self.assertEqual(logprobs[0].top_logprobs[0].token, logprobs[0].token)

    def test_mistakes_have_their_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as bad:
            self.create(temperature=-1)
        self.assertEqual(bad.exception.param, "temperature")
        with self.assertRaises(openai.NotFoundError) as gone:
            self.create(previous_response_id="resp_none")
        self.assertEqual(gone.exception.param, "previous_response_id")
        with self.assertRaises(openai.BadRequestError):
            self.create(input="word " * 4000, stream=True)

    def test_fifty_at_once_by_the_asynchronous_client(self):
        async def all_of_them():
            async with openai.AsyncOpenAI(base_url=f"http://{self.root}/v1", api_key="any", max_retries=0,
                                          timeout=WAIT_S) as client:
                async def one(number):
                    stream = await client.responses.create(model=self.model, input=f"Number {number}.", stream=True,
                                                           max_output_tokens=4, extra_body=MORE)
                    return [event async for event in stream][-1].response
                return await asyncio.gather(*(one(number) for number in range(50)))
        responses = asyncio.run(all_of_them())
        self.assertEqual([response.usage.output_tokens for response in responses], [4] * 50)
        self.assertEqual(len({response.id for response in responses}), 50)
        self.server.wait_idle()


@unittest.skipUnless(HAVE_CONNECT, "no openai package with responses.connect() is there")
class over_a_websocket(Served):
    def create(self, connection, text, **fields):
        connection.response.create(model=self.model, input=text, max_output_tokens=fields.pop("max_output_tokens", 6),
                                   temperature=0, **fields)

    @staticmethod
    def until_end(connection):
        events = []
        for event in connection:
            events.append(event)
            if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
                return events
        return events

    def test_connect_works_unchanged(self):
        with self.client.responses.connect() as connection:
            self.create(connection, "Name a colour.")
            events = self.until_end(connection)
            self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
            last = events[-1].response
            self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"),
                             last.output_text)
            self.create(connection, "Another.", previous_response_id=last.id)
            self.assertEqual(self.until_end(connection)[-1].response.previous_response_id, last.id)

    def test_lanes_and_errors(self):
        with self.client.responses.connect() as connection:
            for lane in ("a", "b"):
                self.create(connection, "Hi", stream_id=lane)
            ends = [event for lane in ("a", "b") for event in self.until_end(connection)[-1:]]
            self.assertEqual({event.stream_id for event in ends}, {"a", "b"})
            self.create(connection, "Hi", previous_response_id="resp_none", stream_id="a")
            wrong = self.until_end(connection)[-1]
            self.assertEqual((wrong.type, wrong.status, wrong.stream_id), ("error", 404, "a"))
            self.assertEqual(wrong.error.param, "previous_response_id")
            self.create(connection, "Hi")
            self.assertNotEqual(self.until_end(connection)[-1].type, "error")

    def test_steering(self):
        with self.client.responses.connect() as connection:
            connection.send({"type": "response.create", "model": self.model, "input": "Write.", "max_output_tokens": 300,
                             "ignore_eos": True})
            created = next(event for event in connection if event.type == "response.created")
            connection.response.steer(input="Stop.", previous_response_id=created.response.id)
            seen = []
            for event in connection:
                seen.append(event)
                if event.type == "response.created":
                    break
            kinds = [event.type for event in seen]
            self.assertIn("response.steer.accepted", kinds)
            self.assertIn("response.incomplete", kinds)
            self.assertEqual(seen[kinds.index("response.incomplete")].response.incomplete_details.reason, "steered")
            self.assertEqual(seen[-1].response.previous_response_id, created.response.id)
            connection.send({"type": "response.cancel", "response_id": seen[-1].response.id})
            self.until_end(connection)
        self.server.wait_idle()

    def test_the_asynchronous_connection(self):
        async def talk():
            async with openai.AsyncOpenAI(base_url=f"http://{self.root}/v1", api_key="any") as client:
                async with client.responses.connect() as connection:
                    await connection.response.create(model=self.model, input="Hi", max_output_tokens=4)
                    async for event in connection:
                        if event.type in ("response.completed", "response.incomplete"):
                            return event.response.usage.output_tokens
            return None
        self.assertIn(asyncio.run(talk()), range(1, 5))


@unittest.skipUnless(HAVE_WEBSOCKETS, "the websockets package is not there")
class by_plain_websockets(Served):
    def talk(self, conversation, **options):
        async def run():
            async with websockets.connect(f"ws://{self.root}/v1/responses", max_size=1 << 24, **options) as socket:
                return await conversation(socket)
        return asyncio.run(asyncio.wait_for(run(), WAIT_S))

    @staticmethod
    async def events_until(socket, *kinds):
        events = []
        while not events or events[-1]["type"] not in (*kinds, "error"):
            events.append(json.loads(await socket.recv()))
        return events

    def test_compression_is_agreed_on_and_large_events_arrive(self):
        async def conversation(socket):
            extensions = [type(one).__name__ for one in getattr(socket, "protocol", socket).extensions]
            await socket.send(json.dumps({"type": "response.create", "input": "word " * 80, "max_output_tokens": 4}))
            events = await self.events_until(socket, "response.completed", "response.incomplete")
            return extensions, events
        extensions, events = self.talk(conversation, compression="deflate")
        self.assertEqual(extensions, ["PerMessageDeflate"])
        self.assertEqual(events[0]["type"], "response.created")

    def test_a_response_is_taken_up_again_after_the_connection_broke(self):
        async def begin(socket):
            await socket.send(json.dumps({"type": "response.create", "input": "Hi", "max_output_tokens": 100,
                                          "ignore_eos": True}))
            events = await self.events_until(socket, "response.output_text.delta")
            socket.transport.abort()
            return events

        async def go_on(socket, events):
            await socket.send(json.dumps({"type": "response.resume_from", "response_id": events[0]["response"]["id"],
                                          "sequence_number": events[-1]["sequence_number"]}))
            return await self.events_until(socket, "response.incomplete")
        first = self.talk(begin)
        rest = self.talk(lambda socket: go_on(socket, first))
        numbers = [event["sequence_number"] for event in first + rest]
        self.assertEqual(numbers, list(range(len(numbers))))
        deltas = [event["delta"] for event in first + rest if event["type"] == "response.output_text.delta"]
        self.assertEqual("".join(deltas), rest[-1]["response"]["output"][0]["content"][0]["text"])
        self.assertEqual(rest[-1]["response"]["usage"]["output_tokens"], 100)


@unittest.skipUnless(HAVE_LANGCHAIN, "the langchain-openai package is not there")
class by_langchain(Served):
    def model_of(self, **options):
        from langchain_openai import ChatOpenAI
        return ChatOpenAI(model=self.model, base_url=f"http://{self.root}/v1", api_key="any", temperature=0,
                          max_retries=0, timeout=WAIT_S, **options)

    def test_chat_and_responses_answer_and_stream(self):
        for options in ({}, {"use_responses_api": True}):
            with self.subTest(options):
                chat = self.model_of(max_tokens=6, **options)
                answer = chat.invoke([("system", "Be brief."), ("user", "Name a colour.")])
                self.assertGreater(answer.usage_metadata["output_tokens"], 0)
                self.assertGreater(len(list(chat.stream("Name a colour."))), 1)


if __name__ == "__main__":
    if not HAVE_OPENAI and not HAVE_WEBSOCKETS:
        print("responses_client_check: skipped, neither the openai nor the websockets package is there; "
              "try pip install 'openai[realtime]'.")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
