// Draft heads in the simulation: the target's steps keep them up to date, whatever a sequence goes through.
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

TEST(Heads, A14_AHeadIsNeverBehind) {
  engine_options options;
  options.method = draft_method::eagle;
  options.k = 4;
  options.draft_wrong_every = 0;
  options.num_blocks = 18;  // three of these do not fit at once
  options.max_num_seqs = 3;
  simulated_engine engine(options, 3);
  std::vector<token_id> prompt(18);
  std::iota(prompt.begin(), prompt.end(), 5);
  job plain{.prompt = std::move(prompt), .max_tokens = 12};
  plain.speculation.method = draft_method::none;
  engine.submit(plain);
  engine.run_until_idle();
  std::vector<sequence_id> ids;
  job drafted = plain;
  drafted.speculation.method.reset();
  for (int i = 0; i < 3; ++i) {
    drafted.prompt.back() = i;
    ids.push_back(engine.submit(drafted));
  }
  engine.run_until_idle();
  std::int32_t preemptions = 0;
  for (int i = 0; i < 3; ++i) {
    drafted.prompt.back() = i;
    const client_view& view = engine.view(ids[static_cast<std::size_t>(i)]);
    EXPECT_EQ(view.tokens, oracle(drafted.prompt, drafted.max_tokens));
    const sequence_stats& stats = view.stats;
    preemptions += stats.preemptions;
    EXPECT_GT(stats.draft_tokens, 5);
    EXPECT_EQ(stats.accepted_tokens, stats.draft_tokens);
  }
  EXPECT_GT(engine.view(ids[0]).stats.cached_tokens, 0);
  EXPECT_GT(preemptions, 0);
}

}  // namespace
}  // namespace tandem::sim
