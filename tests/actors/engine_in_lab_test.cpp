// The whole engine under a seeded schedule: whatever the order, the answer is the oracle's and nothing is left behind.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/limits.hpp"
#include "tests/support/lab/actor_lab.hpp"
#include "tests/support/toy_grammar.hpp"

namespace tandem::lab {
namespace {

constexpr std::uint64_t kSeeds = 25;

struct expectation {
  request_id id;
  std::vector<token_id> prompt;
  std::int32_t max_tokens = 0;
};

expectation submit(actor_lab& lab, std::size_t length, std::int32_t max_tokens, std::uint64_t seed) {
  auto prompt = made_prompt(length, seed);
  const auto id = lab.submit(ids_request(prompt, max_tokens));
  return {id, std::move(prompt), max_tokens};
}

void expect_oracle(const actor_lab& lab, const expectation& wanted) {
  const auto got = lab.events().choice(wanted.id);
  ASSERT_TRUE(got.end.has_value());
  EXPECT_EQ(got.end->reason, finish_reason::length) << got.end->message;
  EXPECT_EQ(got.tokens, sim::oracle(wanted.prompt, wanted.max_tokens));
  EXPECT_EQ(got.text, lab.parts().tokenizer->decode(got.tokens, true));
  EXPECT_EQ(got.stats.completion_tokens, wanted.max_tokens);
}

/// What was given is a prefix of the oracle's answer, and there was one clear end.
void expect_prefix(const actor_lab& lab, const expectation& wanted) {
  if (lab.events().of(wanted.id).refused) return;
  const auto got = lab.events().choice(wanted.id);
  ASSERT_TRUE(got.end.has_value());
  auto whole = sim::oracle(wanted.prompt, wanted.max_tokens);
  ASSERT_LE(got.tokens.size(), whole.size());
  whole.resize(got.tokens.size());
  EXPECT_EQ(got.tokens, whole);
}

/// Rest: nothing runs, waits or holds blocks, and the next request gets its answer.
void expect_rest_and_probe(actor_lab& lab) {
  EXPECT_EQ(lab.counters().live_requests.load(), 0);
  EXPECT_EQ(lab.counters().running.load(), 0);
  EXPECT_EQ(lab.counters().waiting.load(), 0);
  EXPECT_EQ(lab.counters().blocks_used.load(), 0);
  const auto probe = submit(lab, 7, 5, 999);
  lab.run_until_idle();
  expect_oracle(lab, probe);
  EXPECT_EQ(lab.counters().blocks_used.load(), 0);
}

lab_options with(draft_method method, std::int32_t k) {
  auto options = small_lab();
  options.engine.speculation = {method, k, std::nullopt};
  options.engine.suffix_drafter = method == draft_method::suffix;
  options.engine.suffix_mebibytes = 1;
  return options;
}

std::vector<expectation> submit_mixed(actor_lab& lab, int count) {
  std::vector<expectation> all;
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    all.push_back(submit(lab, 1 + lab.random()() % 40, 1 + static_cast<std::int32_t>(lab.random()() % 30), n));
    lab.moves(static_cast<int>(lab.random()() % 60));
  }
  return all;
}

class EngineInLab : public ::testing::TestWithParam<std::pair<draft_method, std::int32_t>> {
 protected:
  lab_options options() const { return with(GetParam().first, GetParam().second); }
};

TEST_P(EngineInLab, AnyInterleavingGivesTheOraclesTokens) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(options(), seed);
    const auto all = submit_mixed(lab, 12);
    lab.run_until_idle();
    for (const auto& one : all) expect_oracle(lab, one);
    expect_rest_and_probe(lab);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(EngineInLab, B4_PreemptionUnderTinyKvChangesNothing) {
  auto tight = options();
  tight.device.num_blocks = 26;  // one sequence of full length and a little
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(tight, seed);
    const auto all = submit_mixed(lab, 12);
    lab.run_until_idle();
    for (const auto& one : all) expect_oracle(lab, one);
    expect_rest_and_probe(lab);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

/// "even" and "odd": tokens whose sum with all before is that, 12 of them, then the end. All else is refused.
class parity_compiler final : public grammar_compiler {
 public:
  static constexpr token_id kEnd = 3;
  result<std::shared_ptr<const grammar>> compile(const structured_spec& spec) const override {
    if (spec.text != "even" && spec.text != "odd") return fail(error_code::invalid_argument, "no parity", spec.field);
    const int parity = spec.text == "odd" ? 1 : 0;
    return std::make_shared<testing::toy_grammar>(
        sim::kVocabulary,
        [parity](const std::vector<token_id>& before, token_id next) {
          token_id sum = next;
          for (const token_id token : before) sum += token;
          return before.size() == 12 ? next == kEnd : next != kEnd && sum % 2 == parity;
        },
        kEnd);
  }
};

TEST_P(EngineInLab, StructuredRequestsFollowTheirGrammarBesideOthers) {
  auto with_grammars = options();
  with_grammars.grammars = std::make_shared<parity_compiler>();
  with_grammars.end_tokens = {parity_compiler::kEnd};
  with_grammars.device.num_blocks = 30;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(with_grammars, seed);
    std::vector<std::pair<expectation, std::string>> all;
    for (std::uint64_t i = 0; i < 9; ++i) {
      auto prompt = made_prompt(1 + lab.random()() % 30, i);
      auto request = ids_request(prompt, 20);
      request.structured = structured_spec{.kind = structured_spec::form::regex, .field = "parity"};
      request.structured->text = i % 3 == 0 ? "even" : i % 3 == 1 ? "odd" : "neither";
      const std::string wanted = request.structured->text;
      all.emplace_back(expectation{lab.submit(std::move(request)), std::move(prompt), 20}, wanted);
      lab.moves(static_cast<int>(lab.random()() % 80));
    }
    lab.run_until_idle();
    for (const auto& [one, parity] : all) {
      if (parity == "neither") {
        ASSERT_TRUE(lab.events().of(one.id).refused);
        continue;
      }
      structured_spec spec;
      spec.text = parity;
      auto expected = sim::oracle(one.prompt, 13, parity_compiler().compile(spec).value().get());
      EXPECT_EQ(lab.events().choice(one.id).tokens, expected);
      EXPECT_EQ(lab.events().choice(one.id).end->reason, finish_reason::stop);
    }
    EXPECT_EQ(lab.counters().live_requests.load(), 0);
    EXPECT_EQ(lab.counters().blocks_used.load(), 0);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(EngineInLab, B8_CancelsAtAnyPointLeaveBystandersAlone) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(options(), seed);
    std::vector<expectation> bystanders;
    std::vector<expectation> cancelled;
    for (std::uint64_t i = 0; i < 8; ++i) {
      bystanders.push_back(submit(lab, 9, 20, i));
      cancelled.push_back(submit(lab, 1 + lab.random()() % 40, 20, 100 + i));
      lab.moves(static_cast<int>(lab.random()() % 200));
      lab.cancel(cancelled[lab.random()() % cancelled.size()].id);
    }
    for (const auto& one : cancelled) lab.cancel(one.id);
    lab.run_until_idle();
    for (const auto& one : bystanders) expect_oracle(lab, one);
    for (const auto& one : cancelled) expect_prefix(lab, one);
    expect_rest_and_probe(lab);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(EngineInLab, KilledDraftersAndAllocatorsAreReplacedUnseen) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(options(), seed);
    std::vector<expectation> all;
    for (std::uint64_t i = 0; i < 8; ++i) {
      all.push_back(submit(lab, 1 + lab.random()() % 30, 25, i));
      lab.moves(static_cast<int>(lab.random()() % 150));
      lab.kill(lab.random()() % 2 ? "drafter" : "kv_allocator");
    }
    lab.run_until_idle();
    for (const auto& one : all) expect_oracle(lab, one);
    expect_rest_and_probe(lab);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST_P(EngineInLab, ADeadStreamerEndsItsRequestsWithOneClearError) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(options(), seed);
    std::vector<expectation> all;
    for (std::uint64_t i = 0; i < 6; ++i) {
      all.push_back(submit(lab, 1 + lab.random()() % 30, 25, i));
      lab.moves(static_cast<int>(lab.random()() % 200));
      if (i % 2) lab.kill("streamer");
    }
    lab.run_until_idle();
    for (const auto& one : all) {
      expect_prefix(lab, one);
      const auto end = lab.events().choice(one.id).end;
      ASSERT_TRUE(end.has_value());
      const bool whole = end->reason == finish_reason::length;
      EXPECT_TRUE(whole || end->message.find("internal fault") != std::string::npos) << end->message;
    }
    expect_rest_and_probe(lab);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(DraftSources, EngineInLab,
                         ::testing::Values(std::pair{draft_method::none, 0}, std::pair{draft_method::ngram, 3},
                                           std::pair{draft_method::suffix, 3},
                                           std::pair{draft_method::draft_model, 4}));

TEST(EngineInLabTest, DraftsAreUsedAndReported) {
  auto options = with(draft_method::draft_model, 4);
  options.device.draft_wrong_every = 0;
  options.expire_tickets = 0;
  actor_lab lab(options, 3);
  const auto one = submit(lab, 10, 40, 1);
  lab.run_until_idle();
  expect_oracle(lab, one);
  const auto got = lab.events().choice(one.id);
  EXPECT_EQ(got.stats.accepted_tokens, got.stats.draft_tokens);
  EXPECT_GE(got.stats.accepted_tokens, 24);
  EXPECT_EQ(std::count(got.accepted.begin(), got.accepted.end(), 1), got.stats.accepted_tokens);
}

TEST(EngineInLabTest, SuffixLearnsFromRequestsThatDidNotDraft) {
  auto options = with(draft_method::suffix, 4);
  options.expire_tickets = 0;
  actor_lab lab(options, 3);
  auto request = ids_request(made_prompt(20, 1), 30);
  request.speculation.method = draft_method::none;
  const auto first = lab.submit(request);
  lab.run_until_idle();
  EXPECT_EQ(lab.events().choice(first).stats.draft_tokens, 0);
  request.speculation.method.reset();
  const auto second = lab.submit(request);
  lab.run_until_idle();
  EXPECT_GE(lab.events().choice(second).stats.accepted_tokens, 20);
  EXPECT_EQ(lab.events().choice(second).tokens, lab.events().choice(first).tokens);
  lab.kill("drafter");
  const auto third = lab.submit(request);  // it forgot, and learns again
  lab.run_until_idle();
  EXPECT_LT(lab.events().choice(third).stats.accepted_tokens, 10);
  const auto fourth = lab.submit(request);
  lab.run_until_idle();
  EXPECT_GE(lab.events().choice(fourth).stats.accepted_tokens, 20);
}

TEST(EngineInLabTest, ADeadlineEndsWithWhatIsThere) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(with(draft_method::ngram, 3), seed);
    auto request = ids_request(made_prompt(9, seed), 60);
    request.timeout = std::chrono::milliseconds(50);
    const auto id = lab.submit(request);
    while (!lab.events().finished(id)) {
      lab.moves(static_cast<int>(lab.random()() % 12));
      lab.advance(std::chrono::milliseconds(20));
    }
    lab.run_until_idle();
    const auto got = lab.events().choice(id);
    ASSERT_TRUE(got.end.has_value());
    EXPECT_EQ(got.end->reason, finish_reason::timeout);
    expect_prefix(lab, {id, made_prompt(9, seed), 60});
    expect_rest_and_probe(lab);
  }
}

TEST(EngineInLabTest, DrainingRefusesNewWorkAndFinishesTheOld) {
  actor_lab lab(with(draft_method::draft_model, 3), 5);
  const auto old = submit(lab, 12, 20, 1);
  lab.moves(100);
  lab.begin_drain_now();
  const auto late = submit(lab, 12, 20, 2);
  lab.run_until_idle();
  expect_oracle(lab, old);
  const auto refused = lab.events().of(late.id).refused;
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, error_code::unavailable);
}

