#pragma once
/// Identifiers. Strong types where two kinds could be mixed up at a call, plain integers where they index arrays.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tandem {

using token_id = std::int32_t;
using block_id = std::int32_t;  ///< one KV block; addresses the target's page and the draft's page (twins)
using slot_id = std::int32_t;   ///< row of the device's per-sequence state, 0 .. max_num_seqs-1
using step_id = std::uint64_t;  ///< 1, 2, 3 … within one scheduler; 0 is "none"

inline constexpr token_id kNoToken = -1;
inline constexpr block_id kNoBlock = -1;
inline constexpr slot_id kNoSlot = -1;

struct request_id {
  std::uint64_t value = 0;
  auto operator<=>(const request_id&) const = default;
};

/// One generated choice of a request.
struct sequence_id {
  request_id request;
  std::int32_t choice = 0;
  auto operator<=>(const sequence_id&) const = default;
};

}  // namespace tandem

template <>
struct std::hash<tandem::request_id> {
  std::size_t operator()(tandem::request_id id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
template <>
struct std::hash<tandem::sequence_id> {
  std::size_t operator()(tandem::sequence_id id) const noexcept {
    return std::hash<std::uint64_t>{}(id.request.value * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(id.choice));
  }
};
