#include "gpu/host/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "gpu/host/bf16.hpp"
#include "gpu/reference/attention_reference.hpp"
#include "model/half.hpp"
#include "tests/gpu/attention_ways.hpp"
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
#include "tests/support/trapped_tiles.hpp"
#endif

namespace tandem::gpu::host {
namespace {

using rows_of_doubles = std::vector<std::vector<double>>;

/// Keys, values and queries of one sequence, in shuffled pages.
struct sample {
  sample(std::int32_t length, std::int32_t head_dim, std::int32_t kv_heads, std::int32_t group, std::int32_t block_size,
         kv_format stored)
      : heads(kv_heads * group), group_size(group), dim(head_dim), format(stored) {
    std::mt19937 random(static_cast<std::uint32_t>(length * 31 + head_dim));
    std::normal_distribution<float> normal(0.0F, 1.0F);
    const std::int32_t blocks = (length + block_size - 1) / block_size;
    cache = std::move(*kv_cache::make({1, kv_heads, head_dim, block_size, blocks + 3, format}));
    table.resize(static_cast<std::size_t>(blocks));
    std::iota(table.begin(), table.end(), 2);
    std::shuffle(table.begin(), table.end(), std::mt19937(static_cast<std::uint32_t>(blocks)));
    poison(block_size, blocks + 3, kv_heads);
    keys.resize(static_cast<std::size_t>(kv_heads));
    values.resize(static_cast<std::size_t>(kv_heads));
    for (std::int32_t position = 0; position < length; ++position)
      for (std::int32_t head = 0; head < kv_heads; ++head) store(position, head, block_size, random);
    queries.resize(static_cast<std::size_t>(length) * static_cast<std::size_t>(heads * dim));
    for (float& value : queries) value = normal(random);
  }

  /// What was never written must never be read.
  void poison(std::int32_t block_size, std::int32_t blocks, std::int32_t kv_heads) {
    const std::vector<float> nan(static_cast<std::size_t>(dim), std::nanf(""));
    for (std::int32_t block = 0; block < blocks; ++block)
      for (std::int32_t offset = 0; offset < block_size; ++offset)
        for (std::int32_t head = 0; head < kv_heads; ++head)
          cache->store(0, block, offset, head, nan.data(), nan.data());
  }

  void store(std::int32_t position, std::int32_t head, std::int32_t block_size, std::mt19937& random) {
    std::normal_distribution<float> normal(0.0F, 1.0F);
    std::vector<float> key(static_cast<std::size_t>(dim));
    std::vector<float> value(static_cast<std::size_t>(dim));
    const bool coarse = format == kv_format::bf16;  // numbers it holds exactly
    const auto draw = [&] { return coarse ? std::round(normal(random) * 32.0F) / 32.0F : normal(random); };
    for (float& each : key) each = draw();
    for (float& each : value) each = draw();
    cache->store(0, table[static_cast<std::size_t>(position / block_size)], position % block_size, head, key.data(),
                 value.data());
    keys[static_cast<std::size_t>(head)].push_back(as_stored(key));
    values[static_cast<std::size_t>(head)].push_back(as_stored(value));
  }

  std::vector<double> as_stored(const std::vector<float>& numbers) const {
    if (format == kv_format::int8) return reference::int8_round_trip(numbers);
    return {numbers.begin(), numbers.end()};
  }

  attention_task task_of(std::int32_t kv_head, std::int32_t first, std::int32_t rows, std::vector<float>& out) const {
    out.assign(static_cast<std::size_t>(rows * group_size * dim), -1.0F);
    attention_task task;
    task.cache = cache->layer(0);
    task.table = table.data();
    task.kv_head = kv_head;
    task.group = group_size;
    task.rows = rows;
    task.first_position = first;
    task.query_stride = std::int64_t{heads} * dim;
    task.queries = queries.data() + first * task.query_stride + kv_head * group_size * dim;
    task.out = out.data();
    task.out_stride = std::int64_t{group_size} * dim;
    task.scale = 1.0F / std::sqrt(static_cast<float>(dim));
    task.unseen_positions = unseen;
    return task;
  }

