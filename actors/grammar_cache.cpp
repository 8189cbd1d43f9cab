#include "actors/grammar_cache.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tandem {
namespace {

std::size_t bytes_of(const structured_spec& spec, const compiled_grammar& outcome) {
  std::size_t bytes = sizeof(structured_spec) + spec.text.size();
  for (const std::string& choice : spec.choices) bytes += sizeof(choice) + choice.size();
  return bytes + (outcome ? (*outcome)->bytes() : outcome.error().message.size());
}

}  // namespace

std::optional<compiled_grammar> grammar_cache::find(const structured_spec& spec) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const entry& each) { return each.spec.same_as(spec); });
  if (found == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found);
  compiled_grammar outcome = found->outcome;
  if (!outcome) outcome.error().param = spec.field;
  return outcome;
}

void grammar_cache::keep(const structured_spec& spec, compiled_grammar outcome) {
  if (find(spec)) drop(entries_.begin());
  const std::size_t bytes = bytes_of(spec, outcome);
  if (bytes > max_bytes_) return;
  entries_.push_front({spec, std::move(outcome), bytes});
  bytes_ += bytes;
  while (entries_.size() > limits::kMaxCachedGrammars || bytes_ > max_bytes_) drop(std::prev(entries_.end()));
}

void grammar_cache::drop(std::list<entry>::iterator which) {
  bytes_ -= which->bytes;
  entries_.erase(which);
}

}  // namespace tandem
