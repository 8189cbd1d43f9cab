#include "gpu/host/kv_cache.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "gpu/host/quantised_vector.hpp"
#include "gpu/reference/attention_reference.hpp"

namespace tandem::gpu::host {
namespace {

struct quantised {
  float scale = 0;
  std::vector<std::int8_t> numbers;
};

quantised quantise(const std::vector<float>& from, std::size_t stride = 1) {
  std::vector<std::int8_t> all(from.size() * stride, 99);
  quantised out;
  out.scale = quantise_vector(from.data(), static_cast<std::int32_t>(from.size()), all.data(),
                              static_cast<std::int64_t>(stride));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % stride == 0) {
      out.numbers.push_back(all[i]);
    } else {
      EXPECT_EQ(all[i], 99) << "written between the strides";
    }
  }
  return out;
}

void expect_reference(const std::vector<float>& numbers) {
  const auto expected = reference::int8_round_trip(numbers);
  const quantised found = quantise(numbers, 3);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(double{found.scale} * found.numbers[i], expected[i]) << numbers[i];
}

TEST(quantised_vector, agrees_with_the_reference_on_random_numbers) {
  std::mt19937 random(5);
  for (const float size : {1e-29F, 1e-3F, 1.0F, 500.0F, 1e37F}) {
    std::normal_distribution<float> normal(0.0F, size);
    for (int round = 0; round < 100; ++round) {
      std::vector<float> numbers(static_cast<std::size_t>(1 + round));
      for (float& each : numbers) each = normal(random);
      expect_reference(numbers);
    }
  }
}

TEST(quantised_vector, rounds_ties_to_even_and_reaches_both_ends) {
  const quantised found = quantise({127.0F, -127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.49F, 0.0F, -0.0F});
  EXPECT_EQ(found.scale, 1.0F);
  EXPECT_EQ(found.numbers, (std::vector<std::int8_t>{127, -127, 0, 2, 2, 0, -2, 0, 0, 0}));
}

TEST(quantised_vector, an_infinity_or_nan_makes_the_scale_nan_and_the_numbers_0) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY})
    for (const std::size_t at : {0U, 7U, 63U}) {
      std::vector<float> numbers(64, 2.0F);
      numbers[at] = bad;
      const quantised found = quantise(numbers);
      EXPECT_TRUE(std::isnan(found.scale));
      EXPECT_EQ(found.numbers, std::vector<std::int8_t>(64, 0));
    }
}

TEST(quantised_vector, zeros_and_denormals_are_zeros) {
  for (const float tiny : {0.0F, 1e-45F, 1e-38F, 9e-31F}) {
    const quantised found = quantise({tiny, -tiny, tiny});
    EXPECT_EQ(found.scale, 0.0F);
    EXPECT_EQ(found.numbers, std::vector<std::int8_t>(3, 0));
  }
}

TEST(quantised_vector, numbers_near_the_largest_float_stay_finite) {
  constexpr float kMost = 3.4e38F;
  const quantised found = quantise({kMost, -kMost, kMost / 2, 1.0F});
  EXPECT_EQ(found.numbers, (std::vector<std::int8_t>{127, -127, 64, 0}));
  EXPECT_TRUE(std::isfinite(found.scale * 127.0F));
}

kv_shape shape_of(kv_format format, std::int32_t block_size) {
  return {2, 3, 24, block_size, 4, format};
}

TEST(kv_cache, an_int8_block_is_a_quarter_of_an_fp32_block_and_its_scales) {
  for (const std::int32_t block : {1, 5, 16, 32}) {
    const std::uint64_t lanes = static_cast<std::uint64_t>(block + 15) / 16 * 16;
    const std::uint64_t elements = 2 * 3 * (24 * lanes + static_cast<std::uint64_t>(block) * 32);
    EXPECT_EQ(kv_cache::block_bytes(shape_of(kv_format::fp32, block)), elements * 4);
    EXPECT_EQ(kv_cache::block_bytes(shape_of(kv_format::bf16, block)), elements * 2);
    EXPECT_EQ(kv_cache::block_bytes(shape_of(kv_format::int8, block)), elements + 2 * 3 * 2 * lanes * 4);
  }
}

TEST(kv_cache, a_copied_block_is_the_other_one_to_the_last_byte) {
  for (const kv_format format : {kv_format::fp32, kv_format::bf16, kv_format::int8}) {
    auto cache = std::move(*kv_cache::make(shape_of(format, 5)));
    for (std::int32_t layer = 0; layer < 2; ++layer)
      for (std::int32_t offset = 0; offset < 5; ++offset)
        for (std::int32_t head = 0; head < 3; ++head) {
          const std::vector<float> numbers(24, static_cast<float>(layer * 100 + offset * 10 + head + 1));
          cache.store(layer, 1, offset, head, numbers.data(), numbers.data());
        }
    cache.copy(0, 1, 3);
    const kv_layer_view view = cache.layer(0);
    const auto page = [&](const kv_layer_view& of, std::int32_t block) {
      return std::vector<std::byte>(of.pages + block * of.page_bytes, of.pages + (block + 1) * of.page_bytes);
    };
    EXPECT_EQ(page(view, 3), page(view, 1));
    EXPECT_NE(page(view, 2), page(view, 1));
    EXPECT_EQ(page(cache.layer(1), 3), page(cache.layer(1), 2));  // the other layer is as it was
  }
}

/// Every place holds its own number: nothing overlaps, in the first and the last page of every layer.
TEST(kv_cache, each_token_and_head_has_its_own_place) {
  for (const std::int32_t block : {5, 16}) {
    auto cache = std::move(*kv_cache::make(shape_of(kv_format::int8, block)));
    const auto number = [&](std::int32_t layer, std::int32_t page, std::int32_t offset, std::int32_t head) {
      return static_cast<float>(((layer * 4 + page) * block + offset) * 3 + head + 1);
    };
    const auto for_each_place = [&](auto body) {
      for (std::int32_t layer = 0; layer < 2; ++layer)
        for (std::int32_t page = 0; page < 4; ++page)
          for (std::int32_t offset = 0; offset < block; ++offset)
            for (std::int32_t head = 0; head < 3; ++head) body(layer, page, offset, head);
    };
    for_each_place([&](auto... place) {
      const std::vector<float> key(24, number(place...));
      const std::vector<float> value(24, -number(place...));
      cache.store(place..., key.data(), value.data());
    });
    for_each_place([&](std::int32_t layer, std::int32_t page, std::int32_t offset, std::int32_t head) {
      const kv_layer_view view = cache.layer(layer);
      const std::byte* at = view.pages + page * view.page_bytes;
      const auto* numbers = reinterpret_cast<const std::int8_t*>(at);
      const auto* scales =
          reinterpret_cast<const float*>(at + view.scales_offset) + head * 2 * view.key_stride + offset;
      const float expected = number(layer, page, offset, head) / 127.0F;
      ASSERT_EQ(scales[0], expected);
      ASSERT_EQ(scales[view.key_stride], expected);
      for (std::int32_t d = 0; d < 24; ++d) {
        ASSERT_EQ(numbers[(head * 24 + d) * view.key_stride + offset], 127);
        ASSERT_EQ(numbers[view.values_offset + (head * block + offset) * view.value_stride + d], -127);
      }
    });
  }
}

}  // namespace
}  // namespace tandem::gpu::host
