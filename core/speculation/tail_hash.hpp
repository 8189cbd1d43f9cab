#pragma once
/// Hash of the last tokens of a text, grown from its last token backwards: one pass gives the hashes of all lengths.

#include <cstdint>

#include "core/ids.hpp"

namespace tandem {

class tail_hash {
 public:
  /// Texts of different seeds share no value but by chance.
  explicit tail_hash(std::uint64_t seed = 0) : value_(seed) {}

  void prepend(token_id token) {
    value_ ^= static_cast<std::uint32_t>(token) + 0x9E3779B97F4A7C15ull;
    value_ *= 0xBF58476D1CE4E5B9ull;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace tandem
