#include "actors/metrics_registry.hpp"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <exception>
#include <vector>

#include "config/limits.hpp"
#include "core/finish_names.hpp"
#include "core/speculation/method_names.hpp"

namespace tandem {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using buckets = Histogram::BucketBoundaries;

// Same boundaries as vLLM's histograms of the same names, so that dashboards keep working.
const buckets kFirstTokenSeconds{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                 1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const buckets kTokenGapSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                               0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
const buckets kRequestSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 0.5, 0.8, 1,   1.5, 2,   2.5,
                              5,     10,   15,    20,   30,  40,  50,  60,  120, 240, 480, 960};
const buckets kRows{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const buckets kStepSeconds{0.0001, 0.00025, 0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004,
                           0.005,  0.006,   0.008,  0.01,  0.015,  0.02,  0.025,  0.035, 0.05,
                           0.075,  0.1,     0.15,   0.25,  0.5,    1,     2.5,    5,     10};
// Fine where it matters: a few hundredths of a step of some milliseconds.
const buckets kOverheadSeconds{0.000005, 0.00001, 0.000015, 0.00002, 0.00003, 0.00004, 0.00005, 0.00006, 0.00008,
                               0.0001,   0.00012, 0.00015,  0.0002,  0.00025, 0.0003,  0.0004,  0.0005,  0.00075,
                               0.001,    0.0015,  0.0025,   0.005,   0.01,    0.1,     1};
const buckets kDrafts{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16};

}  // namespace

struct metrics_registry::impl {
  using labels = prometheus::Labels;

  impl(const std::string& model_name, std::int32_t all_blocks) : model{{"model_name", model_name}}, blocks(all_blocks) {
    for (std::size_t i = 0; i < kFinishReasonNames.size(); ++i)
      success[i] = &successes.Add(with("finished_reason", kFinishReasonNames[i]));
    for (std::size_t i = 1; i < kDraftMethodNames.size(); ++i) add_method(i);
  }

