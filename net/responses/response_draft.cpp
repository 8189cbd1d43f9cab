#include "net/responses/response_draft.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/assert.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

void write_response_usage(json_writer& out, const call_counts& counts) {
  out.begin_object().key("input_tokens").integer(counts.prompt_tokens);
  out.key("input_tokens_details").begin_object().key("cached_tokens").integer(counts.cached_tokens);
  out.key("cache_write_tokens").integer(0).end_object();
  out.key("output_tokens").integer(counts.sum.completion_tokens);
  out.key("output_tokens_details").begin_object().key("reasoning_tokens").integer(0);
  out.key("accepted_prediction_tokens").integer(counts.sum.accepted_tokens);
  out.key("rejected_prediction_tokens").integer(counts.sum.draft_tokens - counts.sum.accepted_tokens);
  out.end_object().key("total_tokens").integer(counts.prompt_tokens + counts.sum.completion_tokens).end_object();
}

std::string_view failure_code(const error& reason) {
  return reason.code == error_code::invalid_argument ? "invalid_prompt" : "server_error";
}

}  // namespace

response_draft::response_draft(response_identity identity, token_texts texts)
    : identity_(std::move(identity)), texts_(std::move(texts)) {}

// --- events ----------------------------------------------------------------------------------------------------

json_writer& response_draft::open_event(std::string_view type) {
  return event_.begin_object().key("type").string(type);
}

json_writer& response_draft::open_item_event(std::string_view type) {
  const std::string_view prefix = open_ == item::call ? "fc" : "msg";
  open_event(type).key("item_id").string(fmt::format("{}_{}_{}", prefix, identity_.id, output_.size()));
  return event_.key("output_index").integer(static_cast<std::int64_t>(output_.size()));
}

void response_draft::close_event(std::string& events) {
  event_.end_object();
  events += event_.take();
  events += '\n';
}

void response_draft::write_object_event(std::string_view type, std::string& events) {
  open_event(type).key("response").raw(object_json());
  close_event(events);
}

void response_draft::begin(std::string& events) {
  write_object_event("response.created", events);
  write_object_event("response.in_progress", events);
}

void response_draft::open_message(std::string& events) {
  open_ = item::message;
  open_event("response.output_item.added").key("output_index").integer(static_cast<std::int64_t>(output_.size()));
  event_.key("item").raw(message_json("in_progress", false));
  close_event(events);
  open_item_event("response.content_part.added").key("content_index").integer(0).key("part").raw(text_part(false));
  close_event(events);
}

void response_draft::add_text(std::string_view text, const std::vector<token_logprobs>& logprobs, std::string& events) {
  if (text.empty() && (logprobs.empty() || !identity_.include_logprobs)) return;
  if (open_ == item::call) close_item("incomplete", events);
  if (open_ == item::none) open_message(events);
  text_ += text;
  if (identity_.include_logprobs) logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
  open_item_event("response.output_text.delta").key("content_index").integer(0).key("delta").string(text);
  event_.key("logprobs").raw(logprobs_json(logprobs));
  close_event(events);
}

void response_draft::begin_call(std::string call_id, std::string_view name, std::string& events) {
  close_item(open_ == item::call ? "incomplete" : "completed", events);
  open_ = item::call;
  calls_.push_back({std::move(call_id), std::string(name)});
  open_event("response.output_item.added").key("output_index").integer(static_cast<std::int64_t>(output_.size()));
  event_.key("item").raw(call_json("in_progress", false));
  close_event(events);
}

void response_draft::add_arguments(std::string_view piece, std::string& events) {
  if (open_ != item::call || piece.empty()) return;
  text_ += piece;
  open_item_event("response.function_call_arguments.delta").key("delta").string(piece);
  close_event(events);
}

void response_draft::end_call(bool complete, std::string& events) {
  if (open_ == item::call) close_item(complete ? "completed" : "incomplete", events);
}

void response_draft::close_item(std::string_view item_status, std::string& events) {
  if (open_ == item::message) close_message(item_status, events);
  if (open_ == item::call) close_call(item_status, events);
  open_ = item::none;
  text_.clear();
  logprobs_.clear();
}

void response_draft::close_message(std::string_view item_status, std::string& events) {
  open_item_event("response.output_text.done").key("content_index").integer(0).key("text").string(text_);
  event_.key("logprobs").raw(logprobs_json(logprobs_));
  close_event(events);
  open_item_event("response.content_part.done").key("content_index").integer(0).key("part").raw(text_part(true));
  close_event(events);
  std::string whole = message_json(item_status, true);
  open_event("response.output_item.done").key("output_index").integer(static_cast<std::int64_t>(output_.size()));
  event_.key("item").raw(whole);
  close_event(events);
  messages_.add("assistant", text_);
  output_.push_back(std::move(whole));
}