TEST(EngineInLabTest, ALostStepEndsItsRequestsWithTheDevicesMessage) {
  actor_lab lab(with(draft_method::none, 0), 5);
  const auto one = submit(lab, 12, 20, 1);
  lab.device().fail_next_step();
  lab.run_until_idle();
  const auto got = lab.events().choice(one.id);
  ASSERT_TRUE(got.end.has_value());
  EXPECT_EQ(got.end->reason, finish_reason::error);
  EXPECT_EQ(got.end->message, "the fake device lost the step");
  expect_rest_and_probe(lab);
}

TEST(EngineInLabTest, TheDeathOfAnActorThatCannotBeReplacedEndsEverythingWithOneError) {
  for (const char* victim : {"scheduler", "verifier", "intake"}) {
    actor_lab lab(with(draft_method::ngram, 3), 8);
    const auto one = submit(lab, 12, 40, 1);
    lab.moves(80);
    lab.kill(victim);
    lab.moves(100'000);
    const auto got = lab.events().choice(one.id);
    ASSERT_TRUE(got.end.has_value()) << victim;
    EXPECT_EQ(got.end->reason, finish_reason::error);
    EXPECT_TRUE(lab.counters().failed.load());
    if (victim == std::string("intake")) continue;  // the door itself is gone
    const auto late = submit(lab, 3, 3, 2);
    lab.moves(100'000);
    ASSERT_TRUE(lab.events().of(late.id).refused.has_value());
    EXPECT_EQ(lab.events().of(late.id).refused->code, error_code::unavailable);
  }
}

TEST(EngineInLabTest, AStreamerThatDiesTooOftenStillLeavesEveryRequestWithAnEnd) {
  actor_lab lab(with(draft_method::none, 0), 9);
  for (int i = 0; i < limits::kMaxActorRestarts; ++i) {
    lab.kill("streamer");
    lab.moves(100);
  }
  EXPECT_FALSE(lab.counters().failed.load());
  const auto one = submit(lab, 12, 40, 1);
  lab.moves(80);
  lab.kill("streamer");
  lab.run_until_idle();
  const auto got = lab.events().choice(one.id);
  ASSERT_TRUE(got.end.has_value());
  EXPECT_EQ(got.end->reason, finish_reason::error);
  EXPECT_TRUE(lab.counters().failed.load());
}

TEST(EngineInLabTest, EveryChoiceOfARequestEndsOnce) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(with(draft_method::ngram, 2), seed);
    auto request = ids_request(made_prompt(6, seed), 9);
    request.n = 5;
    const auto id = lab.submit(request);
    lab.run_until_idle();
    ASSERT_TRUE(lab.events().finished(id, 5));
    for (std::int32_t i = 0; i < 5; ++i)
      EXPECT_EQ(lab.events().choice(id, i).tokens, sim::oracle(made_prompt(6, seed), 9));
    expect_rest_and_probe(lab);
  }
}

