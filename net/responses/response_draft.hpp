#pragma once
/// A response as it grows: the object that GET answers, and the events that tell of every change. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "net/answer_parts.hpp"
#include "net/responses/input_items.hpp"

namespace tandem::net {

struct response_identity {
  std::string id;            ///< "resp_…"
  std::string previous_id;   ///< empty: none
  std::int64_t created = 0;  ///< Unix seconds
  std::string settings_json;
  bool include_logprobs = false;
  bool include_timings = false;
  bool include_token_ids = false;
};

/// Events are JSON objects, one a line, without their sequence numbers, which the record gives them. Owner: one
/// response_run, and the answer of its generation.
class response_draft {
 public:
  response_draft(response_identity identity, token_texts texts);

  /// `response.created` and `response.in_progress`.
  void begin(std::string& events);
  void add_text(std::string_view text, const std::vector<token_logprobs>& logprobs, std::string& events);
  /// A function call: begun, its arguments in pieces, ended. One that is not `complete` is nothing to be answered.
  void begin_call(std::string call_id, std::string_view name, std::string& events);
  void add_arguments(std::string_view piece, std::string& events);
  void end_call(bool complete, std::string& events);
  /// For requests that want ids, before the last words.
  void set_tokens(std::vector<token_id> prompt, std::vector<token_id> output);
  /// The last words: of the open item, then `response.completed` or `response.incomplete`.
  void end(const finish& reason, const call_counts& counts, std::int64_t now, std::string& events);
  /// It was asked to make nothing: completed, without output.
  void end_empty(std::int64_t now, std::string& events);
  /// Its client is gone: `response.incomplete`, with what it has and no usage.
  void end_cancelled(std::int64_t now, std::string& events);
  /// The same for a failure: `response.failed`.
  void fail(const error& reason, std::string& events);

  /// The generation is being ended for a steering input.
  void mark_steered() { steered_ = true; }

  const response_identity& identity() const { return identity_; }
  /// The response as it is now.
  std::string object_json() const;
  std::string_view status() const { return status_; }
  /// Ids and names of function calls that the client must answer.
  struct open_call {
    std::string call_id;
    std::string name;
  };
  const std::vector<open_call>& calls() const { return calls_; }
  /// What the model said, as chat messages joined by commas.
  std::string take_messages() { return messages_.take(); }

 private:
  enum class item { none, message, call };

  json_writer& open_event(std::string_view type);
  json_writer& open_item_event(std::string_view type);
  void close_event(std::string& events);
  void write_object_event(std::string_view type, std::string& events);
  void open_message(std::string& events);
  void close_item(std::string_view item_status, std::string& events);
  void close_message(std::string_view item_status, std::string& events);
  void close_call(std::string_view item_status, std::string& events);
  void write_ids(json_writer& out) const;
  std::string text_part(bool whole) const;
  std::string message_json(std::string_view item_status, bool whole) const;
  std::string call_json(std::string_view item_status, bool whole) const;
  std::string logprobs_json(const std::vector<token_logprobs>& logprobs) const;

  response_identity identity_;
  token_texts texts_;
  std::string_view status_ = "in_progress";
  std::string incomplete_;  // why; empty: it is not
  std::optional<error> error_;
  std::optional<call_counts> counts_;  // when it ended
  std::int64_t completed_ = 0;         // Unix seconds; 0: not yet
  std::vector<std::string> output_;    // finished items
  std::optional<finish> finish_;       // the engine's own word
  std::vector<token_id> prompt_tokens_;
  std::vector<token_id> tokens_;
  bool steered_ = false;
  // The open item:
  item open_ = item::none;
  std::string text_;  // of a message, or a call's arguments
  std::vector<token_logprobs> logprobs_;
  std::vector<open_call> calls_;  // the last is the open one
  message_list messages_;
  json_writer event_;
};

}  // namespace tandem::net