  labels with(const char* name, const std::string& value) const {
    labels all = model;
    all[name] = value;
    return all;
  }
  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(fmt::format("tandem:{}", name)).Help(help).Register(registry);
  }
  Family<Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(fmt::format("tandem:{}", name)).Help(help).Register(registry);
  }
  Family<Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(fmt::format("tandem:{}", name)).Help(help).Register(registry);
  }
  Counter& counter(const char* name, const char* help) { return counters(name, help).Add(model); }
  Gauge& gauge(const char* name, const char* help) { return gauges(name, help).Add(model); }
  Histogram& histogram(const char* name, const char* help, const buckets& bounds) {
    return histograms(name, help).Add(model, bounds);
  }

  struct speculation_counters {
    Counter* drafts = nullptr;
    Counter* draft_tokens = nullptr;
    Counter* accepted_tokens = nullptr;
    std::vector<Counter*> accepted_at;
    Histogram* k = nullptr;
  };
  void add_method(std::size_t method) {
    auto& out = speculation[method];
    const labels own = with("method", std::string(kDraftMethodNames[method]));
    out.drafts = &drafts.Add(own);
    out.draft_tokens = &draft_tokens.Add(own);
    out.accepted_tokens = &accepted_tokens.Add(own);
    out.k = &speculation_k.Add(own, kDrafts);
    for (std::int32_t position = 0; position < limits::kMaxDraftTokens; ++position) {
      labels at = own;
      at["position"] = std::to_string(position);
      out.accepted_at.push_back(&accepted_per_position.Add(at));
    }
  }
  void record(const step_measured::speculation& one) {
    const auto& out = speculation[static_cast<std::size_t>(one.method)];
    if (!out.drafts) return;
    if (one.drafted > 0) out.drafts->Increment();
    out.draft_tokens->Increment(one.drafted);
    out.accepted_tokens->Increment(one.accepted);
    out.k->Observe(one.k);
    for (std::int32_t i = 0; i < one.accepted && i < limits::kMaxDraftTokens; ++i)
      out.accepted_at[static_cast<std::size_t>(i)]->Increment();
  }

  prometheus::Registry registry;
  labels model;
  std::int32_t blocks;
  Gauge& running = gauge("num_requests_running", "Sequences that take part in steps.");
  Gauge& waiting = gauge("num_requests_waiting", "Sequences admitted and not yet running.");
  Gauge& kv_usage = gauge("kv_cache_usage_perc", "Share of KV blocks that live sequences hold; 1 is all.");
  Gauge& websockets = gauge("websocket_connections", "Live WebSocket connections.");
  Gauge& grammars_waiting = gauge("grammar_requests_waiting", "Requests that wait for their grammar to be compiled.");
  Gauge& grammars_running = gauge("grammar_compiles_running", "Grammars that are being compiled.");
  Gauge& grammars_abandoned =
      gauge("grammar_compiles_abandoned", "Of them, those that took too long and that nobody waits for any more.");
  Gauge& device_busy =
      gauges("device_busy_ratio", "Device time of the last step over its duration.").Add(with("stream", "target"));
  Counter& preemptions = counter("num_preemptions_total", "Sequences that lost their KV to others.");
  Counter& prompt_tokens = counter("prompt_tokens_total", "Prompt tokens computed.");
  Counter& generation_tokens = counter("generation_tokens_total", "Tokens generated.");
  Counter& prefix_queries = counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  Counter& prefix_hits = counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  Counter& cancelled = counter("requests_cancelled_total", "Choices and queued requests ended by their clients.");
  Family<Counter>& successes = counters("request_success_total", "Choices ended, by reason.");
  Family<Counter>& rejected = counters("requests_rejected_total", "Requests refused, by reason.");
  Family<Counter>& restarts = counters("actor_restarts_total", "Actors that died and were replaced.");
  Family<Counter>& draft_faults =
      counters("draft_source_faults_total", "Answers of the program's own draft source that could not be used.");
  Family<Counter>& drafts = counters("spec_decode_num_drafts_total", "Runs of drafts verified.");
  Family<Counter>& draft_tokens = counters("spec_decode_num_draft_tokens_total", "Draft tokens verified.");
  Family<Counter>& accepted_tokens = counters("spec_decode_num_accepted_tokens_total", "Draft tokens accepted.");
  Family<Counter>& accepted_per_position =
      counters("spec_decode_num_accepted_tokens_per_pos_total", "Draft tokens accepted, by place in the run.");
  Family<Histogram>& speculation_k = histograms("speculation_k", "Drafts asked for, per run.");
  Histogram& no_drafts = speculation_k.Add(with("method", "none"), kDrafts);
  Family<Histogram>& step_durations = histograms("step_duration_seconds", "Wall time of a step.");
  Histogram& step_prefill = step_durations.Add(with("kind", "prefill"), kStepSeconds);
  Histogram& step_decode = step_durations.Add(with("kind", "decode"), kStepSeconds);
  Histogram& step_mixed = step_durations.Add(with("kind", "mixed"), kStepSeconds);
  Histogram& overhead = histogram("engine_overhead_seconds", "Step wall time minus device time.", kOverheadSeconds);
  Histogram& first_token = histogram("time_to_first_token_seconds", "Submission to first token.", kFirstTokenSeconds);
  Histogram& token_gap =
      histogram("inter_token_latency_seconds", "Gap between tokens, one sample per token; a burst shares its gap.",
                kTokenGapSeconds);
  Histogram& chunk_gap = histogram("inter_chunk_latency_seconds", "Gap between delivered bursts.", kTokenGapSeconds);
  Histogram& per_token = histogram("request_time_per_output_token_seconds",
                                   "Decode time over tokens after the first, per choice.", kTokenGapSeconds);
  Histogram& end_to_end = histogram("e2e_request_latency_seconds", "Submission to last token.", kRequestSeconds);
  Histogram& queue_time =
      histogram("request_queue_time_seconds", "Submission to first row in a step.", kRequestSeconds);
  Histogram& prefill_time = histogram("request_prefill_time_seconds", "First row to first token.", kRequestSeconds);
  Histogram& decode_time = histogram("request_decode_time_seconds", "First token to last token.", kRequestSeconds);
  Histogram& iteration_tokens = histogram("iteration_tokens_total", "Rows of a step.", kRows);
  std::array<Counter*, kFinishReasonNames.size()> success{};
  std::array<speculation_counters, kDraftMethods> speculation{};
};

