#pragma once
/// A grammar of token ids without a library: what may follow is a function of what was accepted.

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/grammar.hpp"

namespace tandem::testing {

/// Whether `next` may follow the accepted tokens.
using token_rule = std::function<bool(const std::vector<token_id>& before, token_id next)>;

class toy_grammar final : public grammar {
 public:
  /// `end`: the token that ends an output; kNoToken: none does.
  toy_grammar(std::int32_t vocabulary, token_rule rule, token_id end = kNoToken)
      : vocabulary_(vocabulary), end_(end), rule_(std::move(rule)) {}

  bool allows(const std::vector<token_id>& before, token_id next) const {
    return next >= 0 && next < vocabulary_ && rule_(before, next);
  }
  std::unique_ptr<grammar_matcher> start() const override { return std::make_unique<matcher>(*this); }
  std::size_t bytes() const override { return sizeof(*this); }

 private:
  class matcher final : public grammar_matcher {
   public:
    explicit matcher(const toy_grammar& rules) : rules_(rules) {}
    bool accept(token_id token) override {
      if (has_ended() || !rules_.allows(accepted_, token)) return false;
      accepted_.push_back(token);
      return true;
    }
    void rewind(std::int32_t count) override {
      TANDEM_ASSERT(count >= 0 && static_cast<std::size_t>(count) <= accepted_.size());
      accepted_.resize(accepted_.size() - static_cast<std::size_t>(count));
    }
    void fill_mask(std::span<std::uint32_t> bits) override {
      TANDEM_ASSERT(!has_ended());
      for (std::uint32_t& word : bits) word = 0;
      for (token_id id = 0; id < rules_.vocabulary_; ++id)
        if (rules_.allows(accepted_, id)) bits[static_cast<std::size_t>(id) / 32] |= 1U << (id % 32);
    }
    bool is_complete() const override { return has_ended() || rules_.allows(accepted_, rules_.end_); }
    bool has_ended() const override {
      return rules_.end_ != kNoToken && !accepted_.empty() && accepted_.back() == rules_.end_;
    }

   private:
    const toy_grammar& rules_;
    std::vector<token_id> accepted_;
  };

  std::int32_t vocabulary_;
  token_id end_;
  token_rule rule_;
};

}  // namespace tandem::testing