  /// Rows [first, first + rows) of one kv head, as one call.
  std::vector<float> attend(const attention_way& way, std::int32_t kv_head, std::int32_t first,
                            std::int32_t rows) const {
    std::vector<float> out;
    way.table->attend(task_of(kv_head, first, rows, out));
    return out;
  }

  /// The same, cut into pieces of `length` partitions that run in descending order.
  std::vector<float> attend_cut(const attention_way& way, std::int32_t kv_head, std::int32_t first, std::int32_t rows,
                                std::int32_t length) const {
    std::vector<float> out;
    attention_task task = task_of(kv_head, first, rows, out);
    task.partial_partitions = partitions_seen(first + rows - 1);
    std::vector<float> arena(
        static_cast<std::size_t>(rows * group_size * task.partial_partitions * partial_floats(task.cache.value_stride)),
        std::nanf(""));
    task.partials = arena.data();
    const std::int32_t last = (task.partial_partitions - 1) / length * length;
    for (std::int32_t piece = last; piece >= 0; piece -= length)
      way.table->attend_partitions(task, piece, std::min(piece + length, task.partial_partitions));
    way.table->merge_partials(task);
    return out;
  }

  bool rounds(const attention_way& way) const { return way.rounds_bf16 && format == kv_format::bf16; }

  /// The query as it is used.
  std::vector<double> query_of(const attention_way& way, std::int32_t kv_head, std::int32_t head,
                               std::int32_t position) const {
    const float* from = queries.data() + (std::int64_t{position} * heads + kv_head * group_size + head) * dim;
    std::vector<double> query(from, from + dim);
    const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
    for (double& each : query) {
      const float scaled = static_cast<float>(each) * scale;
      each = rounds(way) ? double{model::bfloat16_to_float(float_to_bf16(scaled))} : each * double{scale};
    }
    return query;
  }

  /// The result, and how far one may be from it: a rounded weight is off by 2^-8 of itself at most, and so is the sum
  /// that the result is divided by.
  struct range {
    std::vector<double> value;
    std::vector<double> tolerance;
  };
  range expected(const attention_way& way, std::int32_t kv_head, std::int32_t head, std::int32_t position) const {
    const auto seen = [&](const rows_of_doubles& all) { return rows_of_doubles(all.begin() + unseen, all.end()); };
    rows_of_doubles used = seen(values[static_cast<std::size_t>(kv_head)]);
    const auto attended = [&] {
      return reference::attention_reference(query_of(way, kv_head, head, position),
                                            seen(keys[static_cast<std::size_t>(kv_head)]), used, position + 1 - unseen,
                                            1.0);
    };
    range out{attended(), {}};
    for (auto& row : used)
      for (double& each : row) each = std::abs(each);
    out.tolerance = attended();
    for (double& each : out.tolerance) each = 1e-5 + (rounds(way) ? each * 0x1p-7 : 0.0);
    return out;
  }

  void expect_near(const attention_way& way, const float* row, std::int32_t kv_head, std::int32_t head,
                   std::int32_t position) const {
    const range wanted = expected(way, kv_head, head, position);
    for (std::size_t d = 0; d < wanted.value.size(); ++d)
      ASSERT_NEAR(row[d], wanted.value[d], wanted.tolerance[d]) << position;
  }

