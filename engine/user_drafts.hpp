#pragma once
/// A program's DraftSource in the engine's own words.

#include <memory>
#include <utility>
#include <vector>

#include "actors/custom_source.hpp"
#include "tandem/draft_source.hpp"

namespace tandem::engine {

class user_drafts final : public custom_drafts {
 public:
  explicit user_drafts(std::shared_ptr<DraftSource> source) : source_(std::move(source)) {}

  std::vector<token_id> propose(const custom_question& question) override {
    return source_->propose({question.sequence, question.tokens, question.prompt_length, question.k});
  }

  /// Null for null.
  static std::shared_ptr<custom_drafts> of(std::shared_ptr<DraftSource> source) {
    return source ? std::make_shared<user_drafts>(std::move(source)) : nullptr;
  }

 private:
  std::shared_ptr<DraftSource> source_;
};

}  // namespace tandem::engine
