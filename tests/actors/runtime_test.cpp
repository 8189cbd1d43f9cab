// The engine with real threads over the fake device.
#include "actors/runtime.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <caf/all.hpp>
#include <thread>

#include "actors/runtime_in_system.hpp"
#include "tests/support/lab/actor_lab.hpp"

namespace tandem {
namespace {

using namespace std::chrono_literals;
constexpr auto kLong = 20s;  // only a hang lasts this long

runtime_options options_of(draft_method method, std::int32_t k) {
  auto options = lab::small_lab().engine;
  options.model_name = "fake";
  options.speculation = {method, k, std::nullopt};
  return options;
}

runtime_parts parts_of(std::int32_t blocks = 64) {
  lab::fake_device_options device;
  device.num_blocks = blocks;
  device.threaded = true;
  runtime_parts parts;
  parts.device = std::make_unique<lab::fake_device>(device);
  parts.tokenizer = lab::make_lab_tokenizer();
  return parts;
}

void expect_rest(const runtime& engine) {
  for (int i = 0; i < 2000 && engine.status().running + engine.status().waiting > 0; ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(engine.status().running, 0);
  EXPECT_EQ(engine.status().waiting, 0);
  EXPECT_EQ(engine.status().blocks_used, 0);
  // The gauges too, also where the last thing that happened was no step but a cancel.
  const std::string text = engine.metrics_text();
  for (const char* gauge : {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"})
    EXPECT_NE(text.find("tandem:" + std::string(gauge) + "{model_name=\"fake\"} 0\n"), std::string::npos) << text;
}

void run_many(runtime& engine) {
  auto client = std::make_shared<lab::event_recorder>();
  std::vector<request_id> ids;
  for (std::uint64_t i = 0; i < 24; ++i)
    ids.push_back(engine.submit(lab::ids_request(lab::made_prompt(1 + i % 17, i), 20), client));
  for (std::uint64_t i = 0; i < 24; ++i) {
    ASSERT_TRUE(client->wait(ids[i], 1, kLong));
    EXPECT_EQ(client->choice(ids[i]).tokens, sim::oracle(lab::made_prompt(1 + i % 17, i), 20));
  }
  expect_rest(engine);
}

TEST(Runtime, AnswersManyRequestsWithEveryDraftSource) {
  for (const auto& [method, k] :
       {std::pair{draft_method::none, 0}, {draft_method::ngram, 3}, {draft_method::draft_model, 4}}) {
    auto engine = make_runtime(options_of(method, k), parts_of());
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    EXPECT_TRUE((*engine)->status().ready);
    run_many(**engine);
    EXPECT_NE((*engine)->metrics_text().find("tandem:generation_tokens_total{model_name=\"fake\"}"), std::string::npos);
  }
}

TEST(Runtime, LivesInsideAHostsOwnActorSystem) {
  caf::actor_system_config config;
  config.set("scheduler.max-threads", 1);
  caf::actor_system system{config};
  auto engine = make_runtime_in(system, options_of(draft_method::draft_model, 3), parts_of());
  ASSERT_TRUE(engine.has_value());
  run_many(**engine);
  engine->reset();
  auto second = make_runtime_in(system, options_of(draft_method::none, 0), parts_of());
  ASSERT_TRUE(second.has_value());
  run_many(**second);
}

TEST(Runtime, B8_CancelsFromOtherThreadsLeaveNothingBehind) {
  auto engine = std::move(*make_runtime(options_of(draft_method::draft_model, 4), parts_of(30)));
  auto client = std::make_shared<lab::event_recorder>();
  auto bystander = std::make_shared<lab::event_recorder>();
  const auto kept = engine->submit(lab::ids_request(lab::made_prompt(5, 1), 80), bystander);
  std::vector<request_id> ids;
  for (std::uint64_t i = 0; i < 60; ++i) {
    ids.push_back(engine->submit(lab::ids_request(lab::made_prompt(1 + i % 30, i), 60), client));
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 7));
    engine->cancel(ids[i / 2]);
  }
  for (const auto id : ids) engine->cancel(id);
  for (const auto id : ids) ASSERT_TRUE(client->wait(id, 1, kLong));
  ASSERT_TRUE(bystander->wait(kept, 1, kLong));
  EXPECT_EQ(bystander->choice(kept).tokens, sim::oracle(lab::made_prompt(5, 1), 80));
  expect_rest(*engine);
}

TEST(Runtime, KilledActorsAreReplacedWhileItWorks) {
  auto engine = std::move(*make_runtime(options_of(draft_method::draft_model, 4), parts_of()));
  auto client = std::make_shared<lab::event_recorder>();
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto id = engine->submit(lab::ids_request(lab::made_prompt(5, i), 60), client);
    engine->kill_for_test(i % 2 ? "drafter" : "kv_allocator");
    ASSERT_TRUE(client->wait(id, 1, kLong));
    EXPECT_EQ(client->choice(id).tokens, sim::oracle(lab::made_prompt(5, i), 60));
  }
  expect_rest(*engine);
}

/// Never done until it is let go.
class endless_compiler final : public grammar_compiler {
 public:
  result<std::shared_ptr<const grammar>> compile(const structured_spec&) const override {
    while (!ended) std::this_thread::sleep_for(1ms);
    return fail(error_code::invalid_argument, "no");
  }
  std::atomic<bool> ended{false};
};

generation_request endless_request() {
  auto request = lab::ids_request(lab::made_prompt(5, 1), 8);
  request.structured.emplace().kind = structured_spec::form::json_object;
  return request;
}

bool waiting_for_grammars(const runtime& engine, int count) {
  const std::string line = "tandem:grammar_requests_waiting{model_name=\"fake\"} " + std::to_string(count) + "\n";
  for (int i = 0; i < 5000; ++i) {
    if (engine.metrics_text().find(line) != std::string::npos) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

TEST(Runtime, CancelsAndDeadlinesReachRequestsThatWaitForTheirGrammar) {
  auto parts = parts_of();
  const auto compiler = std::make_shared<endless_compiler>();
  parts.grammars = compiler;
  parts.tokenizer = lab::make_lab_tokenizer({3});
  auto engine = std::move(*make_runtime(options_of(draft_method::none, 0), std::move(parts)));
  auto client = std::make_shared<lab::event_recorder>();
  const auto cancelled = engine->submit(endless_request(), client);
  ASSERT_TRUE(waiting_for_grammars(*engine, 1));
  engine->cancel(cancelled);
  ASSERT_TRUE(client->wait(cancelled, 1, kLong));
  EXPECT_EQ(client->of(cancelled).refused->code, error_code::cancelled);
  auto hurried = endless_request();
  hurried.timeout = 50ms;
  const auto late = engine->submit(hurried, client);
  ASSERT_TRUE(client->wait(late, 1, kLong));
  EXPECT_EQ(client->of(late).refused->code, error_code::deadline);
  EXPECT_TRUE(waiting_for_grammars(*engine, 0));
  expect_rest(*engine);
  compiler->ended = true;
}

TEST(Runtime, F3_DrainFinishesTheOldAndRefusesTheNew) {
  auto engine = std::move(*make_runtime(options_of(draft_method::ngram, 3), parts_of()));
  auto client = std::make_shared<lab::event_recorder>();
  const auto old = engine->submit(lab::ids_request(lab::made_prompt(5, 1), 60), client);
  engine->drain(kLong);
  EXPECT_TRUE(engine->status().draining);
  EXPECT_TRUE(client->finished(old));
  EXPECT_EQ(client->choice(old).tokens, sim::oracle(lab::made_prompt(5, 1), 60));
  const auto late = engine->submit(lab::ids_request(lab::made_prompt(5, 1), 60), client);
  ASSERT_TRUE(client->wait(late, 1, kLong));
  EXPECT_EQ(client->of(late).refused->code, error_code::unavailable);
}

TEST(Runtime, EndsEveryRequestWhenItIsDestroyed) {
  auto client = std::make_shared<lab::event_recorder>();
  std::vector<request_id> ids;
  {
    auto engine = std::move(*make_runtime(options_of(draft_method::draft_model, 4), parts_of()));
    for (std::uint64_t i = 0; i < 30; ++i)
      ids.push_back(engine->submit(lab::ids_request(lab::made_prompt(9, i), 80), client));
  }
  for (const auto id : ids) EXPECT_TRUE(client->finished(id));
}

TEST(Runtime, OptionsThatContradictAreRefusedWithTheFlagsName) {
  auto options = options_of(draft_method::none, 0);
  options.max_model_len = 10'000;
  const auto too_long = make_runtime(options, parts_of());
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().param, "--max-model-len");
  options = options_of(draft_method::none, 0);
  options.max_num_seqs = 0;
  EXPECT_EQ(make_runtime(options, parts_of()).error().param, "--max-num-seqs");
  EXPECT_EQ(make_runtime(options_of(draft_method::none, 0), {}).error().code, error_code::invalid_argument);
}

}  // namespace
}  // namespace tandem