  std::int32_t unseen = 0;  // leading positions
  std::int32_t heads;
  std::int32_t group_size;
  std::int32_t dim;
  kv_format format;
  std::optional<kv_cache> cache;
  std::vector<block_id> table;
  std::vector<rows_of_doubles> keys;
  std::vector<rows_of_doubles> values;
  std::vector<float> queries;
};

constexpr kv_format kFormats[] = {kv_format::fp32, kv_format::bf16, kv_format::int8};

class attention_of : public testing::TestWithParam<attention_way> {
 protected:
  attention_of() {
#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
    if (GetParam().is_machine_code) trap_.emplace();
#endif
  }

#if defined(TANDEM_X86_KERNELS) && defined(__linux__)
 private:
  std::optional<test::trapped_tiles> trap_;
#endif
};

void expect_all_near(const sample& data, const attention_way& way, std::int32_t length, std::int32_t kv_heads) {
  for (std::int32_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
    const auto out = data.attend(way, kv_head, 0, length);
    for (const std::int32_t position : {0, 1, length / 2, length - 1})
      for (std::int32_t head = 0; head < data.group_size; ++head) {
        const float* row = out.data() + (std::int64_t{position} * data.group_size + head) * data.dim;
        data.expect_near(way, row, kv_head, head, position);
      }
  }
}

TEST_P(attention_of, agrees_with_the_double_precision_reference) {
  for (const kv_format format : kFormats)
    for (const auto& [length, dim, group, block] : {std::tuple{2, 16, 1, 16},
                                                    {17, 64, 3, 16},
                                                    {300, 64, 3, 16},
                                                    {600, 128, 6, 16},
                                                    {70, 24, 2, 4},
                                                    {40, 33, 2, 16},
                                                    {40, 256, 2, 16},
                                                    {40, 272, 1, 16},
                                                    {300, 80, 9, 5}}) {
      const sample data(length, dim, 2, group, block, format);
      expect_all_near(data, GetParam(), length, 2);
    }
}

TEST_P(attention_of, gives_each_row_the_same_bits_alone_and_in_any_chunk) {
  for (const kv_format format : kFormats) {
    constexpr std::int32_t kLength = 530;
    const sample data(kLength, 64, 1, 3, 16, format);
    const auto whole = data.attend(GetParam(), 0, 0, kLength);
    for (const std::int32_t chunk : {1, 2, 7, 64, 256}) {
      std::vector<float> parts;
      for (std::int32_t first = 0; first < kLength; first += chunk) {
        const auto part = data.attend(GetParam(), 0, first, std::min(chunk, kLength - first));
        parts.insert(parts.end(), part.begin(), part.end());
      }
      ASSERT_EQ(parts, whole) << chunk;
    }
  }
}

TEST_P(attention_of, does_not_depend_on_the_block_size) {
  for (const kv_format format : kFormats) {
    const sample small(300, 64, 1, 2, 4, format);
    const sample large(300, 64, 1, 2, 256, format);
    EXPECT_EQ(small.attend(GetParam(), 0, 0, 300), large.attend(GetParam(), 0, 0, 300));
  }
}

TEST_P(attention_of, gives_the_same_bits_however_the_positions_are_cut) {
  for (const kv_format format : kFormats)
    for (const auto& [length, dim, group, block] :
         {std::tuple{1300, 64, 3, 16}, {1300, 128, 6, 16}, {600, 80, 5, 7}, {257, 24, 1, 4}}) {
      const sample data(length, dim, 2, group, block, format);
      for (const std::int32_t rows : {1, 5, 16}) {
        const std::int32_t first = length - rows;
        const auto whole = data.attend(GetParam(), 1, first, rows);
        for (const std::int32_t pieces : {1, 2, 3, 100})
          ASSERT_EQ(data.attend_cut(GetParam(), 1, first, rows, pieces), whole) << length << " " << rows;
      }
      // Rows on both sides of a partition's end: some of them see nothing of the last piece.
      ASSERT_EQ(data.attend_cut(GetParam(), 1, 250, 7, 1), data.attend(GetParam(), 1, 250, 7));
    }
}

TEST_P(attention_of, leaves_out_positions_that_no_row_sees) {
  for (const kv_format format : kFormats)
    for (const auto& [length, unseen] : {std::pair{20, 1}, {300, 1}, {700, 5}}) {
      sample data(length, 64, 1, 3, 16, format);
      data.unseen = unseen;
      for (const std::int32_t rows : {1, 9, length - unseen}) {
        const std::int32_t first = length - rows;
        const auto out = data.attend(GetParam(), 0, first, rows);
        ASSERT_EQ(data.attend_cut(GetParam(), 0, first, rows, 1), out);
        for (const std::int32_t position : {first, length - 1}) {
          const float* row = out.data() + (std::int64_t{position - first} * 3 + 2) * 64;
          data.expect_near(GetParam(), row, 0, 2, position);
        }
      }
    }
}

/// A key or value that is not finite, or too large or small for its format, in one token only.
TEST_P(attention_of, keeps_a_bad_token_away_from_the_rows_that_do_not_see_it) {
  constexpr std::int32_t kBad = 37;
  for (const kv_format format : kFormats)
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY, 3e38F, 1e-40F}) {
      sample data(300, 64, 1, 3, 16, format);
      const auto before = data.attend(GetParam(), 0, 0, kBad);
      const std::vector<float> numbers(64, bad);
      data.cache->store(0, data.table[kBad / 16], kBad % 16, 0, numbers.data(), numbers.data());
      EXPECT_EQ(data.attend(GetParam(), 0, 0, kBad), before) << bad;
      auto together = data.attend(GetParam(), 0, 0, kBad + 9);
      together.resize(before.size());
      EXPECT_EQ(together, before) << bad;
      const auto seeing = data.attend(GetParam(), 0, kBad, 8);
      if (std::abs(bad) < 1.0F) {
        for (const float each : seeing) ASSERT_TRUE(std::isfinite(each)) << bad;
      } else if (!std::isfinite(bad)) {
        EXPECT_TRUE(std::isnan(seeing.front())) << bad;
      }
    }
}

