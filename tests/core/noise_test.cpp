#include "core/sampling/noise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "tests/core/naive_sampling.hpp"

namespace tandem {
namespace {

using words = std::array<std::uint32_t, 4>;

// Known answers published with Random123 (kat_vectors, philox4x32 10).
TEST(philox, gives_the_published_known_answers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(uniform_noise, is_strictly_between_0_and_1_and_the_gumbel_value_finite) {
  for (token_id id = 0; id < 300'000; ++id) {
    const double u = uniform(5, 9, id, noise_purpose::accept);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    ASSERT_TRUE(std::isfinite(gumbel(5, 9, id)));
  }
  EXPECT_LT((4294967295.0 + 0.5) * 0x1p-32, 1.0);
  EXPECT_TRUE(std::isfinite(-std::log(-std::log((4294967295.0 + 0.5) * 0x1p-32))));
  EXPECT_TRUE(std::isfinite(-std::log(-std::log(0.5 * 0x1p-32))));
}

TEST(uniform_noise, is_finite_at_the_extremes_of_every_argument) {
  for (const std::uint64_t key : {std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()}) {
    for (const std::int64_t position : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
      for (const token_id id : {0, std::numeric_limits<token_id>::max()}) {
        ASSERT_TRUE(std::isfinite(gumbel(key, position, id)));
      }
    }
  }
}

TEST(uniform_noise, differs_by_key_position_id_and_purpose) {
  std::set<double> seen;
  for (std::uint64_t key = 0; key < 4; ++key) {
    for (const std::int64_t position : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 32}) {
      for (token_id id = 0; id < 256; ++id) {
        for (std::uint32_t purpose = 0; purpose < 4; ++purpose) {
          seen.insert(uniform(key, position, id, static_cast<noise_purpose>(purpose)));
        }
      }
    }
  }
  // 12288 draws of 32 bits: a collision or two by chance, not more.
  EXPECT_GE(seen.size(), 12'286u);
}

TEST(noise_key_of_a_choice, depends_on_seed_and_choice_only) {
  std::set<std::uint64_t> keys;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    for (std::int32_t choice = 0; choice < 64; ++choice) keys.insert(noise_key(seed, choice));
  }
  EXPECT_EQ(keys.size(), 64u * 64u);
  EXPECT_EQ(noise_key(42, 3), noise_key(42, 3));
}

// 16 x 16 table of two draws: uniform margins and independence at once.
double pair_p(const std::function<std::pair<double, double>(std::uint64_t)>& draw) {
  constexpr std::uint64_t kDraws = 200'000;
  std::vector<std::int64_t> seen(256);
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const auto [a, b] = draw(i);
    ++seen[static_cast<std::size_t>(a * 16) * 16 + static_cast<std::size_t>(b * 16)];
  }
  return testing::chi_square_p(std::vector<double>(256, kDraws / 256.0), seen);
}

TEST(uniform_noise, of_neighbouring_ids_positions_seeds_and_purposes_is_independent) {
  const auto place = [](std::uint64_t i) { return static_cast<std::int64_t>(i); };
  const auto at = [](std::uint64_t key, std::int64_t position, token_id id, noise_purpose purpose) {
    return uniform(key, position, id, purpose);
  };
  const auto gumbel_purpose = noise_purpose::gumbel;
  for (const token_id other : {1, 16, 63, 64}) {
    EXPECT_GT(pair_p([&](auto i) {
                return std::pair(at(1, place(i), 0, gumbel_purpose), at(1, place(i), other, gumbel_purpose));
              }),
              1e-4);
  }
  EXPECT_GT(pair_p([&](auto i) {
              return std::pair(at(1, place(i), 7, gumbel_purpose), at(1, place(i) + 1, 7, gumbel_purpose));
            }),
            1e-4);
  EXPECT_GT(pair_p([&](auto i) {
              return std::pair(at(noise_key(i, 0), 5, 7, gumbel_purpose), at(noise_key(i, 1), 5, 7, gumbel_purpose));
            }),
            1e-4);
  EXPECT_GT(pair_p([&](auto i) {
              return std::pair(at(noise_key(i, 0), 5, 7, noise_purpose::accept),
                               at(noise_key(i + 1, 0), 5, 7, noise_purpose::draft));
            }),
            1e-4);
}

}  // namespace
}  // namespace tandem
