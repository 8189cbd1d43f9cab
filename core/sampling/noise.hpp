#pragma once
/// Counter-based noise: a pure function of (key, absolute position, token id), the same on every device, in every
/// batch, for target and draft. Philox4x32-10 (Salmon et al., SC'11).
///
/// One Philox call serves four ids, laid out so that vector lanes hold neighbours: ids come in groups of 64; id belongs
/// to call (id / 64) * 16 + id % 16 and takes its word (id / 16) % 4. A word w stands for u = (w + 1/2) / 2^32.

#include <array>
#include <cstdint>

#include "core/ids.hpp"

namespace tandem {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Key of one choice: hash(seed, choice). Choice 0 of a request alone and in a list draw the same.
std::uint64_t noise_key(std::uint64_t seed, std::int32_t choice);

/// Uniform in (0, 1), both ends excluded; `purpose` separates streams that must not share noise.
enum class noise_purpose : std::uint32_t { gumbel = 0, accept = 1, residual = 2, draft = 3 };
double uniform(std::uint64_t key, std::int64_t position, token_id id, noise_purpose purpose);

/// Standard Gumbel noise -log(-log(u)), finite for every input.
double gumbel(std::uint64_t key, std::int64_t position, token_id id);

}  // namespace tandem
