// Draft heads in the simulation: the target's steps keep them up to date, whatever a sequence goes through.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {
namespace {

job asked(token_id last) {
  job wanted{.prompt = std::vector<token_id>(18), .max_tokens = 12};
  std::iota(wanted.prompt.begin(), wanted.prompt.end(), 5);
  wanted.prompt.back() = last;
  return wanted;
}

TEST(Heads, A14_AreNeverBehind) {
  std::int32_t preemptions = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    engine_options options;
    options.method = draft_method::eagle;
    options.k = 4;
    options.draft_wrong_every = 0;
    options.max_model_len = 32;
    options.num_blocks = static_cast<std::int32_t>(8 + seed % 8);  // few: not all fit at once
    options.max_num_seqs = 3;
    simulated_engine engine(options, seed);
    job plain = asked(40);
    plain.speculation.method = draft_method::none;
    engine.submit(plain);
    engine.run_until_idle();
    std::vector<sequence_id> ids;
    for (token_id last = 0; last < 3; ++last) ids.push_back(engine.submit(asked(last)));
    engine.run_until_idle();
    for (token_id last = 0; last < 3; ++last) {
      const client_view& view = engine.view(ids[static_cast<std::size_t>(last)]);
      EXPECT_EQ(view.tokens, oracle(asked(last).prompt, 12));
      EXPECT_GT(view.stats.draft_tokens, 5) << seed;
      EXPECT_EQ(view.stats.accepted_tokens, view.stats.draft_tokens) << seed;
      preemptions += view.stats.preemptions;
    }
    EXPECT_GT(engine.view(ids[0]).stats.cached_tokens, 0) << seed;
  }
  EXPECT_GT(preemptions, 0);
}

}  // namespace
}  // namespace tandem::sim