TEST(EngineInLabTest, AStopStringIsCutAndNeverShownInPart) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    actor_lab lab(with(draft_method::draft_model, 4), seed);
    const auto prompt = made_prompt(8, 77);
    const auto whole = sim::oracle(prompt, 30);
    const auto text = lab.parts().tokenizer->decode(whole, true);
    auto request = ids_request(prompt, 30);
    request.stopping.stop = {text.substr(13, 3)};
    const auto cut = text.find(request.stopping.stop[0]);
    const auto id = lab.submit(request);
    lab.run_until_idle();
    const auto got = lab.events().choice(id);
    ASSERT_TRUE(got.end.has_value());
    EXPECT_EQ(got.end->reason, finish_reason::stop);
    EXPECT_EQ(got.text, text.substr(0, cut));
    EXPECT_EQ(got.tokens.size(), cut + 3);
    expect_rest_and_probe(lab);
  }
}

TEST(EngineInLabTest, OnePostPerOutletAndStep) {
  actor_lab lab(with(draft_method::none, 0), 2);
  for (std::uint64_t i = 0; i < 6; ++i) submit(lab, 3, 10, i);
  lab.run_until_idle();
  EXPECT_LE(static_cast<std::uint64_t>(lab.events().posts()), lab.counters().steps.load());
}

TEST(EngineInLabTest, AFullQueueIsRefusedAndOpensAgain) {
  auto options = with(draft_method::none, 0);
  options.engine.max_num_seqs = 1;
  options.engine.max_queued_requests = 2;
  actor_lab lab(options, 4);
  std::vector<expectation> all;
  for (std::uint64_t i = 0; i < 6; ++i) all.push_back(submit(lab, 5, 5, i));
  lab.run_until_idle();
  int refused = 0;
  for (const auto& one : all) {
    const auto why = lab.events().of(one.id).refused;
    if (!why) continue;
    ++refused;
    EXPECT_EQ(why->code, error_code::overloaded);
  }
  EXPECT_EQ(refused, 3);
  expect_rest_and_probe(lab);
}

}  // namespace
}  // namespace tandem::lab
