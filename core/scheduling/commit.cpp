#include "core/scheduling/commit.hpp"

#include <algorithm>
#include <string>

#include "core/assert.hpp"

namespace tandem {
namespace {

bool contains(const std::vector<token_id>& sorted, token_id token) {
  return std::binary_search(sorted.begin(), sorted.end(), token);
}

std::string_view visible_text(const sequence& seq, const scheduler_options& options, token_id token) {
  if (!options.token_bytes) return {};
  return options.token_bytes(token, seq.request->stopping.skip_special_tokens);
}

/// The stop string that this token's text completes, if it may end the sequence. Else the text is taken in all the
/// same.
std::optional<finish> stop_string_end(sequence& seq, std::string_view text, bool may_end) {
  if (!seq.stops) return std::nullopt;
  while (!text.empty()) {
    const std::size_t before = seq.stop_cursor.bytes;
    const auto match = seq.stops->push(seq.stop_cursor, text);
    if (!match) return std::nullopt;
    if (may_end) {
      finish end;
      end.stop_string = seq.request->stopping.stop[match->stop_index];
      end.text_bytes = seq.request->stopping.include_stop_str_in_output ? match->end : match->end - match->length;
      return end;
    }
    text.remove_prefix(seq.stop_cursor.bytes - before);
  }
  return std::nullopt;
}

std::optional<finish> stop_token_end(const sequence& seq, const scheduler_options& options, token_id token,
                                     std::size_t bytes_before) {
  const stop_params& stopping = seq.request->stopping;
  finish end;
  if (!stopping.ignore_eos && contains(options.end_tokens, token)) {
    end.text_bytes = bytes_before;
    return end;
  }
  if (std::find(stopping.stop_token_ids.begin(), stopping.stop_token_ids.end(), token) ==
      stopping.stop_token_ids.end()) {
    return std::nullopt;
  }
  end.stop_token = token;
  end.text_bytes = stopping.include_stop_str_in_output ? seq.visible_bytes : bytes_before;
  return end;
}

/// `token` has just been appended to seq.known.
std::optional<finish> end_after(sequence& seq, const scheduler_options& options, token_id token) {
  const std::size_t bytes_before = seq.visible_bytes;
  const std::string_view text = visible_text(seq, options, token);
  seq.visible_bytes += text.size();
  if (auto end = stop_token_end(seq, options, token, bytes_before)) return end;
  const bool may_end = seq.output_length() >= seq.sampling->min_tokens;
  if (auto end = stop_string_end(seq, text, may_end)) return end;
  if (seq.output_length() >= seq.max_tokens || seq.length() >= options.max_model_len) {
    finish end;
    end.reason = finish_reason::length;
    end.text_bytes = seq.visible_bytes;
    return end;
  }
  return std::nullopt;
}

std::string stuck_message(const std::string& what, std::int32_t tokens, stuck_reason why) {
  const std::string where = " cannot be followed any further after " + std::to_string(tokens) + " tokens";
  switch (why) {
    case stuck_reason::nothing_fits:
      return what + where + ": none of the model's tokens fits. Check logit_bias, allowed_token_ids and bad_words.";
    case stuck_reason::too_slow:
      return what + where + ": finding a token that fits takes too long. Make it simpler.";
    case stuck_reason::broken:
      break;
  }
  return what + where + " because of a fault of this server; send the request again.";
}

/// Only what the client asked for is the client's mistake.
finish stuck_end(const sequence& seq, stuck_reason why) {
  const auto& spec = seq.request->structured;
  finish end;
  end.reason = finish_reason::error;
  end.code = why == stuck_reason::broken ? error_code::device_failed : error_code::invalid_argument;
  end.text_bytes = seq.visible_bytes;
  const std::string what =
      !spec ? std::string("'bad_words'") : spec->field.empty() ? std::string("The grammar") : "'" + spec->field + "'";
  end.message = stuck_message(what, seq.output_length(), why);
  return end;
}

/// Appends tokens until one ends the sequence; returns how many were taken.
std::int32_t append_tokens(sequence& seq, const slot_outcome& outcome, const scheduler_options& options,
                           tokens_committed::entry& entry) {
  std::int32_t taken = 0;
  for (const token_id token : outcome.tokens) {
    TANDEM_ASSERT(token >= 0 && (options.vocabulary_size == 0 || token < options.vocabulary_size));
    seq.known.push_back(token);
    entry.tokens.push_back(token);
    entry.accepted.push_back(taken < outcome.accepted ? 1 : 0);
    if (static_cast<std::size_t>(taken) < outcome.logprobs.size()) {
      entry.logprobs.push_back(outcome.logprobs[static_cast<std::size_t>(taken)]);
    }
    ++taken;
    entry.end = end_after(seq, options, token);
    if (entry.end) break;
  }
  return taken;
}

/// A life before a preemption may have told the first ones; they are not told again. Before `seq.computed` moves.
void take_prompt_logprobs(sequence& seq, const slot_outcome& outcome, tokens_committed::entry& entry) {
  const auto given = static_cast<std::int32_t>(outcome.prompt_logprobs.size());
  if (given == 0) return;
  const std::int32_t told = seq.prompt_scored - seq.computed;
  TANDEM_ASSERT(told >= 0);
  entry.prompt_logprobs.assign(outcome.prompt_logprobs.begin() + std::min(told, given), outcome.prompt_logprobs.end());
  seq.prompt_scored = std::max(seq.prompt_scored, seq.computed + given);
}

}  // namespace

tokens_committed::entry commit_outcome(sequence& seq, const slot_outcome& outcome, const scheduler_options& options) {
  TANDEM_ASSERT(outcome.rows_done >= 0 && outcome.rows_done <= seq.pending());
  TANDEM_ASSERT(outcome.tokens.empty() || outcome.rows_done == seq.pending());
  const auto given = static_cast<std::int32_t>(outcome.tokens.size());
  TANDEM_ASSERT(outcome.stuck ? outcome.accepted == given : given == 0 || outcome.accepted + 1 == given);
  tokens_committed::entry entry;
  entry.id = seq.id;
  entry.first_index = seq.output_length();
  take_prompt_logprobs(seq, outcome, entry);
  seq.computed += outcome.rows_done;
  if (given == 0) {
    seq.stats.draft_tokens += outcome.drafted;
    if (outcome.stuck) entry.end = stuck_end(seq, *outcome.stuck);
    if (seq.max_tokens == 0 && seq.pending() == 0) entry.end = finish{.reason = finish_reason::length, .text_bytes = 0};
    return entry;
  }
  const std::int32_t taken = append_tokens(seq, outcome, options, entry);
  const std::int32_t accepted = std::min(taken, outcome.accepted);
  seq.computed += accepted;
  ++seq.stats.steps;
  seq.stats.draft_tokens += outcome.drafted;
  seq.stats.accepted_tokens += accepted;
  seq.stats.completion_tokens = seq.output_length();
  if (!entry.end && outcome.stuck) entry.end = stuck_end(seq, *outcome.stuck);
  if (!entry.end && seq.stops) entry.held_bytes = seq.stops->held(seq.stop_cursor);
  return entry;
}

tokens_committed::entry end_entry(const sequence& seq, finish end) {
  tokens_committed::entry entry;
  entry.id = seq.id;
  entry.first_index = seq.output_length();
  end.text_bytes = seq.visible_bytes;
  entry.end = std::move(end);
  return entry;
}

tokens_committed::entry beam_entry(const sequence& lane, const beam_hypothesis& hypothesis,
                                   const std::optional<finish>& wanted, const scheduler_options& options) {
  tokens_committed::entry entry;
  entry.id = lane.id;
  entry.tokens = hypothesis.tokens;
  entry.accepted.assign(hypothesis.tokens.size(), 0);
  entry.logprobs = hypothesis.logprobs;
  finish end{.reason = hypothesis.complete ? finish_reason::stop : finish_reason::length};
  // A complete beam is what it would have been without the cancel or the deadline; a lost step leaves none whole.
  const bool cut_short = wanted && (!hypothesis.complete || wanted->reason == finish_reason::error);
  if (cut_short) end = *wanted;
  const std::size_t shown = hypothesis.tokens.size() - (hypothesis.complete ? 1 : 0);  // an end token has no text
  end.text_bytes = 0;
  for (std::size_t i = 0; i < shown; ++i) end.text_bytes += visible_text(lane, options, hypothesis.tokens[i]).size();
  entry.end = std::move(end);
  return entry;
}

void replay_output(sequence& seq, const scheduler_options& options) {
  for (std::int32_t i = seq.prompt_length(); i < seq.length(); ++i) {
    const std::string_view text = visible_text(seq, options, seq.known[static_cast<std::size_t>(i)]);
    seq.visible_bytes += text.size();
    stop_string_end(seq, text, false);  // none of them ended it
  }
}

}  // namespace tandem
