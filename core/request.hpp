#pragma once
/// What a client asks for, in the engine's own words. The network edge and the library translate into this.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/limits.hpp"
#include "core/ids.hpp"
#include "core/result.hpp"

namespace tandem {

class grammar;  // core/grammar.hpp

/// What an output must be, as the client wrote it. Compiled into a `grammar` before the request is admitted.
struct structured_spec {
  enum class form : std::uint8_t {
    json_object,     ///< any JSON object
    json_schema,     ///< `text`: a JSON schema
    regex,           ///< `text`: a regular expression that matches the whole output
    choice,          ///< one of `choices`
    ebnf,            ///< `text`: a grammar in GBNF's notation, from the rule `root` on
    structural_tag,  ///< `text`: XGrammar's JSON description of plain text with tagged, structured parts
  };
  form kind = form::json_object;
  std::string text;
  std::vector<std::string> choices;
  bool strict = true;  ///< json_schema: what cannot be enforced is refused; false: it is passed over
  std::string field;   ///< what the client calls it, for errors

  /// The same outputs, whoever asks.
  bool same_as(const structured_spec& other) const {
    return kind == other.kind && strict == other.strict && text == other.text && choices == other.choices;
  }
};

/// How a target's token is drawn from a row of logits. Order: penalties and bias → temperature → min-p → top-k → top-p.
/// Immutable once the request is admitted; shared by every choice.
struct sampling_params {
  float temperature = 1.0F;                            ///< 0 = greedy; else > 0
  std::int32_t top_k = 0;                              ///< 0 = off
  float top_p = 1.0F;                                  ///< (0, 1]
  float min_p = 0.0F;                                  ///< [0, 1]
  float repetition_penalty = 1.0F;                     ///< > 0; over prompt and output tokens
  float presence_penalty = 0.0F;                       ///< [-2, 2]; over output tokens
  float frequency_penalty = 0.0F;                      ///< [-2, 2]; over output tokens
  std::vector<std::pair<token_id, float>> logit_bias;  ///< added to the raw logits; sorted by id, ids unique
  std::vector<token_id> allowed_token_ids;             ///< sorted; empty = all
  /// Token sequences, none empty: the last token of each is never drawn behind its others (output tokens only). Filled
  /// in by intake from generation_request::bad_words.
  std::vector<std::vector<token_id>> bad_words;
  std::int32_t min_tokens = 0;
  std::vector<token_id> held_until_min_tokens;  ///< sorted; never drawn among the first min_tokens outputs
                                                ///< (end tokens and stop ids; filled in by intake)
  std::optional<std::uint64_t> seed;            ///< absent: intake draws one
  std::shared_ptr<const grammar> structure;     ///< what the output must be (filled in by intake); null: anything
};

/// When a sequence ends. Decided by the scheduler alone.
struct stop_params {
  std::vector<std::string> stop;  ///< byte strings; none empty
  std::vector<token_id> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;         ///< special tokens have no text, also not for stop strings
  std::optional<std::int32_t> max_tokens;  ///< absent: what is left of the model's length
};

struct logprob_params {
  std::int32_t top = -1;         ///< alternatives per output token; -1 = none wanted, 0 = the chosen token only
  std::int32_t prompt_top = -1;  ///< the same for prompt tokens; ≥ 0 turns prefix reuse off for this request
};

enum class draft_method : std::uint8_t { none, ngram, suffix, draft_model, medusa, eagle, custom };
inline constexpr int kDraftMethods = 7;
constexpr std::size_t index_of(draft_method method) {
  return static_cast<std::size_t>(method);
}

/// Per-request override of the server's speculation.
struct speculation_params {
  std::optional<draft_method> method;  ///< absent: the server's default
  std::optional<std::int32_t> k;       ///< num_speculative_tokens; absent: the server's default
  bool adaptive = true;                ///< false: draft exactly k whenever a full k fits; else k is the most
};

/// Text to encode. Special tokens are recognised only inside `trusted` ranges: what a user typed in a chat message is
/// never one. Byte offsets into `text`, ascending, disjoint.
struct byte_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const byte_range&) const = default;
};
struct prompt_text {
  std::string text;
  std::vector<byte_range> trusted;
  bool add_bos = true;  ///< put the model's BOS first where its tokenizer says so (never twice)
};

