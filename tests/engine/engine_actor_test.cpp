#include <gtest/gtest.h>

#include <caf/all.hpp>

#include "tandem/actor.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem {
namespace {

struct host {
  host() {
    test::write_gguf(test::make_cycle(), folder / "cycle.gguf");
    add_message_types(config);
    options.model = (folder / "cycle.gguf").string();
    options.threads = 1;
  }
  test::temporary_folder folder;
  caf::actor_system_config config;
  Options options;
};

Request request(const std::string& prompt, std::int32_t tokens) {
  Request wanted;
  wanted.prompt = prompt;
  wanted.sampling.temperature = 0;
  wanted.sampling.max_tokens = tokens;
  return wanted;
}

TEST(engine_actor, answers_streams_and_ends_in_the_hosts_own_system) {
  host setup;
  caf::actor_system system(setup.config);
  {
    const EngineActor engine = spawn_engine(system, setup.options);
    caf::scoped_actor self(system);
    self->request(engine, caf::infinite, request("abc", 3))
        .receive([](const Output& output) { EXPECT_EQ(output.choices.at(0).text, "def"); },
                 [&](const caf::error& problem) { FAIL() << system.render(problem); });

    self->request(engine, caf::infinite, stream_atom::value, request("a", 4), caf::actor_cast<caf::actor>(self))
        .receive([](std::uint64_t) {}, [&](const caf::error& problem) { FAIL() << system.render(problem); });
    std::string text;
    bool ended = false;
    self->receive_while([&] { return !ended; })([&](std::uint64_t, const Event& event) {
      text += event.text;
      ended = !event.finish_reason.empty();
    });
    EXPECT_EQ(text, "bcde");

    Request wrong = request("a", 1);
    wrong.sampling.top_p = 7;
    self->request(engine, caf::infinite, wrong)
        .receive(
            [](const Output&) { FAIL() << "was accepted"; },
            [&](const caf::error& problem) { EXPECT_NE(system.render(problem).find("top_p"), std::string::npos); });
    self->send_exit(engine, caf::exit_reason::user_shutdown);
  }
  system.await_all_actors_done();
}

TEST(engine_actor, a_request_in_flight_gets_an_error_when_the_engine_is_stopped) {
  host setup;
  caf::actor_system system(setup.config);
  {
    const EngineActor engine = spawn_engine(system, setup.options);
    caf::scoped_actor self(system);
    auto pending = self->request(engine, caf::infinite, request("a", 2000));
    self->send_exit(engine, caf::exit_reason::user_shutdown);
    pending.receive([](const Output&) { FAIL() << "it cannot have ended"; },
                    [](const caf::error& problem) { EXPECT_TRUE(static_cast<bool>(problem)); });
  }
  system.await_all_actors_done();
}

TEST(engine_actor, messages_survive_the_wire) {
  host setup;
  caf::actor_system system(setup.config);
  Request sent = request("abc", 3);
  sent.sampling.seed = 7;
  sent.sampling.stop = {"x"};
  sent.messages = {{"user", "hi"}};
  sent.timeout = std::chrono::milliseconds(5);
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  ASSERT_FALSE(sink(sent));
  Request received;
  caf::binary_deserializer source(system, bytes);
  ASSERT_FALSE(source(received));
  EXPECT_EQ(received.prompt, "abc");
  EXPECT_EQ(received.sampling.max_tokens, 3);
  EXPECT_EQ(received.sampling.seed, 7u);
  EXPECT_EQ(received.sampling.stop, sent.sampling.stop);
  EXPECT_EQ(received.messages.at(0).content, "hi");
  EXPECT_EQ(received.timeout, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace tandem