void response_draft::close_call(std::string_view item_status, std::string& events) {
  open_item_event("response.function_call_arguments.done").key("name").string(calls_.back().name);
  event_.key("arguments").string(text_);
  close_event(events);
  std::string whole = call_json(item_status, true);
  open_event("response.output_item.done").key("output_index").integer(static_cast<std::int64_t>(output_.size()));
  event_.key("item").raw(whole);
  close_event(events);
  output_.push_back(std::move(whole));
  if (item_status == "completed") {
    messages_.add_call(calls_.back().call_id, calls_.back().name, text_);
  } else {
    calls_.pop_back();
  }
}

void response_draft::set_tokens(std::vector<token_id> prompt, std::vector<token_id> output) {
  prompt_tokens_ = std::move(prompt);
  tokens_ = std::move(output);
}

void response_draft::end(const finish& reason, const call_counts& counts, std::int64_t now, std::string& events) {
  const bool whole = reason.reason == finish_reason::stop;
  if (output_.empty() && open_ == item::none) open_message(events);  // an answer without text is one, too
  close_item(whole && open_ == item::message ? "completed" : "incomplete", events);
  counts_ = counts;
  finish_ = reason;
  completed_ = now;
  status_ = whole ? "completed" : "incomplete";
  if (reason.reason == finish_reason::length) incomplete_ = "max_output_tokens";
  if (reason.reason == finish_reason::timeout) incomplete_ = "timeout";
  if (reason.reason == finish_reason::cancelled) {
    if (steered_) incomplete_ = "steered";
    if (!steered_) status_ = "cancelled";
  }
  write_object_event(whole ? "response.completed" : "response.incomplete", events);
}

void response_draft::end_empty(std::int64_t now, std::string& events) {
  counts_.emplace();
  completed_ = now;
  status_ = "completed";
  write_object_event("response.completed", events);
}

void response_draft::end_cancelled(std::int64_t now, std::string& events) {
  if (open_ != item::none) close_item("incomplete", events);
  completed_ = now;
  status_ = "cancelled";
  write_object_event("response.incomplete", events);
}

void response_draft::fail(const error& reason, std::string& events) {
  if (open_ != item::none) close_item("incomplete", events);
  status_ = "failed";
  error_ = reason;
  write_object_event("response.failed", events);
}

// --- objects ---------------------------------------------------------------------------------------------------

std::string response_draft::logprobs_json(const std::vector<token_logprobs>& logprobs) const {
  if (!identity_.include_logprobs) return "[]";
  json_writer out;
  write_chat_logprobs(out, logprobs, texts_);
  return out.take();
}

std::string response_draft::text_part(bool whole) const {
  json_writer out;
  out.begin_object().key("type").string("output_text").key("text").string(whole ? text_ : std::string());
  out.key("annotations").begin_array().end_array();
  out.key("logprobs").raw(whole ? logprobs_json(logprobs_) : "[]").end_object();
  return out.take();
}

std::string response_draft::message_json(std::string_view item_status, bool whole) const {
  json_writer out;
  out.begin_object().key("id").string(fmt::format("msg_{}_{}", identity_.id, output_.size()));
  out.key("type").string("message").key("role").string("assistant").key("status").string(item_status);
  out.key("content").begin_array();
  if (whole) out.raw(text_part(true));
  out.end_array().end_object();
  return out.take();
}

std::string response_draft::call_json(std::string_view item_status, bool whole) const {
  json_writer out;
  out.begin_object().key("id").string(fmt::format("fc_{}_{}", identity_.id, output_.size()));
  out.key("type").string("function_call").key("status").string(item_status);
  out.key("call_id").string(calls_.back().call_id).key("name").string(calls_.back().name);
  out.key("arguments").string(whole ? text_ : std::string()).end_object();
  return out.take();
}

void response_draft::write_ids(json_writer& out) const {
  write_tokens(out.key("prompt_token_ids"), prompt_tokens_);
  write_tokens(out.key("token_ids"), tokens_);
  write_finish(out, finish_);
}

std::string response_draft::object_json() const {
  json_writer out;
  out.begin_object().key("id").string(identity_.id).key("object").string("response");
  out.key("created_at").integer(identity_.created).key("status").string(status_).key("error");
  if (error_) {
    out.begin_object().key("code").string(failure_code(*error_)).key("message").string(error_->message).end_object();
  } else {
    out.null();
  }
  out.key("incomplete_details");
  if (incomplete_.empty()) {
    out.null();
  } else {
    out.begin_object().key("reason").string(incomplete_).end_object();
  }
  if (completed_ > 0) out.key("completed_at").integer(completed_);
  out.key("previous_response_id");
  identity_.previous_id.empty() ? out.null() : out.string(identity_.previous_id);
  out.key("output").begin_array();
  for (const std::string& one : output_) out.raw(one);
  out.end_array().key("usage");
  if (counts_) {
    write_response_usage(out, *counts_);
  } else {
    out.null();
  }
  if (counts_ && identity_.include_timings) write_timings(out.key("timings"), *counts_);
  if (finish_ && identity_.include_token_ids) write_ids(out);
  out.end_object();
  std::string object = out.take();
  object.pop_back();
  return object + "," + identity_.settings_json + "}";
}

}  // namespace tandem::net
