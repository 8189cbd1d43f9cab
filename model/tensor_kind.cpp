#include <array>

#include "core/assert.hpp"
#include "model/model.hpp"

namespace tandem::model {

const kind_traits& traits(tensor_kind kind) {
  // Block sizes: the GGUF specification and ggml's block structures. Order of the enumeration.
  static constexpr std::array<kind_traits, 11> kTraits{{
      {"F32", 1, 4},
      {"F16", 1, 2},
      {"BF16", 1, 2},
      {"Q4_0", 32, 18},
      {"Q4_1", 32, 20},
      {"Q5_0", 32, 22},
      {"Q5_1", 32, 24},
      {"Q8_0", 32, 34},
      {"Q4_K", 256, 144},
      {"Q5_K", 256, 176},
      {"Q6_K", 256, 210},
  }};
  const auto index = static_cast<std::size_t>(kind);
  TANDEM_ASSERT(index < kTraits.size());
  return kTraits[index];
}

}  // namespace tandem::model
