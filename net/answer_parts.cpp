#include "net/answer_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/finish_names.hpp"
#include "core/speculation/method_names.hpp"

namespace tandem::net {
namespace {

// JSON has no -inf; clients of vLLM and OpenAI know this value for "impossible".
constexpr double kImpossible = -9999.0;

void write_logprob(json_writer& out, float value) {
  out.number(std::isfinite(value) ? static_cast<double>(value) : kImpossible);
}

// Part of a character: written as OpenAI does, so that no two tokens look alike.
std::string token_label(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string label = "bytes:";
  for (const char c : bytes) label += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return label;
}

std::size_t characters(std::string_view bytes) {
  return static_cast<std::size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void write_token_entry(json_writer& out, token_id token, float logprob, const token_texts& texts) {
  const std::string_view bytes = texts.bytes(token);
  out.key("token").string(bytes).key("logprob");
  write_logprob(out, logprob);
  out.key("bytes").begin_array();
  for (const char c : bytes) out.integer(static_cast<unsigned char>(c));
  out.end_array();
}

bool has_logprob(const token_logprobs& token) {
  return token.rank > 0 || !token.top.empty();
}

void write_top_map(json_writer& out, const token_logprobs& token, const token_texts& texts) {
  if (!has_logprob(token)) {
    out.null();
    return;
  }
  out.begin_object();
  bool chosen_listed = false;
  for (const auto& [id, logprob] : token.top) {
    out.key(token_label(texts.bytes(id)));
    write_logprob(out, logprob);
    chosen_listed = chosen_listed || id == token.token;
  }
  if (!chosen_listed) {
    out.key(token_label(texts.bytes(token.token)));
    write_logprob(out, token.logprob);
  }
  out.end_object();
}

void write_logprob_map(json_writer& out, const token_logprobs& token, const token_texts& texts) {
  const auto entry = [&](token_id id, float logprob, std::int32_t rank) {
    out.key(fmt::format("{}", id)).begin_object().key("logprob");
    write_logprob(out, logprob);
    out.key("rank").integer(rank).key("decoded_token").string(texts.bytes(id)).end_object();
  };
  out.begin_object();
  bool chosen_listed = false;
  std::int32_t rank = 0;
  for (const auto& [id, logprob] : token.top) {
    entry(id, logprob, ++rank);
    chosen_listed = chosen_listed || id == token.token;
  }
  if (!chosen_listed) entry(token.token, token.logprob, token.rank);
  out.end_object();
}

}  // namespace

void write_finish(json_writer& out, const std::optional<finish>& end) {
  if (end) return write_finish(out, *end, name_of(end->reason));
  out.key("finish_reason").null().key("stop_reason").null();
}

void write_finish(json_writer& out, const finish& end, std::string_view reason) {
  out.key("finish_reason").string(reason).key("stop_reason");
  if (end.stop_string) {
    out.string(*end.stop_string);
  } else if (end.stop_token) {
    out.integer(*end.stop_token);
  } else {
    out.null();
  }
}

void write_tokens(json_writer& out, std::span<const token_id> tokens) {
  out.begin_array();
  for (const token_id token : tokens) out.integer(token);
  out.end_array();
}

void call_counts::add(const sequence_stats& choice) {
  sum.completion_tokens += choice.completion_tokens + choice.unshown_tokens;
  sum.add_work(choice);
  sum.queue_ms = std::max(sum.queue_ms, choice.queue_ms);
  sum.prefill_ms = std::max(sum.prefill_ms, choice.prefill_ms);
  sum.decode_ms = std::max(sum.decode_ms, choice.decode_ms);
}

void write_usage(json_writer& out, const call_counts& counts) {
  out.begin_object();
  out.key("prompt_tokens").integer(counts.prompt_tokens);
  out.key("completion_tokens").integer(counts.sum.completion_tokens);
  out.key("total_tokens").integer(counts.prompt_tokens + counts.sum.completion_tokens);
  out.key("prompt_tokens_details").begin_object().key("cached_tokens").integer(counts.cached_tokens).end_object();
  out.key("completion_tokens_details").begin_object();
  out.key("accepted_prediction_tokens").integer(counts.sum.accepted_tokens);
  out.key("rejected_prediction_tokens").integer(counts.sum.draft_tokens - counts.sum.accepted_tokens);
  out.end_object().end_object();
}

void write_drafting(json_writer& out, const sequence_stats::drafting& drafting) {
  out.begin_object();
  out.key("runs").integer(drafting.runs);
  out.key("draft_n").integer(drafting.draft_tokens);
  out.key("draft_n_accepted").integer(drafting.accepted_tokens);
  out.key("accepted_at").begin_array();
  for (std::int32_t i = 0; i < drafting.longest(); ++i) out.integer(drafting.accepted_at[static_cast<std::size_t>(i)]);
  out.end_array().end_object();
}

void write_timings(json_writer& out, const call_counts& counts) {
  const sequence_stats& sum = counts.sum;
  out.begin_object();
  out.key("queue_ms").number(sum.queue_ms);
  out.key("prefill_ms").number(sum.prefill_ms);
  out.key("decode_ms").number(sum.decode_ms);
  out.key("draft_n").integer(sum.draft_tokens);
  out.key("draft_n_accepted").integer(sum.accepted_tokens);
  out.key("steps").integer(sum.steps);
  // 0/0 and x/0 are not finite and become null.
  out.key("mean_accepted_length").number(1.0 + static_cast<double>(sum.accepted_tokens) / sum.steps);
  out.key("spec_token_acceptance_rate").number(static_cast<double>(sum.accepted_tokens) / sum.draft_tokens);
  out.key("by_method").begin_object();
  for (std::size_t i = 0; i < kDraftMethodNames.size(); ++i) {
    if (sum.by_method[i].runs > 0) write_drafting(out.key(kDraftMethodNames[i]), sum.by_method[i]);
  }
  out.end_object().end_object();
}

void write_chat_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts) {
  out.begin_array();
  for (const token_logprobs& token : tokens) {
    out.begin_object();
    write_token_entry(out, token.token, token.logprob, texts);
    out.key("top_logprobs").begin_array();
    for (const auto& [id, logprob] : token.top) {
      out.begin_object();
      write_token_entry(out, id, logprob, texts);
      out.end_object();
    }
    out.end_array().end_object();
  }
  out.end_array();
}

void write_completion_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts,
                               std::size_t& offset) {
  out.begin_object().key("tokens").begin_array();
  for (const token_logprobs& token : tokens) out.string(token_label(texts.bytes(token.token)));
  out.end_array().key("token_logprobs").begin_array();
  for (const token_logprobs& token : tokens) {
    if (has_logprob(token)) {
      write_logprob(out, token.logprob);
    } else {
      out.null();
    }
  }
  out.end_array().key("top_logprobs").begin_array();
  for (const token_logprobs& token : tokens) write_top_map(out, token, texts);
  out.end_array().key("text_offset").begin_array();
  for (const token_logprobs& token : tokens) {
    out.integer(static_cast<std::int64_t>(offset));
    offset += characters(texts.bytes(token.token));
  }
  out.end_array().end_object();
}

void write_logprob_maps(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts) {
  out.begin_array();
  for (const token_logprobs& token : tokens) write_logprob_map(out, token, texts);
  out.end_array();
}

void write_prompt_logprobs(json_writer& out, const std::vector<token_logprobs>& tokens, const token_texts& texts,
                           bool from_start) {
  out.begin_array();
  if (from_start) out.null();
  for (const token_logprobs& token : tokens) write_logprob_map(out, token, texts);
  out.end_array();
}

}  // namespace tandem::net
