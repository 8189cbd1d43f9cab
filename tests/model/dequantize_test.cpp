#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/half.hpp"
#include "model/model.hpp"
#include "tests/support/encode_tensor.hpp"

namespace tandem::model {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

struct golden_block {
  std::string kind;
  std::string bytes;
  std::string floats;
};

std::vector<golden_block> golden_blocks() {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/golden/quant_blocks.txt");
  std::vector<golden_block> blocks;
  std::string word;
  std::string value;
  while (file >> word >> value) {
    if (word == "kind") blocks.push_back({value, "", ""});
    if (word == "bytes") blocks.back().bytes = from_hex(value);
    if (word == "floats") blocks.back().floats = from_hex(value);
  }
  return blocks;
}

constexpr tensor_kind kAllKinds[] = {tensor_kind::f32,  tensor_kind::f16,  tensor_kind::bf16, tensor_kind::q4_0,
                                     tensor_kind::q4_1, tensor_kind::q5_0, tensor_kind::q5_1, tensor_kind::q8_0,
                                     tensor_kind::q4_k, tensor_kind::q5_k, tensor_kind::q6_k};

tensor over(const std::string& bytes, tensor_kind kind, std::int64_t rows) {
  tensor weight;
  weight.kind = kind;
  weight.rows = rows;
  const auto blocks = static_cast<std::int64_t>(bytes.size()) / traits(kind).block_bytes;
  weight.columns = blocks / rows * traits(kind).block_elements;
  weight.data = std::as_bytes(std::span(bytes));
  return weight;
}

TEST(dequantize, every_kind_equals_the_golden_blocks_bit_for_bit) {
  std::set<std::string> seen;
  for (const golden_block& block : golden_blocks()) {
    for (const tensor_kind kind : kAllKinds) {
      if (traits(kind).name != block.kind) continue;
      seen.insert(block.kind);
      const tensor weight = over(block.bytes, kind, 1);
      ASSERT_EQ(weight.columns * 4, static_cast<std::int64_t>(block.floats.size())) << block.kind;
      std::vector<float> out(static_cast<std::size_t>(weight.columns));
      dequantize_row(weight, 0, out.data());
      EXPECT_EQ(std::memcmp(out.data(), block.floats.data(), block.floats.size()), 0) << block.kind;
    }
  }
  EXPECT_EQ(seen.size(), std::size(kAllKinds));
}

TEST(dequantize, a_row_of_several_blocks_is_its_blocks_and_rows_do_not_mix) {
  for (const tensor_kind kind : kAllKinds) {
    std::string bytes;
    std::string floats;
    for (const golden_block& block : golden_blocks()) {
      if (block.kind != traits(kind).name) continue;
      bytes += block.bytes + block.bytes;  // an even number of blocks: two rows
      floats += block.floats + block.floats;
    }
    const tensor weight = over(bytes, kind, 2);
    std::vector<float> out(static_cast<std::size_t>(weight.columns));
    for (std::int64_t row = 0; row < 2; ++row) {
      dequantize_row(weight, row, out.data());
      const std::size_t row_bytes = out.size() * sizeof(float);
      EXPECT_EQ(std::memcmp(out.data(), floats.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes), 0)
          << traits(kind).name << " row " << row;
    }
  }
}

TEST(dequantize, every_half_survives_the_way_to_fp32_and_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    if ((bits & 0x7C00U) == 0x7C00U) {
      EXPECT_FALSE(std::isfinite(value));
    } else {
      ASSERT_EQ(test::to_half(value), bits);
    }
  }
}

}  // namespace
}  // namespace tandem::model
