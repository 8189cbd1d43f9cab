#pragma once
/// What the reasons to end are called wherever people read them: answers, library, metrics.

#include <array>

#include "core/request.hpp"

namespace tandem {

inline constexpr std::array<const char*, 5> kFinishReasonNames{"stop", "length", "timeout", "cancelled", "error"};

inline const char* name_of(finish_reason reason) {
  return kFinishReasonNames[static_cast<std::size_t>(reason)];
}
static_assert(static_cast<std::size_t>(finish_reason::error) + 1 == kFinishReasonNames.size());

}  // namespace tandem
