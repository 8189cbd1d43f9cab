#pragma once
/// tandem inside your program: load a model, generate, stream, cancel. Only the standard library is visible here.
///
///   tandem::Engine engine{{.model = "smollm2-135m"}};
///   for (const tandem::Output& output : engine.generate({"The capital of France is"}, {.max_tokens = 30}))
///     std::cout << output.choices[0].text << '\n';
///
/// Every method of Engine may be called from any thread. Failures are exceptions of type tandem::Error.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tandem/draft_source.hpp"

namespace tandem {

/// What went wrong, in one sentence; `code` is e.g. "invalid_argument", "overloaded", "unavailable", "corrupt".
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

/// How to load and run a model. Names and meanings are those of the command line's flags; 0 and "" are "default".
struct Options {
  std::string model;                    ///< a .gguf file, a Hugging Face folder or a name of `tandem models`
  std::string dtype = "auto";           ///< auto | bf16 | fp32
  std::string quantization = "none";    ///< none | int8: f32, f16 and bf16 weights rounded to 8 bits at load
  std::string kv_cache_dtype = "auto";  ///< auto | bf16 | fp32 | int8
  std::int32_t threads = 0;             ///< 0: the cores this process may use
  std::int32_t max_model_len = 0;       ///< tokens; 0: the model's own, as far as memory reaches
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = 512;  ///< rows of one step
  std::int32_t block_size = 16;               ///< tokens of a KV block
  std::int32_t num_kv_blocks = 0;             ///< 0: from kv_cache_memory_bytes
  std::uint64_t kv_cache_memory_bytes = 0;    ///< 0: min(4 GiB, 40 % of what is free)
  bool enable_prefix_caching = true;
  std::string draft_model;                      ///< a small model with the same tokens that proposes; "" = none
  std::string draft_heads;                      ///< a folder with Medusa or EAGLE heads for the model; "" = none
  std::string speculative_config;               ///< one JSON object, as --speculative-config; "" = nothing
  std::shared_ptr<DraftSource> draft_source;    ///< your own, method "custom"; null = none
  std::uint64_t seed = 0;                       ///< from which requests without a seed get theirs
  std::function<void(const std::string&)> log;  ///< lines about loading; may be empty
};

/// What an answer must be; at most one member is set. Details: docs/api.md, "Structured output".
struct StructuredOutput {
  bool json_object = false;         ///< any JSON object
  std::string json_schema;          ///< JSON that is valid against this schema
  std::string regex;                ///< text that this regular expression matches as a whole
  std::vector<std::string> choice;  ///< one of these
  std::string grammar;              ///< text of this grammar, in GBNF's notation, from the rule "root" on
  bool strict = true;               ///< of a schema: what cannot be enforced is refused; false: it is passed over
};

/// How tokens are drawn and when an answer ends.
struct SamplingParams {
  std::optional<std::int32_t> max_tokens;  ///< absent: what is left of the model's length
  float temperature = 1.0F;                ///< 0: the most probable token
  float top_p = 1.0F;
  std::int32_t top_k = 0;  ///< 0: off
  float min_p = 0.0F;
  float repetition_penalty = 1.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  std::int32_t min_tokens = 0;
  std::optional<std::uint64_t> seed;  ///< the same seed, prompt and options give the same tokens
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_token_ids;
  std::vector<std::string> bad_words;  ///< texts whose token sequences are not drawn; other tokens may spell them
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  std::int32_t n = 1;            ///< answers to the same prompt
  std::int32_t best_of = 1;      ///< answers that are made, if more than n: the n most probable per token are given
  bool use_beam_search = false;  ///< a search with n beams instead of sampling
  float length_penalty = 1.0F;   ///< of beams: scores are divided by length to this power
  bool early_stopping = false;   ///< of beams: end when n are complete
  std::int32_t logprobs = -1;    ///< alternatives per token; -1: none
  std::vector<std::pair<std::int32_t, float>> logit_bias;
  StructuredOutput structured;
  std::string speculative_method;  ///< "" the engine's | none | ngram | suffix | draft_model | medusa | eagle | custom
  std::int32_t num_speculative_tokens = -1;  ///< -1: the engine's
};

/// One message of a chat.
struct Message {
  std::string role;  ///< system | user | assistant
  std::string content;
};

/// One of prompt, prompt_token_ids, messages.
struct Request {
  std::string prompt;
  std::vector<std::int32_t> prompt_token_ids;
  std::vector<Message> messages;  ///< rendered with the model's chat template
  SamplingParams sampling;
  std::optional<std::chrono::milliseconds> timeout;  ///< the answer ends with what it has
};

struct Logprob {
  std::int32_t token = -1;
  float logprob = 0.0F;
  std::int32_t rank = 0;  ///< 1: the most probable
  std::vector<std::pair<std::int32_t, float>> top;
};

/// A piece of an answer: whole characters, in order. The last piece of a choice has a finish_reason.
struct Event {
  std::int32_t choice = 0;
  std::string text;
  std::vector<std::int32_t> token_ids;
  std::vector<bool> accepted;  ///< per token: it was a draft
  std::vector<Logprob> logprobs;
  std::string finish_reason;               ///< "" | stop | length | timeout | cancelled | error
  std::optional<std::string> stop_string;  ///< that ended it
  std::optional<std::int32_t> stop_token;  ///< that ended it; absent for the model's own end token
  std::string error;                       ///< with finish_reason "error", or when the request was refused
};

/// Counts of one choice; with best_of the first one's steps and drafts are also those of choices that are not given.
/// Definitions: docs/api.md.
struct Usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t completion_tokens = 0;
  std::int32_t steps = 0;
  std::int32_t draft_tokens = 0;
  std::int32_t accepted_tokens = 0;
};

