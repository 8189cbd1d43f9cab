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

DraftSourceActor::behavior_type counting_drafts(DraftSourceActor::pointer self) {
  return {[self](propose_atom, const DraftRequest& at) -> caf::result<std::vector<std::int32_t>> {
    if (at.tokens.back() == 'm') return caf::make_error(caf::sec::runtime_error, "not today");
    if (at.tokens.back() == 't') self->quit();  // its last answer
    std::vector<std::int32_t> drafts;
    for (std::int32_t i = 1; i <= at.k; ++i) drafts.push_back(at.tokens.back() + i);
    return drafts;
  }};
}

TEST(engine_actor, an_actor_of_the_host_may_draft_refuse_and_die) {
  host setup;
  caf::actor_system system(setup.config);
  {
    setup.options.speculative_config = R"({"num_speculative_tokens": 1})";
    const DraftSourceActor drafts = system.spawn(counting_drafts);
    const EngineActor engine = spawn_engine(system, setup.options, drafts);
    caf::scoped_actor self(system);
    // d | e f | g h | i j | k l | m n: no drafts behind m … the answer goes on when the actor is gone.
    self->request(engine, caf::infinite, request("abc", 20))
        .receive(
            [](const Output& output) {
              EXPECT_EQ(output.choices.at(0).text, "defghijklmnopqrstuvw");
              EXPECT_GE(output.choices.at(0).usage.accepted_tokens, 5);
              EXPECT_EQ(output.choices.at(0).usage.accepted_tokens, output.choices.at(0).usage.draft_tokens);
            },
            [&](const caf::error& problem) { FAIL() << system.render(problem); });
    self->send_exit(drafts, caf::exit_reason::user_shutdown);
    self->request(engine, caf::infinite, request("abc", 20))
        .receive(
            [](const Output& output) {
              EXPECT_EQ(output.choices.at(0).text, "defghijklmnopqrstuvw");
              EXPECT_EQ(output.choices.at(0).usage.draft_tokens, 0);
            },
            [&](const caf::error& problem) { FAIL() << system.render(problem); });
    self->request(engine, caf::infinite, metrics_atom::value)
        .receive(
            [](const std::string& text) {
              EXPECT_NE(text.find("tandem:draft_source_faults_total{fault=\"exception\""), std::string::npos) << text;
            },
            [&](const caf::error& problem) { FAIL() << system.render(problem); });
    self->send_exit(engine, caf::exit_reason::user_shutdown);
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
