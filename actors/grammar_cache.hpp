#pragma once
/// Grammars that were compiled, and specs that were refused, most recently used first. Not thread-safe.

#include <cstddef>
#include <list>
#include <memory>
#include <optional>

#include "config/structured_limits.hpp"
#include "core/grammar.hpp"

namespace tandem {

using compiled_grammar = result<std::shared_ptr<const grammar>>;

class grammar_cache {
 public:
  explicit grammar_cache(std::size_t max_bytes = limits::kMaxCachedGrammarBytes) : max_bytes_(max_bytes) {}

  /// What the spec became, if that is known; a refusal names spec.field.
  std::optional<compiled_grammar> find(const structured_spec& spec);
  /// Instead of what was known of the spec. Pushes out the least recently used beyond limits::kMaxCachedGrammars and
  /// max_bytes; what is larger alone is not kept.
  void keep(const structured_spec& spec, compiled_grammar outcome);
  std::size_t size() const { return entries_.size(); }

 private:
  struct entry {
    structured_spec spec;
    compiled_grammar outcome;
    std::size_t bytes = 0;
  };
  void drop(std::list<entry>::iterator which);

  std::size_t max_bytes_;
  std::list<entry> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace tandem
