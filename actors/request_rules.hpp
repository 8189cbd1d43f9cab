#pragma once
/// Which requests the engine takes, and what their open parameters become. Pure functions; used by intake.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/request.hpp"
#include "core/result.hpp"

namespace tandem {

/// What bounds a request; fixed when the engine starts.
struct request_bounds {
  std::int32_t max_model_len = 0;
  std::int32_t vocabulary_size = 0;
  std::int64_t kv_tokens = 0;  ///< positions all KV blocks together hold
  std::int32_t block_size = 1;
  std::int32_t max_num_seqs = 1;
  std::int32_t max_num_batched_tokens = 0;
  bool chunked_prefill = true;
  std::int32_t max_draft_tokens = 0;
  std::array<bool, kDraftMethods> methods{};  ///< draft sources that exist
  std::vector<token_id> end_tokens;           ///< sorted
  bool structured_output = false;             ///< grammars can be compiled
};

/// A request's parameters with nothing left open.
struct resolved_request {
  std::shared_ptr<sampling_params> sampling;  ///< without `structure`, which may still be compiled
  std::int32_t max_tokens = 0;
  std::uint64_t seed = 0;
};

/// Everything that can be judged before the prompt is encoded. Error: invalid_argument naming the field.
result<void> check_request(const generation_request& request, const request_bounds& bounds);

/// Everything that needs ids: of the prompt and of the bad words. `drawn_seed` is used when the request has none.
/// Error: invalid_argument naming the field and the numbers that do not fit.
result<resolved_request> resolve_request(const generation_request& request, std::span<const token_id> prompt,
                                         const request_bounds& bounds, std::uint64_t drawn_seed,
                                         std::vector<std::vector<token_id>> bad_words = {});

}  // namespace tandem
