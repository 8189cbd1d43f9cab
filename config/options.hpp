#pragma once
/// Everything a user can set, as one plain struct. Units are in the names; defaults are what an absent flag means.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/limits.hpp"
#include "core/request.hpp"
#include "core/speculation/suffix_statistics.hpp"
#include "core/step.hpp"

namespace tandem::config {

enum class device_kind : std::uint8_t { automatic, cpu, cuda };
enum class weight_dtype : std::uint8_t { automatic, bf16, fp32 };
enum class weight_quantization : std::uint8_t { none, int8 };  ///< of weights the file keeps as f32, f16 or bf16
enum class kv_cache_dtype : std::uint8_t { automatic, bf16, fp32, int8 };

/// --speculative-config and its short forms.
struct speculation_options {
  std::optional<draft_method> method;  ///< absent: `auto`, whichever source pays; with a fixed number the draft
                                       ///< model, without one the heads
  std::string draft_model;             ///< a file, a folder or a known name; empty = none
  std::string draft_heads;             ///< a folder with Medusa or EAGLE heads made for the model; empty = none
  std::optional<std::int32_t> num_speculative_tokens;  ///< absent: as many as pay, with a method 5
  std::optional<bool> adaptive;        ///< absent: without method and number. true: a number is the most
  std::int32_t prompt_lookup_min = 2;  ///< tokens
  std::int32_t prompt_lookup_max = 5;  ///< tokens
  std::optional<bool> suffix;  ///< learn from outputs; absent: with method suffix, and with `auto` where adaptive
  std::int32_t suffix_longest_context = limits::kMaxSuffixContext;  ///< tokens
  double suffix_least_probability = kUsualLeastProbability;         ///< of a proposal as a whole, [0, 1]
  std::int32_t suffix_mebibytes = limits::kDefaultSuffixMebibytes;  ///< of statistics of outputs
  acceptance_rule rule = acceptance_rule::coupled;
  std::optional<std::int32_t> disable_by_batch_size;  ///< no drafts above this many sequences
};

/// What the engine needs, whichever way it is reached.
struct engine_options {
  std::string model;  ///< a .gguf file, a Hugging Face folder or a known name
  device_kind device = device_kind::automatic;
  weight_dtype dtype = weight_dtype::automatic;
  weight_quantization quantization = weight_quantization::none;  ///< int8 only with dtype automatic
  kv_cache_dtype kv_dtype = kv_cache_dtype::automatic;
  std::int32_t threads = 0;        ///< 0: the cores the cgroup grants
  std::int32_t max_model_len = 0;  ///< tokens; 0: the model's own, lowered to what the KV cache can hold
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = limits::kDefaultBatchedTokens;  ///< rows of one step
  std::int32_t block_size = 16;                                         ///< tokens
  std::int32_t num_kv_blocks = 0;                                       ///< 0: from kv_cache_memory_bytes
  std::uint64_t kv_cache_memory_bytes = 0;  ///< 0: min(4 GiB, 40 % of what is free after loading)
  bool prefix_caching = true;
  bool chunked_prefill = true;
  bool priority_scheduling = false;     ///< else first come, first served
  std::size_t max_queued_requests = 0;  ///< 0: limits::kMaxQueuedRequests
  std::size_t max_queued_tokens = 0;    ///< 0: limits::kMaxQueuedTokens
  std::uint64_t seed = 0;               ///< from which requests without a seed get theirs
  std::int32_t stream_interval = 1;     ///< tokens per streamed piece, at least
  std::string chat_template_file;       ///< replaces the model's own; empty = the model's own
  bool log_prompts = false;
  speculation_options speculation;
};

/// How the model's calls of tools are read.
enum class tool_call_parser : std::uint8_t { automatic, none, hermes, llama3_json };

/// Files are PEM; empty = none. Without a certificate the server speaks in the clear.
struct tls_options {
  std::string certificate_file;  ///< the server's own first, then those that signed it
  std::string key_file;          ///< empty: in certificate_file
  std::string client_ca_file;    ///< who signs clients' certificates
  std::optional<std::int32_t>
      client_certificates;  ///< 0 ignored, 1 optional, 2 required; absent: 2 with client_ca_file
};

/// What pages of other origins may do. "*" = any.
struct cross_origin_options {
  std::vector<std::string> origins;  ///< empty: nothing
  std::vector<std::string> methods;  ///< empty: any
  std::vector<std::string> headers;  ///< empty: any
  bool credentials = false;
  std::vector<std::string> hosts;  ///< names of the server under which its own pages may use it; "*": any
};

/// What only `tandem serve` needs.
struct server_options {
  std::string host = "127.0.0.1";
  std::int32_t port = 8000;  ///< 0: a free one
  std::vector<std::string> api_keys;
  std::int32_t max_requests_per_key = 0;  ///< at once; 0: no bound
  std::int32_t max_body_mib = 0;          ///< of one request; 0: limits::kMaxBodyBytes
  tls_options tls;
  cross_origin_options cross_origin;
  tool_call_parser tool_calls = tool_call_parser::automatic;
  std::vector<std::string> served_model_names;  ///< empty: from the model's name
  std::int32_t shutdown_timeout_s = 30;
};

/// Whether numbers of drafts are chosen per step: by what pays, unless a method or a number is asked for.
inline bool drafts_adaptively(const speculation_options& speculation) {
  return speculation.adaptive.value_or(!speculation.method && !speculation.num_speculative_tokens);
}
/// Whether there is a source that learns from every output.
inline bool learns_from_outputs(const speculation_options& speculation) {
  const bool used =
      speculation.method == draft_method::suffix || (!speculation.method && drafts_adaptively(speculation));
  return speculation.suffix.value_or(used);
}
/// The most drafts of a step, or the number itself.
inline std::int32_t draft_tokens_of(const speculation_options& speculation) {
  const std::int32_t usual = drafts_adaptively(speculation) ? limits::kMaxDraftTokens : limits::kDefaultDraftTokens;
  return speculation.num_speculative_tokens.value_or(usual);
}

enum class log_level : std::uint8_t { debug, info, warning, error };

struct logging_options {
  log_level level = log_level::info;
  bool json = false;
};

struct options {
  engine_options engine;
  server_options server;
  logging_options logging;
  std::string config_file;  ///< --config; empty = none
};

}  // namespace tandem::config
