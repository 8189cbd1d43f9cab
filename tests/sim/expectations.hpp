#pragma once
/// What every simulated run is made of and must end with.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/sim/simulated_engine.hpp"

namespace tandem::sim {

inline std::vector<token_id> random_prompt(std::mt19937_64& random, std::int32_t length) {
  std::vector<token_id> prompt;
  for (std::int32_t i = 0; i < length; ++i) prompt.push_back(static_cast<token_id>(random() % kVocabulary));
  return prompt;
}

inline void expect_idle(const simulated_engine& engine, const engine_options& options) {
  const auto status = engine.status();
  EXPECT_EQ(status.running, 0);
  EXPECT_EQ(status.waiting, 0);
  EXPECT_EQ(status.blocks_used, 0);
  const auto pool = engine.pool();
  EXPECT_EQ(pool.free + pool.held + pool.cached, options.num_blocks);
  EXPECT_EQ(pool.held, status.blocks_leased);
  for (const auto& [id, view] : engine.views()) {
    EXPECT_EQ(view.end.has_value(), view.shown);
    EXPECT_TRUE(view.retired);
  }
}

inline void expect_oracle(const simulated_engine& engine, sequence_id id, const job& wanted) {
  const auto expected = oracle(wanted.prompt, wanted.max_tokens);
  EXPECT_EQ(engine.view(id).tokens, expected);
  ASSERT_TRUE(engine.view(id).end.has_value());
  EXPECT_EQ(engine.view(id).end->reason, finish_reason::length);
  EXPECT_EQ(engine.view(id).stats.completion_tokens, wanted.max_tokens);
}

}  // namespace tandem::sim
