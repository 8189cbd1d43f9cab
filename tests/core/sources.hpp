#pragma once
/// Which draft sources a test has.

#include <initializer_list>

#include "core/speculation/policy.hpp"

namespace tandem {

inline per_method<bool> only(std::initializer_list<draft_method> methods) {
  per_method<bool> sources{};
  sources[index_of(draft_method::none)] = true;
  for (const draft_method method : methods) sources[index_of(method)] = true;
  return sources;
}

inline const per_method<bool> kNgramAndModel = only({draft_method::ngram, draft_method::draft_model});

}  // namespace tandem