metrics_registry::metrics_registry(const std::string& model_name, std::int32_t blocks_total)
    : impl_(std::make_unique<impl>(model_name, blocks_total)) {}
metrics_registry::~metrics_registry() = default;

void metrics_registry::show(const live_counters& now) {
  auto& all = *impl_;
  all.running.Set(now.running.load(std::memory_order_relaxed));
  all.waiting.Set(now.waiting.load(std::memory_order_relaxed));
  if (all.blocks > 0)
    all.kv_usage.Set(static_cast<double>(now.blocks_used.load(std::memory_order_relaxed)) / all.blocks);
}

void metrics_registry::show(const compile_status& now) {
  impl_->grammars_waiting.Set(static_cast<double>(now.waiting));
  impl_->grammars_running.Set(static_cast<double>(now.running));
  impl_->grammars_abandoned.Set(static_cast<double>(now.abandoned));
}

void metrics_registry::record(const step_measured& step) {
  auto& all = *impl_;
  watch_.record(step);
  all.preemptions.Increment(step.preemptions);
  all.prompt_tokens.Increment(step.prompt_tokens);
  all.generation_tokens.Increment(step.generated_tokens);
  all.prefix_queries.Increment(step.prefix_queried_tokens);
  all.prefix_hits.Increment(step.prefix_hit_tokens);
  for (const auto& one : step.speculations) all.record(one);
  for (std::int32_t i = 0; i < step.undrafted; ++i) all.no_drafts.Observe(0);
  if (step.rows == 0) return;
  all.iteration_tokens.Observe(step.rows);
  auto& kind = step.prompt_tokens == 0           ? all.step_decode
               : step.prompt_tokens == step.rows ? all.step_prefill
                                                 : all.step_mixed;
  kind.Observe(step.step_seconds);
  if (step.step_seconds <= 0) return;
  all.overhead.Observe(step.step_seconds > step.device_seconds ? step.step_seconds - step.device_seconds : 0);
  all.device_busy.Set(step.device_seconds < step.step_seconds ? step.device_seconds / step.step_seconds : 1);
}

void metrics_registry::record(const sequence_measured& sequence) {
  auto& all = *impl_;
  all.success[static_cast<std::size_t>(sequence.reason)]->Increment();
  if (sequence.reason == finish_reason::cancelled) all.cancelled.Increment();
  const auto& stats = *sequence.stats;
  all.queue_time.Observe(stats.queue_ms / 1e3);
  all.end_to_end.Observe(sequence.e2e_seconds);
  if (stats.completion_tokens == 0) return;
  all.first_token.Observe(sequence.ttft_seconds);
  all.prefill_time.Observe(stats.prefill_ms / 1e3);
  all.decode_time.Observe(stats.decode_ms / 1e3);
  if (stats.completion_tokens > 1) all.per_token.Observe(stats.decode_ms / 1e3 / (stats.completion_tokens - 1));
}

void metrics_registry::record(const burst_measured& burst) {
  if (burst.tokens <= 0) return;
  impl_->chunk_gap.Observe(burst.gap_seconds);
  for (std::int32_t i = 0; i < burst.tokens; ++i) impl_->token_gap.Observe(burst.gap_seconds / burst.tokens);
}

void metrics_registry::count_rejected(const std::string& reason) {
  impl_->rejected.Add(impl_->with("reason", reason)).Increment();
}
void metrics_registry::count_cancelled() {
  impl_->cancelled.Increment();
}
void metrics_registry::count_websocket(int delta) {
  impl_->websockets.Increment(delta);
}
void metrics_registry::count_restart(const std::string& actor) {
  impl_->restarts.Add(impl_->with("actor", actor)).Increment();
}

void metrics_registry::count_draft_fault(draft_fault fault) {
  constexpr std::array kNames{"exception", "late", "unknown_token"};
  impl_->draft_faults.Add(impl_->with("fault", kNames[static_cast<std::size_t>(fault)])).Increment();
}

std::string metrics_registry::text() const {
  try {
    return prometheus::TextSerializer{}.Serialize(impl_->registry.Collect());
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace tandem
