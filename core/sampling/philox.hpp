#pragma once
/// Philox4x32-10 in a form that compilers can inline into vector loops (Salmon, Moraes, Dror, Shaw: "Parallel random
/// numbers: as easy as 1, 2, 3", SC'11). Internal to core/sampling.

#include <cstdint>

namespace tandem::philox {

inline constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
inline constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
inline constexpr int kRounds = 10;

/// Ten rounds on the four counter words in place.
[[gnu::always_inline]] inline void scramble(std::uint32_t& c0, std::uint32_t& c1, std::uint32_t& c2, std::uint32_t& c3,
                                            std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * c0;
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c1 = static_cast<std::uint32_t>(product1);
    c3 = static_cast<std::uint32_t>(product0);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

/// Ids per group, Philox calls per group, and ids per call: the layout that core/sampling/noise.hpp documents.
inline constexpr std::int32_t kGroup = 64;
inline constexpr std::int32_t kLanes = 16;
inline constexpr std::int32_t kWords = 4;
static_assert(kGroup == kLanes * kWords);

}  // namespace tandem::philox
