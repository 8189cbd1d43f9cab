#pragma once
/// grammar and grammar_matcher through XGrammar.

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/grammar.hpp"

namespace tandem {

class xgrammar_grammar final : public grammar {
 public:
  explicit xgrammar_grammar(xgrammar::CompiledGrammar compiled) : compiled_(std::move(compiled)) {}
  std::unique_ptr<grammar_matcher> start() const override;
  std::size_t bytes() const override;

 private:
  xgrammar::CompiledGrammar compiled_;
};

/// Lost, it allows nothing: XGrammar failed or took longer than limits::kMaxMatcherTime, and others wait for the step.
class xgrammar_matcher final : public grammar_matcher {
 public:
  explicit xgrammar_matcher(const xgrammar::CompiledGrammar& compiled);
  bool accept(token_id token) override;
  void rewind(std::int32_t count) override;
  void fill_mask(std::span<std::uint32_t> bits) override;
  bool is_complete() const override;
  bool has_ended() const override;
  std::optional<stuck_reason> lost() const override { return lost_; }

 private:
  /// Calls `work`; what it throws, and too long a time, make the matcher lost.
  template <class Work>
  void guarded(const Work& work);
  void lose(stuck_reason why);

  std::optional<xgrammar::GrammarMatcher> matcher_;  // empty: lost
  std::optional<stuck_reason> lost_;
};

}  // namespace tandem
