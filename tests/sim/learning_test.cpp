// The source that learns from outputs: each generated token reaches it exactly once, whatever happens to its sequence.
#include <gtest/gtest.h>

#include <random>

#include "config/limits.hpp"
#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

using lesson = simulated_engine::lesson;

/// What should have been learned: every output token behind what came before it.
void add_lessons(std::multiset<lesson>& to, std::vector<token_id> text, const std::vector<token_id>& output,
                 std::uint64_t salt) {
  for (const token_id token : output) {
    const auto context = std::min<std::size_t>(text.size(), limits::kMaxSuffixContext);
    to.emplace(salt, std::vector<token_id>(text.end() - static_cast<std::ptrdiff_t>(context), text.end()), token);
    text.push_back(token);
  }
}

/// Few blocks, so that sequences lose theirs; requests with every method, some salted.
job random_job(std::mt19937_64& random, int place) {
  job wanted;
  for (std::uint64_t n = 1 + random() % 40; n > 0; --n)
    wanted.prompt.push_back(static_cast<token_id>(random() % kVocabulary));
  wanted.max_tokens = static_cast<std::int32_t>(1 + random() % 30);
  const draft_method methods[] = {draft_method::none, draft_method::ngram, draft_method::suffix,
                                  draft_method::draft_model};
  wanted.speculation.method = methods[place % 4];
  return wanted;
}

engine_options options_for(std::uint64_t seed) {
  engine_options options;
  options.num_blocks = static_cast<std::int32_t>(18 + seed % 30);
  options.max_model_len = 72;
  options.max_num_batched_tokens = static_cast<std::int32_t>(4 + seed % 30);
  options.max_num_seqs = static_cast<std::int32_t>(1 + seed % 12);
  options.k = 5;
  options.adaptive = seed % 3 == 0;
  options.expire_tickets = seed % 4 == 0 ? 0.1 : 0.0;
  options.independent_streams = seed % 2 == 1;
  return options;
}

TEST(Learning, EachTokenOfAnOutputIsLearnedOnceWhoeverDraftedItAndHoweverItEnded) {
  std::int64_t preemptions = 0;
  std::int64_t drafted = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    std::mt19937_64 random(seed * 13 + 1);
    simulated_engine engine(options_for(seed), seed);
    std::map<sequence_id, job> jobs;
    std::vector<sequence_id> ids;
    for (int i = 0; i < 24; ++i) {
      ids.push_back(engine.submit(random_job(random, i)));
      for (std::uint64_t n = random() % 40; n > 0; --n) engine.deliver_one();
      if (random() % 4 == 0) engine.cancel(ids[random() % ids.size()]);
      // The others' deaths make every source forget; what was learned stays learned.
      if (random() % 8 == 0) engine.kill_drafter(draft_method::ngram);
      if (random() % 12 == 0) engine.kill_allocator();
    }
    engine.run_until_idle();
    std::multiset<lesson> expected;
    for (const sequence_id id : ids) {
      add_lessons(expected, engine.prompt(id), engine.view(id).tokens, 0);
      preemptions += engine.view(id).stats.preemptions;
      drafted += engine.view(id).stats.by_method[index_of(draft_method::suffix)].draft_tokens;
    }
    ASSERT_EQ(engine.lessons(), expected) << "seed " << seed;
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(drafted, 100);
}

TEST(Learning, ASaltedRequestTeachesOnlyItsOwnSalt) {
  engine_options options;
  options.k = 4;
  options.method = draft_method::suffix;
  simulated_engine engine(options, 5);
  job wanted{.prompt = {1, 2, 3, 4, 5}, .max_tokens = 40};
  wanted.cache_salt = "mine";
  engine.submit(wanted);
  engine.run_until_idle();
  ASSERT_EQ(engine.lessons().size(), 40u);
  const std::uint64_t salt = std::get<0>(*engine.lessons().begin());
  EXPECT_NE(salt, 0u);
  for (const char* other : {"", "yours"}) {
    wanted.cache_salt = other;
    const auto id = engine.submit(wanted);
    engine.run_until_idle();
    EXPECT_LT(engine.view(id).stats.accepted_tokens, 10) << other;  // its own loops at most
  }
  for (const char* known : {"mine", "", "yours"}) {
    wanted.cache_salt = known;
    const auto id = engine.submit(wanted);
    engine.run_until_idle();
    EXPECT_GE(engine.view(id).stats.accepted_tokens, 20) << known;
  }
}

TEST(Learning, ADrafterThatDiesLosesWhatItLearnedAndNothingElse) {
  engine_options options;
  options.k = 4;
  options.method = draft_method::suffix;
  simulated_engine engine(options, 6);
  const job wanted{.prompt = {1, 2, 3, 4, 5}, .max_tokens = 40};
  for (int round = 0; round < 3; ++round) {
    const auto first = engine.submit(wanted);
    engine.run_until_idle();
    EXPECT_LT(engine.view(first).stats.accepted_tokens, 10);
    const auto second = engine.submit(wanted);
    engine.run_until_idle();
    EXPECT_GE(engine.view(second).stats.accepted_tokens, 20);
    EXPECT_EQ(engine.view(second).tokens, oracle(wanted.prompt, wanted.max_tokens));
    engine.kill_drafter(draft_method::suffix);
  }
}

}  // namespace
}  // namespace tandem::sim
