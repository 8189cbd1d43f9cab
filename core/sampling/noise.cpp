#include "core/sampling/noise.hpp"

#include <cmath>

#include "core/assert.hpp"
#include "core/sampling/philox.hpp"

namespace tandem {
namespace {

// Finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection, so different seeds keep different keys.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  philox::scramble(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
  return counter;
}

std::uint64_t noise_key(std::uint64_t seed, std::int32_t choice) {
  return mix(mix(seed) ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(choice)));
}

double uniform(std::uint64_t key, std::int64_t position, token_id id, noise_purpose purpose) {
  TANDEM_ASSERT(id >= 0);
  const auto index = static_cast<std::uint32_t>(id);
  const std::uint32_t call = index / philox::kGroup * philox::kLanes + index % philox::kLanes;
  const std::uint32_t word = index / philox::kLanes % philox::kWords;
  const auto place = static_cast<std::uint64_t>(position);
  const auto words = philox4x32({call, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32),
                                 static_cast<std::uint32_t>(purpose)},
                                {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  // The half keeps both ends out: u lies in [2^-33, 1 - 2^-33], exact in double.
  return (static_cast<double>(words[word]) + 0.5) * 0x1p-32;
}

double gumbel(std::uint64_t key, std::int64_t position, token_id id) {
  return -std::log(-std::log(uniform(key, position, id, noise_purpose::gumbel)));
}

}  // namespace tandem
