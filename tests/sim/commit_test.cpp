// What one finished step means for one sequence, where the simulation does not look.
#include "core/scheduling/commit.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

namespace tandem {
namespace {

constexpr std::int32_t kPromptLength = 10;

scheduler_options with_letters() {
  scheduler_options options;
  options.vocabulary_size = 26;
  options.token_bytes = [](token_id id, bool) { return std::string_view("abcdefghijklmnopqrstuvwxyz").substr(id, 1); };
  return options;
}

/// A sequence behind a prompt of ten tokens.
sequence sequence_of(generation_request request) {
  sequence seq;
  seq.request = std::make_shared<const generation_request>(request);
  seq.sampling = std::make_shared<const sampling_params>(request.sampling);
  seq.prompt = std::make_shared<const std::vector<token_id>>(kPromptLength, 0);
  seq.known = *seq.prompt;
  seq.max_tokens = 20;
  if (!request.stopping.stop.empty()) {
    seq.stops = std::make_shared<const stop_automaton>(request.stopping.stop);
  }
  return seq;
}

/// Log-probabilities of the prompt tokens behind `computed`, as a step over `rows` of them gives.
slot_outcome scored_rows(const sequence& seq, std::int32_t rows) {
  slot_outcome outcome;
  outcome.rows_done = rows;
  const std::int32_t count = std::min(rows, seq.prompt_length() - 1 - seq.computed);
  outcome.prompt_logprobs.resize(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i)
    outcome.prompt_logprobs[static_cast<std::size_t>(i)].rank = seq.computed + 1 + i;
  return outcome;
}

TEST(Commit, EachLogProbabilityOfThePromptIsToldOnceWhereverAPreemptionComes) {
  generation_request request;
  request.logprobs.prompt_top = 0;
  for (std::int32_t first_life = 1; first_life < kPromptLength; ++first_life) {
    for (std::int32_t chunk = 1; chunk <= kPromptLength; ++chunk) {
      sequence seq = sequence_of(request);
      std::vector<std::int32_t> told;
      const auto commit = [&](std::int32_t rows) {
        for (const auto& each : commit_outcome(seq, scored_rows(seq, rows), with_letters()).prompt_logprobs)
          told.push_back(each.rank);
      };
      commit(first_life);
      seq.computed = 0;  // preempted
      while (seq.pending() > 0) commit(std::min(chunk, seq.pending()));
      std::vector<std::int32_t> expected(kPromptLength - 1);
      std::iota(expected.begin(), expected.end(), 1);
      EXPECT_EQ(told, expected);
      EXPECT_FALSE(seq.scores_prompt());
    }
  }
}

TEST(Commit, OnlyWhatWasAskedForIsTheClientsMistake) {
  generation_request request;
  request.structured.emplace().field = "the_field";
  for (const auto& [why, code, says] :
       {std::tuple{stuck_reason::nothing_fits, error_code::invalid_argument, "none of the model's tokens fits"},
        {stuck_reason::too_slow, error_code::invalid_argument, "takes too long"},
        {stuck_reason::broken, error_code::device_failed, "fault of this server"}}) {
    sequence seq = sequence_of(request);
    slot_outcome outcome;
    outcome.rows_done = seq.pending();
    outcome.stuck = why;
    const auto end = commit_outcome(seq, outcome, with_letters()).end;
    ASSERT_TRUE(end);
    EXPECT_EQ(end->reason, finish_reason::error);
    EXPECT_EQ(end->code, code);
    EXPECT_NE(end->message.find("'the_field' cannot be followed any further after 0 tokens"), std::string::npos);
    EXPECT_NE(end->message.find(says), std::string::npos) << end->message;
  }
}

TEST(Commit, ReplayedOutputWithStopStringsThatWereNotToEndItKeepsItsPlaceInTheText) {
  generation_request request;
  request.stopping.stop = {"bc", "e"};
  request.sampling.min_tokens = 8;
  sequence seq = sequence_of(request);
  for (token_id token = 0; token < 9; ++token) seq.known.push_back(token);
  replay_output(seq, with_letters());
  EXPECT_EQ(seq.visible_bytes, 9u);
  EXPECT_EQ(seq.stop_cursor.bytes, seq.visible_bytes);
}

}  // namespace
}  // namespace tandem
