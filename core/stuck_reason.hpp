#pragma once
/// Why no further token of a constrained output can be drawn.

#include <cstdint>

namespace tandem {

enum class stuck_reason : std::uint8_t {
  nothing_fits,  ///< what was asked for leaves no token: grammar, bad words and allowed ids together
  too_slow,      ///< to find one takes longer than everybody else in the step can wait
  broken,        ///< the matcher failed or contradicts itself: nothing the client did
};

}  // namespace tandem