/// A chat to render with the model's template. JSON texts, already checked to be arrays / objects of bounded depth.
struct chat_prompt {
  std::string messages_json;
  std::string tools_json;   ///< empty = no tools
  std::string kwargs_json;  ///< chat_template_kwargs; empty = none
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

using prompt_source = std::variant<prompt_text, chat_prompt, std::vector<token_id>>;

/// Beam search instead of sampling; its width is n. Scores are log-probabilities of the model's own distribution,
/// summed and divided by length ^ length_penalty, where the length is that of prompt and output without the end token.
struct beam_params {
  float length_penalty = 1.0F;
  bool early_stopping = false;  ///< end with the n-th beam that is complete, whatever the others could become
};

/// One prompt with n choices. A list of prompts is several of these.
struct generation_request {
  prompt_source prompt;
  sampling_params sampling;
  stop_params stopping;
  logprob_params logprobs;
  speculation_params speculation;
  std::optional<structured_spec> structured;  ///< what the output must be; absent: anything
  std::vector<std::string> bad_words;         ///< texts whose token sequences are not drawn; none empty
  std::int32_t n = 1;
  std::int32_t best_of = 1;                          ///< choices that are made, if more than n: the n best are shown
  std::optional<beam_params> beams;                  ///< absent: sampling
  std::int32_t priority = 0;                         ///< smaller goes first, with --scheduling-policy priority
  std::optional<std::chrono::milliseconds> timeout;  ///< deadline from submission
  std::string cache_salt;                            ///< prefix blocks are shared only between equal salts
  std::string external_id;                           ///< for logs, bounded by the edge; may be empty

  /// Sequences that the request takes.
  std::int32_t sequences() const { return std::max(n, best_of); }
};

enum class finish_reason : std::uint8_t { stop, length, timeout, cancelled, error };

/// Why a sequence ended, and where its text is cut.
struct finish {
  finish_reason reason = finish_reason::stop;
  std::optional<std::string> stop_string;  ///< the stop string that matched
  std::optional<token_id> stop_token;      ///< the stop id that matched; absent for the model's own end token
  std::size_t text_bytes = std::numeric_limits<std::size_t>::max();  ///< visible output bytes to keep
  std::string message;                                               ///< for `error`
  error_code code = error_code::device_failed;                       ///< for `error`
};

/// Log-probabilities of one token under the model's own distribution (before penalties, bias, temperature, filters).
struct token_logprobs {
  token_id token = kNoToken;
  float logprob = 0.0F;
  std::int32_t rank = 0;                        ///< 1 = most probable
  std::vector<std::pair<token_id, float>> top;  ///< descending; ties by ascending id
};

/// Counts and times of one choice, complete when it ends. Definitions: docs/api.md.
struct sequence_stats {
  /// What one draft method did for the sequence.
  struct drafting {
    std::int32_t runs = 0;  ///< proposals verified
    std::int32_t draft_tokens = 0;
    std::int32_t accepted_tokens = 0;                                 ///< Σ accepted_at
    std::array<std::int32_t, limits::kMaxDraftTokens> accepted_at{};  ///< by place in the run; never rising

    /// Places at which anything was accepted.
    std::int32_t longest() const {
      return static_cast<std::int32_t>(std::find(accepted_at.begin(), accepted_at.end(), 0) - accepted_at.begin());
    }
  };
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;  ///< prompt tokens served from the prefix cache
  std::int32_t completion_tokens = 0;
  std::int32_t unshown_tokens = 0;  ///< of choices that were made for best_of and not shown; in the first choice
  /// Target forwards that committed tokens for it; of beams: for the lane of that number. This and what was drafted is in
  /// the first choice also that of choices which were made for best_of and not shown.
  std::int32_t steps = 0;
  std::int32_t draft_tokens = 0;
  std::int32_t accepted_tokens = 0;
  std::int32_t preemptions = 0;
  double queue_ms = 0;                            ///< submission → first row in a step
  double prefill_ms = 0;                          ///< first row → first token
  double decode_ms = 0;                           ///< first token → last token
  std::array<drafting, kDraftMethods> by_method;  ///< by draft_method; sums to draft_tokens and accepted_tokens

  /// For sums over choices: steps and drafts.
  void add_work(const sequence_stats& other) {
    steps += other.steps;
    draft_tokens += other.draft_tokens;
    accepted_tokens += other.accepted_tokens;
    for (std::size_t method = 0; method < by_method.size(); ++method) {
      by_method[method].runs += other.by_method[method].runs;
      by_method[method].draft_tokens += other.by_method[method].draft_tokens;
      by_method[method].accepted_tokens += other.by_method[method].accepted_tokens;
      for (std::size_t place = 0; place < limits::kMaxDraftTokens; ++place)
        by_method[method].accepted_at[place] += other.by_method[method].accepted_at[place];
    }
  }
};

}  // namespace tandem
