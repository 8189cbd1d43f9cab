#pragma once
/// Pieces that several answers share. Pure: events and counts → JSON text.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.hpp"
#include "net/json_text.hpp"

namespace tandem::net {

/// What an answer needs to know about tokens.
struct token_texts {
  std::function<std::string_view(token_id)> bytes;               ///< raw, special tokens by name
  std::function<std::string(std::span<const token_id>)> decode;  ///< valid UTF-8
  std::function<std::string_view(token_id)> visible{};           ///< raw, special tokens have no bytes
};

/// `finish_reason` and `stop_reason`; null while the choice goes on.
void write_finish(json_writer& out, const std::optional<finish>& end);
/// The same of an end that the answer calls otherwise.
void write_finish(json_writer& out, const finish& end, std::string_view reason);
void write_tokens(json_writer& out, std::span<const token_id> tokens);

/// Counts over every choice of a call. A prompt counts once, however many choices it has.
struct call_counts {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  sequence_stats sum;  ///< of the choices; times are the longest ones
  void add(const sequence_stats& choice);
};
void write_usage(json_writer& out, const call_counts& counts);
void write_timings(json_writer& out, const call_counts& counts);

/// OpenAI's chat style: an array of {token, logprob, bytes, top_logprobs}.
void write_chat_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts);
/// OpenAI's completions style: parallel arrays. `offset` is the character offset of the first token in the choice's
/// text and is moved on. A token without a log-probability (the prompt's first) has rank 0 and an empty top.
void write_completion_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts,
                               std::size_t& offset);
/// vLLM's style: a list of {"id": {logprob, rank, decoded_token}}.
void write_logprob_maps(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts);
/// The same of a prompt, or of a part of it. `from_start`: null first, for the prompt's first token.
void write_prompt_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts,
                           bool from_start = true);

}  // namespace tandem::net