/// One channel of one value: the others have the bits of a row alone, in both partitions and however cut.
TEST_P(attention_of, keeps_a_bad_channel_to_itself) {
  constexpr std::int32_t kLength = 330;
  for (const kv_format format : {kv_format::fp32, kv_format::bf16})
    for (const std::int32_t bad : {37, 270}) {
      sample data(kLength, 64, 1, 3, 16, format);
      const auto before = data.attend(GetParam(), 0, 0, kLength);
      std::vector<float> key(64);
      std::vector<float> value(64);
      for (std::size_t d = 0; d < 64; ++d) key[d] = static_cast<float>(data.keys[0][static_cast<std::size_t>(bad)][d]);
      for (std::size_t d = 0; d < 64; ++d)
        value[d] = static_cast<float>(data.values[0][static_cast<std::size_t>(bad)][d]);
      value[5] = INFINITY;
      data.cache->store(0, data.table[static_cast<std::size_t>(bad / 16)], bad % 16, 0, key.data(), value.data());
      const auto after = data.attend(GetParam(), 0, 0, kLength);
      for (std::size_t i = 0; i < after.size(); ++i) {
        const bool is_bad = i % 64 == 5 && static_cast<std::int32_t>(i / (3 * 64)) >= bad;
        if (is_bad) {
          ASSERT_EQ(after[i], INFINITY) << i;
        } else {
          ASSERT_EQ(after[i], before[i]) << i;
        }
      }
      const auto cut = data.attend_cut(GetParam(), 0, kLength - 9, 9, 1);
      const std::vector<float> tail(after.end() - 9 * 3 * 64, after.end());
      EXPECT_EQ(cut, tail);
    }
}

TEST_P(attention_of, stands_scores_that_saturate) {
  for (const kv_format format : kFormats) {
    sample data(300, 64, 1, 1, 16, format);
    for (float& each : data.queries) each *= 1e4F;  // one token takes all of the weight
    const auto out = data.attend(GetParam(), 0, 0, 300);
    for (const std::int32_t position : {0, 17, 255, 299}) {
      const auto expected = data.expected(GetParam(), 0, 0, position).value;
      for (std::size_t d = 0; d < expected.size(); ++d)
        ASSERT_NEAR(out[static_cast<std::size_t>(position) * 64 + d], expected[d], 2e-2) << position;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(each_isa, attention_of, testing::ValuesIn(attention_ways()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace tandem::gpu::host
