#include <gtest/gtest.h>

#include <string>

#include "actors/metrics_registry.hpp"
#include "config/edge_limits.hpp"

namespace tandem {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

TEST(MetricsRegistry, StepsBecomeGaugesAndCounters) {
  metrics_registry registry("m", 10);
  step_measured step;
  step.rows = 7;
  step.generated_tokens = 4;
  step.speculations = {{draft_method::ngram, 3, 3, 2}};
  registry.record(step);
  registry.record(step);
  live_counters now;
  now.running = 3;
  now.waiting = 2;
  now.blocks_used = 5;
  registry.show(now);
  const auto text = registry.text();
  EXPECT_TRUE(has_line(text, "tandem:num_requests_running{model_name=\"m\"} 3")) << text;
  EXPECT_TRUE(has_line(text, "tandem:num_requests_waiting{model_name=\"m\"} 2"));
  EXPECT_TRUE(has_line(text, "tandem:kv_cache_usage_perc{model_name=\"m\"} 0.5"));
  EXPECT_TRUE(has_line(text, "tandem:generation_tokens_total{model_name=\"m\"} 8"));
  EXPECT_TRUE(has_line(text, "tandem:spec_decode_num_draft_tokens_total{method=\"ngram\",model_name=\"m\"} 6"));
  EXPECT_TRUE(has_line(text, "tandem:spec_decode_num_accepted_tokens_total{method=\"ngram\",model_name=\"m\"} 4"));
  EXPECT_TRUE(has_line(
      text,
      "tandem:spec_decode_num_accepted_tokens_per_pos_total{method=\"ngram\",model_name=\"m\",position=\"2\"} 0"));
}

TEST(MetricsRegistry, NumbersOfDraftsAreAHistogramWithThoseThatDraftedNothing) {
  metrics_registry registry("m", 10);
  step_measured step;
  step.speculations = {{draft_method::ngram, 3, 0, 0}};
  step.undrafted = 4;
  registry.record(step);
  const auto text = registry.text();
  EXPECT_TRUE(has_line(text, "tandem:speculation_k_count{method=\"none\",model_name=\"m\"} 4")) << text;
  EXPECT_TRUE(has_line(text, "tandem:speculation_k_sum{method=\"none\",model_name=\"m\"} 0"));
  EXPECT_TRUE(has_line(text, "tandem:speculation_k_count{method=\"ngram\",model_name=\"m\"} 1"));
  EXPECT_TRUE(has_line(text, "tandem:speculation_k_sum{method=\"ngram\",model_name=\"m\"} 3"));
  EXPECT_TRUE(has_line(text, "tandem:spec_decode_num_drafts_total{method=\"ngram\",model_name=\"m\"} 0"));
}

TEST(MetricsRegistry, ABurstIsOneGapPerTokenAndOnePerChunk) {
  metrics_registry registry("m", 10);
  registry.record(burst_measured{4, 0.02});
  const auto text = registry.text();
  EXPECT_TRUE(has_line(text, "tandem:inter_token_latency_seconds_count{model_name=\"m\"} 4"));
  EXPECT_TRUE(has_line(text, "tandem:inter_chunk_latency_seconds_count{model_name=\"m\"} 1"));
}

TEST(MetricsRegistry, TheBatchIsTheLastStepAndTheSumsOfAll) {
  metrics_registry registry("m", 10);
  EXPECT_FALSE(registry.batch().last.has_value());
  step_measured step;
  step.rows = 7;
  step.prompt_tokens = 3;
  step.generated_tokens = 4;
  step.undrafted = 2;
  step.speculations.assign(limits::kMaxShownSequences + 5, {draft_method::ngram, 3, 3, 2});
  registry.record(step);
  step.rows = 1;
  registry.record(step);
  step.rows = 0;  // tokens that are measured when nothing runs any more
  registry.record(step);
  const batch_view seen = registry.batch();
  EXPECT_EQ(seen.steps, 2U);
  EXPECT_EQ(seen.prompt_tokens, 9U);
  EXPECT_EQ(seen.generated_tokens, 12U);
  ASSERT_TRUE(seen.last.has_value());
  EXPECT_EQ(seen.last->rows, 1);
  EXPECT_EQ(seen.last->undrafted, 2);
  EXPECT_EQ(seen.last->drafting, static_cast<std::int32_t>(limits::kMaxShownSequences) + 5);
  EXPECT_EQ(seen.last->sequences.size(), limits::kMaxShownSequences);
  EXPECT_EQ(seen.last->sequences.front().accepted, 2);
}

TEST(MetricsRegistry, EndsAreCountedByReason) {
  metrics_registry registry("odd \"name\"\n\\", 10);
  auto stats = std::make_shared<const sequence_stats>();
  registry.record(sequence_measured{stats, finish_reason::cancelled, 0, 0.1});
  registry.count_rejected("queue_full");
  registry.count_websocket(2);
  registry.count_websocket(-1);
  const auto text = registry.text();
  EXPECT_NE(text.find("finished_reason=\"cancelled\",model_name=\"odd \\\"name\\\"\\n\\\\\"} 1"), std::string::npos);
  EXPECT_NE(text.find("tandem:requests_cancelled_total"), std::string::npos);
  EXPECT_NE(text.find("reason=\"queue_full\"} 1"), std::string::npos);
  EXPECT_NE(text.find("tandem:websocket_connections{model_name=\"odd \\\"name\\\"\\n\\\\\"} 1"), std::string::npos);
}

}  // namespace
}  // namespace tandem