struct Choice {
  std::string text;
  std::vector<std::int32_t> token_ids;
  std::vector<Logprob> logprobs;
  std::string finish_reason;
  std::optional<std::string> stop_string;
  std::optional<std::int32_t> stop_token;
  Usage usage;
};

struct Output {
  std::vector<std::int32_t> prompt_token_ids;
  std::vector<Choice> choices;
};

namespace detail {
struct cancel_gate;
struct engine_state;
struct request_state;
}  // namespace detail

/// Names a request in flight. Copies name the same one. It may outlive the engine; then cancel() does nothing.
class Handle {
 public:
  Handle() = default;
  /// Ends the request soon with finish_reason "cancelled".
  void cancel() const;

 private:
  friend class Engine;
  friend class Stream;
  std::weak_ptr<detail::cancel_gate> gate_;
  std::uint64_t id_ = 0;
};

/// The events of one request, as a range. Destroying it before its end cancels the request. Used by one thread.
class Stream {
 public:
  class iterator {
   public:
    using value_type = Event;
    using difference_type = std::ptrdiff_t;
    const Event& operator*() const { return stream_->current_; }
    const Event* operator->() const { return &stream_->current_; }
    iterator& operator++() {
      if (!stream_->advance()) stream_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const iterator&) const = default;

   private:
    friend class Stream;
    explicit iterator(Stream* stream) : stream_(stream) {}
    Stream* stream_ = nullptr;
  };

  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) = delete;
  ~Stream();
  /// Waits for the first event. Throws Error when the request was refused.
  iterator begin() { return iterator(advance() ? this : nullptr); }
  iterator end() { return iterator(nullptr); }
  const Handle& handle() const { return handle_; }

 private:
  friend class Engine;
  explicit Stream(std::shared_ptr<detail::request_state> state) : state_(std::move(state)) {}
  bool advance();
  std::shared_ptr<detail::request_state> state_;
  Handle handle_;
  Event current_;
};

/// A loaded model with its actors. Destroying it cancels what is in flight; not from a callback.
class Engine {
 public:
  /// Loads the model; takes seconds. Throws Error.
  explicit Engine(const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// All prompts at once, answers in the same order. Throws Error for the first prompt that was refused or failed.
  std::vector<Output> generate(const std::vector<std::string>& prompts, const SamplingParams& sampling = {});
  Output generate(Request request);
  Output chat(const std::vector<Message>& messages, const SamplingParams& sampling = {});

  /// `on_event` is called on the engine's delivery thread, one call at a time; it may be slow, call the engine and must
  /// not throw. A refused request gives one event with `error` set.
  Handle submit(Request request, std::function<void(const Event&)> on_event);
  std::future<Output> submit(Request request);
  Stream stream(Request request);

  std::vector<std::int32_t> tokenize(const std::string& text, bool parse_special = false) const;
  std::string detokenize(const std::vector<std::int32_t>& token_ids, bool skip_special = true) const;
  /// Longest prompt plus answer, in tokens.
  std::int32_t max_model_len() const;
  /// Metrics in Prometheus' text format.
  std::string metrics() const;

 private:
  std::shared_ptr<detail::engine_state> state_;
};

}  // namespace tandem
