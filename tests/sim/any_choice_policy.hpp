#pragma once
/// Any choice a policy may make, by chance: whatever it is, the tokens are the same.

#include <random>
#include <vector>

#include "core/speculation/policy.hpp"
#include "core/speculation/source_kind.hpp"

namespace tandem::sim {

class any_choice_policy final : public speculation_policy {
 public:
  any_choice_policy(std::int32_t most, std::uint64_t seed) : most_(most), random_(seed) {}

  std::vector<draft_choice> choose(const step_question& question) override {
    std::vector<draft_choice> choices(question.sequences.size());
    for (draft_choice& choice : choices) {
      choice = {any_of({draft_method::none, draft_method::ngram, draft_method::suffix, draft_method::draft_model,
                        draft_method::eagle}),
                any_number()};
      for (std::int8_t& most : choice.most) most = static_cast<std::int8_t>(any_number());
      const draft_method behind = any_of({draft_method::none, draft_method::draft_model, draft_method::eagle});
      if (behind == draft_method::none || behind == choice.method) continue;
      choice.fallback = behind;
      choice.fallback_k = any_number();
    }
    return choices;
  }

 private:
  std::int32_t any_number() { return std::uniform_int_distribution<std::int32_t>(0, most_)(random_); }
  draft_method any_of(std::vector<draft_method> methods) { return methods[random_() % methods.size()]; }

  std::int32_t most_;
  std::mt19937_64 random_;
};

}  // namespace tandem::sim
