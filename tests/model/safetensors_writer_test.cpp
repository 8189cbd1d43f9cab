#include "model/safetensors_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/safetensors_file.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::test {
namespace {

using model::planned_tensor;
using model::stored_dtype;

TEST(safetensors_writer, what_is_written_in_pieces_is_read) {
  const temporary_folder folder;
  const std::vector<planned_tensor> plan = {{"a", stored_dtype::bf16, {2, 3}},
                                            {"b \"quoted\"\n", stored_dtype::bf16, {1}}};
  auto writer = model::safetensors_writer::create(folder / "x.safetensors", plan, {{"key", "a \\ value"}});
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  const std::vector<std::uint16_t> values = {1, 2, 3, 4, 5, 6, 7};
  const auto bytes = std::as_bytes(std::span(values));
  ASSERT_TRUE(writer->write(bytes.first(5)).has_value());
  ASSERT_TRUE(writer->write(bytes.subspan(5)).has_value());
  ASSERT_TRUE(writer->finish().has_value());

  const std::string file = read_file(folder / "x.safetensors");
  const auto read = model::parse_safetensors(std::as_bytes(std::span(file)), "x");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].name, "a");
  EXPECT_EQ((*read)[0].rows, 2);
  EXPECT_EQ((*read)[0].columns, 3);
  EXPECT_EQ((*read)[1].name, "b \"quoted\"\n");
  EXPECT_TRUE(std::ranges::equal((*read)[0].data, bytes.first(12)));
  EXPECT_EQ((*read)[0].file_offset % 8, 0U) << "the data is aligned";
}

TEST(safetensors_writer, counts_bytes_of_both_kinds) {
  EXPECT_EQ((planned_tensor{"a", stored_dtype::i32, {3, 5}}.bytes()), 60U);
  EXPECT_EQ((planned_tensor{"a", stored_dtype::bf16, {3, 5, 2}}.bytes()), 60U);
  EXPECT_EQ((planned_tensor{"a", stored_dtype::i32, {}}.bytes()), 4U);
}

TEST(safetensors_writer, a_file_that_cannot_be_made_is_named) {
  const temporary_folder folder;
  const auto writer = model::safetensors_writer::create(folder / "none" / "x.safetensors", {}, {});
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code, error_code::io);
  EXPECT_NE(writer.error().message.find("x.safetensors cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace tandem::test
