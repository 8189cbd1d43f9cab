#include "actors/event_composer.hpp"

#include <string>
#include <utility>

#include "core/assert.hpp"

namespace tandem {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void event_composer::take_tokens(const tokens_committed::entry& entry) {
  TANDEM_ASSERT(entry.id == id_);
  TANDEM_ASSERT(!ended_);
  TANDEM_ASSERT(entry.tokens.empty() || entry.first_index == tokens_);
  TANDEM_ASSERT(entry.accepted.empty() || entry.accepted.size() == entry.tokens.size());
  tokens_ += static_cast<std::int32_t>(entry.tokens.size());
  append(pending_.tokens, entry.tokens);
  append(pending_.accepted, entry.accepted);
  append(pending_.logprobs, entry.logprobs);
  append(pending_.prompt_logprobs, entry.prompt_logprobs);
}

void event_composer::take_text(const tokens_committed::entry& entry, const text::tokenizer& tokenizer) {
  std::string bytes;
  for (token_id token : entry.tokens) bytes += tokenizer.token_bytes(token, skip_special_);
  if (!entry.end) {
    pending_.text += assembler_.push(bytes, entry.held_bytes);
    return;
  }
  // The cut may lie inside these very bytes: hold all of them back, then keep what the decider said.
  const std::size_t everything = assembler_.pushed() + bytes.size();
  pending_.text += assembler_.push(bytes, everything);
  pending_.text += assembler_.finish(entry.end->text_bytes);
}

bool event_composer::due() const {
  if (pending_.end || !pending_.prompt_logprobs.empty()) return true;
  if (pending_.tokens.empty()) return false;
  return !started_ || static_cast<std::int32_t>(pending_.tokens.size()) >= interval_;
}

std::optional<generation_event> event_composer::add(const tokens_committed::entry& entry,
                                                    const text::tokenizer& tokenizer) {
  take_tokens(entry);
  take_text(entry, tokenizer);
  pending_.end = entry.end;
  ended_ = entry.end.has_value();
  if (!due()) return std::nullopt;
  started_ = started_ || !pending_.tokens.empty();
  pending_.id = id_.request;
  pending_.choice = id_.choice;
  pending_.stats = entry.stats;
  return std::exchange(pending_, generation_event{});
}

}  // namespace tandem
