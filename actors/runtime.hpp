#pragma once
/// The engine as the network edge, the command line and the embedding library see it: submit, cancel, watch, drain.
/// No actor library types here. The only implementation with actors is make_runtime(); tests of the edge use a fake.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/batch_view.hpp"
#include "actors/outlet.hpp"
#include "core/grammar.hpp"
#include "core/request.hpp"
#include "core/result.hpp"
#include "core/speculation/policy.hpp"
#include "core/speculation/suffix_statistics.hpp"
#include "core/step.hpp"
#include "gpu/device.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace tandem {

class custom_drafts;  // actors/custom_source.hpp

struct runtime_options {
  std::string model_name;             ///< as served
  std::int32_t max_model_len = 2048;  ///< already lowered to what the KV can hold
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = 512;
  bool prefix_caching = true;
  bool chunked_prefill = true;
  bool priority_policy = false;
  std::size_t max_queued_requests = 0;  ///< 0: limits::kMaxQueuedRequests
  std::size_t max_queued_tokens = 0;    ///< 0: limits::kMaxQueuedTokens
  std::uint64_t seed = 0;               ///< from which seeds of requests without one are drawn
  acceptance_rule rule = acceptance_rule::coupled;
  speculation_settings speculation;
  bool ngram_drafter = true;  ///< spawned even when not the default method: requests may ask for it
  std::int32_t prompt_lookup_min = 2;
  std::int32_t prompt_lookup_max = 5;
  bool suffix_drafter = false;  ///< learns from every output, also of requests that do not ask for it
  std::int32_t suffix_longest_context = limits::kMaxSuffixContext;
  double suffix_least_probability = kUsualLeastProbability;
  std::int32_t suffix_mebibytes = limits::kDefaultSuffixMebibytes;
  std::int32_t max_draft_tokens = 8;
  std::int32_t draft_vocabulary = 0;  ///< rows of the draft model; 0: no draft model, or as many as the target
  std::int32_t stream_interval = 1;   ///< tokens per event, at least
  bool log_prompts = false;
};

struct runtime_status {
  bool ready = false;  ///< a first token is possible
  bool draining = false;
  bool stuck = false;  ///< work waits and no step ended for limits::kStuckDevice
  bool grammars_stuck = false;  ///< no new grammar can be compiled; all else works
  std::int32_t running = 0;
  std::int32_t waiting = 0;
  std::int32_t blocks_used = 0;  ///< held by live sequences
  std::int32_t blocks_total = 0;
  std::string device;
};

/// Every method may be called from any thread. None blocks, except drain() and the destructor.
class runtime {
 public:
  virtual ~runtime() = default;

  /// Never fails here: the answer comes through the outlet (accepted or refused), then the events.
  virtual request_id submit(generation_request request, std::shared_ptr<outlet> client) = 0;
  /// The request's choices end with finish_reason::cancelled. Unknown and ended ids are ignored.
  virtual void cancel(request_id id) = 0;
  /// On an encoder thread; the answer is called there.
  virtual void encode(prompt_source prompt, std::function<void(result<std::vector<token_id>>)> answer) = 0;

  virtual runtime_status status() const = 0;
  virtual std::string metrics_text() const = 0;  ///< Prometheus text format
  virtual batch_view batch() const = 0;
  /// Counts what the edge refuses itself: requests_rejected{reason}.
  virtual void count_rejected(const std::string& reason) = 0;
  /// Live WebSocket connections, for the gauge.
  virtual void count_websocket(int delta) = 0;

  virtual const runtime_options& options() const = 0;
  /// By draft_method: which requests may ask for; `none` is one.
  virtual std::array<bool, kDraftMethods> draft_methods() const = 0;
  virtual const text::tokenizer& tokenizer() const = 0;
  virtual bool has_chat_template() const = 0;
  virtual std::string_view chat_template_source() const = 0;  ///< Jinja; empty: none
  virtual const gpu::device_info& device() const = 0;

  /// Refuses new work from now on; returns when all work ended or `bound` passed (the rest is then cancelled).
  virtual void drain(std::chrono::milliseconds bound) = 0;
  /// Kills one actor, as a fault would ("drafter", "kv_allocator", "streamer"): for tests of supervision.
  virtual void kill_for_test(const std::string& actor) = 0;
};

struct runtime_parts {
  std::unique_ptr<gpu::device> device;
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::shared_ptr<const text::chat_template> chat_template;  ///< null: none
  std::shared_ptr<custom_drafts> drafts;                     ///< the program's own draft source; null: none
  std::shared_ptr<const grammar_compiler> grammars;  ///< for the tokenizer's vocabulary; null: no structured output
};

/// Starts the actors. Error: invalid_argument for options that contradict each other.
result<std::unique_ptr<runtime>> make_runtime(runtime_options options, runtime_parts parts);

}  // namespace tandem
