#include "core/speculation/policy.hpp"

#include <algorithm>

#include "config/limits.hpp"

namespace tandem {
namespace {

bool is_available(const draft_question& question, draft_method method) {
  return method == draft_method::none || question.available[static_cast<std::size_t>(method)];
}

// The request's wish, else what the server is configured for; nothing while that source cannot serve. Never another
// source than the wished one: a request that names a method learns what that method does.
draft_method method_for(const draft_question& question, draft_method configured) {
  const draft_method wished = question.wanted != nullptr ? question.wanted->method.value_or(configured) : configured;
  return is_available(question, wished) ? wished : draft_method::none;
}

}  // namespace

draft_choice fixed_policy::choose(const draft_question& question) const {
  if (options_.disable_by_batch_size && question.sequences > *options_.disable_by_batch_size) return {};
  const draft_method method = method_for(question, options_.method);
  const std::int32_t wanted = question.wanted != nullptr ? question.wanted->k.value_or(options_.k) : options_.k;
  const std::int32_t k = std::clamp(wanted, 0, limits::kMaxDraftTokens);
  if (method == draft_method::none || k == 0) return {};
  return {method, k};
}

}  // namespace tandem
