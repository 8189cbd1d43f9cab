#pragma once
/// Events → bytes of an answer, for each shape of the API. Pure: no sockets, no clock, no runtime.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/outlet.hpp"
#include "core/result.hpp"
#include "net/answer_parts.hpp"
#include "net/http_message.hpp"
#include "net/openai_requests.hpp"

namespace tandem::net {

/// What all answers of one call say about themselves.
struct answer_context {
  std::string id;            ///< e.g. "cmpl-…"
  std::int64_t created = 0;  ///< Unix seconds
  token_texts texts;
  std::string call_id_stem;  ///< begins the ids of tool calls; unique per answer
};

/// `{"error": {message, type, param, code}}`.
std::string error_json(const error& reason);
http_response error_response(const error& reason);
/// Of an error that HTTP itself raises (405, 413, 431 …).
http_response error_response(unsigned status, std::string message, std::string code);
unsigned status_of(error_code code);

/// One call's answer, streamed or whole. Owner: one generation_call; not thread-safe.
///
/// Streamed: begin(), then append() per event and flush() per burst, then finish() or fail(). Whole: append() and, when
/// complete(), whole().
class api_answer {
 public:
  api_answer(const answer_format& format, answer_context context);
  virtual ~api_answer() = default;

  void accept(std::size_t prompt, std::shared_ptr<const std::vector<token_id>> ids);
  /// Every prompt was accepted.
  bool accepted() const { return accepted_ == prompts_.size(); }
  /// Every choice has ended.
  bool complete() const { return ended_ == choices_.size(); }
  /// The first choice that ended in an error, or a deadline that passed before any token of a whole answer.
  std::optional<error> failure() const;

  /// Takes one event in; what a stream shows of it is added to `out`.
  void append(std::size_t prompt, generation_event event, std::string& out);

  virtual std::string_view content_type() const = 0;
  virtual std::string_view ping() const { return {}; }
  virtual std::string begin() { return {}; }
  virtual std::string flush() { return {}; }
  virtual std::string finish() = 0;
  virtual std::string fail(const error& reason) = 0;
  virtual std::string whole() = 0;

 protected:
  struct choice {
    std::string text;
    std::vector<token_id> tokens;
    std::vector<token_logprobs> logprobs;
    std::vector<token_logprobs> prompt_logprobs;
    std::optional<tandem::finish> end;
    std::size_t text_offset = 0;  ///< characters, for completions' logprobs
    bool started = false;         ///< a chunk with this choice went out
    bool prompt_begun = false;    ///< log-probabilities of the prompt, or that its first token has none, went out
  };

  /// What a stream shows of `event`; `at` is its choice with the event taken in.
  virtual void show(std::size_t index, const generation_event& event, choice& at, std::string& out) = 0;
  /// Whether texts and tokens must be kept (whole answers and cumulative streams).
  virtual bool keeps_output() const { return !format_.stream; }

  const std::vector<token_id>& prompt_ids(std::size_t choice_index) const;
  std::string prompt_shown(std::size_t prompt) const;
  /// Whether `event` brings log-probabilities of the prompt that the client asked for.
  bool scores_prompt(const generation_event& event) const;
  /// `prompt_logprobs` of a stream, in parts as they come: with `event`, where it is the next part or the first chunk.
  void write_prompt_part(json_writer& out, const generation_event& event, choice& at) const;
  void write_identity(json_writer& out, std::string_view object) const;

  answer_format format_;
  answer_context context_;
  std::vector<std::shared_ptr<const std::vector<token_id>>> prompts_;
  std::vector<choice> choices_;  ///< prompt-major: prompt * n + choice
  call_counts counts_;

 private:
  void note_end(const tandem::finish& end);

  std::size_t accepted_ = 0;
  std::size_t ended_ = 0;
  std::size_t timed_out_ = 0;
  std::optional<error> failed_;  // the first
};

/// The answer for the format's shape; not for frames.
std::unique_ptr<api_answer> make_answer(const answer_format& format, answer_context context);
std::unique_ptr<api_answer> make_completion_answer(const answer_format& format, answer_context context);
std::unique_ptr<api_answer> make_chat_answer(const answer_format& format, answer_context context);
std::unique_ptr<api_answer> make_generate_answer(const answer_format& format, answer_context context);
/// Frames of GET /ws: each of append()'s pieces is one JSON object and a newline, which the socket cuts into frames.
/// `id_json` is echoed.
std::unique_ptr<api_answer> make_frame_answer(const answer_format& format, answer_context context, std::string id_json);

/// One server-sent event.
std::string sse_event(std::string_view json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr std::string_view kSsePing = ": ping\n\n";

}  // namespace tandem::net
