/// E1: broken GGUF files are refused with file, field and offset; never a crash, a hang or a large allocation.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "model/open_formats.hpp"
#include "tests/support/encode_tensor.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::model {
namespace {

test::made_model small_model() {
  test::rand_options options;
  options.layers = 1;
  options.hidden = 32;
  options.intermediate = 32;
  return test::make_rand(options);
}

test::gguf_writer small_writer() {
  return test::to_gguf(small_model());
}

// From a buffer of exactly that size, so that a sanitizer sees one byte too far.
result<model_parts> parse(const std::string& bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  auto parts = parse_gguf_model({copy.get(), bytes.size()}, "made.gguf");
  if (parts) parts->tensors.clear();  // they point into the copy
  return parts;
}

void expect_refused(const std::string& bytes, const std::string& what, const std::string& mention = "") {
  const auto parts = parse(bytes);
  ASSERT_FALSE(parts) << what << " was accepted";
  EXPECT_NE(parts.error().message.find("made.gguf"), std::string::npos) << what << ": " << parts.error().message;
  EXPECT_NE(parts.error().message.find(mention), std::string::npos) << what << ": " << parts.error().message;
}

std::string patched(std::string bytes, const test::gguf_writer::field& field, std::uint64_t value) {
  std::memcpy(bytes.data() + field.offset, &value, field.bytes);
  return bytes;
}

std::uint64_t value_at(const std::string& bytes, const test::gguf_writer::field& field) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + field.offset, field.bytes);
  return value;
}

TEST(gguf_malformed, the_unbroken_file_is_accepted) {
  const auto parts = parse(small_writer().lay_out().bytes);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->sizes.vocabulary_size, 259);
}

TEST(gguf_malformed, E1_a_file_cut_at_any_field_or_inside_a_tensor_is_refused) {
  const auto made = small_writer().lay_out();
  for (const auto& field : made.fields) {
    for (const std::size_t length : {field.offset, field.offset + 1, field.offset + field.bytes}) {
      expect_refused(made.bytes.substr(0, length), "cut at " + field.what + " " + std::to_string(length), "offset");
    }
  }
  for (const std::size_t length : {std::size_t{0}, made.data_start, made.data_start + 5, made.bytes.size() - 40}) {
    expect_refused(made.bytes.substr(0, length), "cut at " + std::to_string(length), "offset");
  }
}

TEST(gguf_malformed, E1_every_count_length_type_dimension_and_offset_at_its_extremes_is_refused) {
  const auto made = small_writer().lay_out();
  const std::uint64_t extremes[] = {0,
                                    1,
                                    2,
                                    0x7FFFFFFFULL,
                                    0x80000000ULL,
                                    0xFFFFFFFFULL,
                                    1ULL << 32,
                                    1ULL << 61,
                                    (1ULL << 63) - 1ULL,
                                    1ULL << 63,
                                    std::numeric_limits<std::uint64_t>::max()};
  std::size_t refused = 0;
  for (const auto& field : made.fields) {
    for (const std::uint64_t value : extremes) {
      const std::string bytes = patched(made.bytes, field, value);
      if (bytes == made.bytes || (field.what == "version" && value == 2)) continue;
      const bool other_kind = field.what == "kind" && value <= 30;  // smaller numbers in the same place: still a file
      if (other_kind) {
        parse(bytes);
        continue;
      }
      expect_refused(bytes, field.what + " at " + std::to_string(field.offset) + " = " + std::to_string(value));
      ++refused;
    }
  }
  EXPECT_GT(refused, 500U);
}

TEST(gguf_malformed, E1_one_more_or_one_less_is_refused) {
  const auto made = small_writer().lay_out();
  for (const auto& field : made.fields) {
    if (field.what == "version" || field.what.ends_with("type") || field.what == "kind") continue;
    const std::uint64_t value = value_at(made.bytes, field);
    expect_refused(patched(made.bytes, field, value + 1), field.what + " + 1 at " + std::to_string(field.offset));
    if (value == 0) continue;
    expect_refused(patched(made.bytes, field, value - 1), field.what + " - 1 at " + std::to_string(field.offset));
  }
}

TEST(gguf_malformed, E1_random_bytes_in_the_header_never_crash) {
  const auto made = small_writer().lay_out();
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = made.bytes;
    for (int change = 0; change < 3; ++change) bytes[random() % made.data_start] = static_cast<char>(random());
    parse(bytes);
  }
}

TEST(gguf_malformed, E1_other_versions_and_byte_orders_are_refused_by_name) {
  const auto with_version = [](std::uint32_t version) {
    std::string bytes = small_writer().lay_out().bytes;
    std::memcpy(bytes.data() + 4, &version, sizeof version);
    return bytes;
  };
  expect_refused(with_version(1), "version 1", "version 1 is not supported");
  expect_refused(with_version(99), "version 99", "version 99 is not supported");
  expect_refused(with_version(0x03000000), "big-endian", "big-endian");
  EXPECT_TRUE(parse(with_version(2)));
  expect_refused("GGML" + std::string(60, '\0'), "magic", "no GGUF file");
}

TEST(gguf_malformed, E1_bad_alignments_are_refused) {
  for (const std::uint32_t alignment : {0U, 1U, 3U, 4U, 33U, 1U << 31, 0xFFFFFFFFU}) {
    auto writer = small_writer();
    writer.add_u32("general.alignment", alignment);
    expect_refused(writer.lay_out().bytes, "alignment " + std::to_string(alignment), "general.alignment");
  }
  auto of_wrong_type = small_writer();
  of_wrong_type.add_text("general.alignment", "32");
  expect_refused(of_wrong_type.lay_out().bytes, "alignment as text", "general.alignment");
}

TEST(gguf_malformed, E1_duplicate_keys_and_tensors_are_refused) {
  auto keys = small_writer();
  keys.add_u32("llama.block_count", 1);
  expect_refused(keys.lay_out().bytes, "duplicate key", "appears twice");
  auto tensors = small_writer();
  tensors.add_tensor("output_norm.weight", {32}, 0, std::string(128, '\0'));
  expect_refused(tensors.lay_out().bytes, "duplicate tensor", "two tensors have this name");
}

TEST(gguf_malformed, E1_unknown_kinds_and_too_many_dimensions_are_refused) {
  auto kind = small_writer();
  kind.remove_tensor("output_norm.weight");
  kind.add_tensor("output_norm.weight", {256}, 10, std::string(84, '\0'));
  expect_refused(kind.lay_out().bytes, "Q2_K", "kind 10 is not one of");
  auto dimensions = small_writer();
  dimensions.add_tensor("extra", {1, 1, 1, 1, 1}, 0, std::string(4, '\0'));
  expect_refused(dimensions.lay_out().bytes, "5 dimensions", "number of dimensions");
  auto wrapping = small_writer();
  wrapping.add_tensor("extra", {1ULL << 32, 1ULL << 32}, 0, std::string(4, '\0'));
  expect_refused(wrapping.lay_out().bytes, "2^64 values", "far too large");
  auto ragged = small_writer();
  ragged.add_tensor("extra", {33}, 8, std::string(68, '\0'));
  expect_refused(ragged.lay_out().bytes, "half a block", "whose blocks have 32");
}

TEST(gguf_malformed, E1_vocabularies_that_are_missing_short_or_wrong_are_refused) {
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.model",
                          "tokenizer.ggml.pre", "tokenizer.ggml.merges"}) {
    auto missing = small_writer();
    missing.remove(key);
    expect_refused(missing.lay_out().bytes, std::string("missing ") + key, key);
  }
  auto shorter = small_writer();
  shorter.remove("tokenizer.ggml.tokens");
  shorter.remove("tokenizer.ggml.token_type");
  shorter.remove("tokenizer.ggml.eos_token_id");
  shorter.add_texts("tokenizer.ggml.tokens", {"a", "b"});
  shorter.add_i32s("tokenizer.ggml.token_type", {1, 1});
  expect_refused(shorter.lay_out().bytes, "2 tokens", "has 2 tokens but tensor \"token_embd.weight\"");
  auto beyond = small_writer();
  beyond.add_u32("tokenizer.ggml.bos_token_id", 259);
  expect_refused(beyond.lay_out().bytes, "BOS beyond the vocabulary", "bos_token_id");
  auto merge = small_writer();
  merge.remove("tokenizer.ggml.merges");
  merge.add_texts("tokenizer.ggml.merges", {"ab"});
  expect_refused(merge.lay_out().bytes, "half a merge", "merge 0 \"ab\" is not two pieces");
}

TEST(gguf_malformed, E1_NaN_and_infinite_weights_are_refused_in_every_kind) {
  for (const auto kind : {tensor_kind::f32, tensor_kind::f16, tensor_kind::bf16, tensor_kind::q8_0}) {
    auto made = small_model();
    made.kind = kind;
    auto writer = test::to_gguf(made);
    std::string data(32 * 32 / static_cast<std::size_t>(traits(kind).block_elements) *
                         static_cast<std::size_t>(traits(kind).block_bytes),
                     '\0');
    for (std::size_t i = 0; i < 4; ++i) data[data.size() / 2 + i] = '\xFF';
    writer.remove_tensor("blk.0.ffn_down.weight");
    writer.add_tensor("blk.0.ffn_down.weight", {32, 32}, test::ggml_number(kind), data);
    expect_refused(writer.lay_out().bytes, std::string(traits(kind).name), "holds an infinity or NaN at offset");
  }
}

TEST(gguf_malformed, E1_numbers_that_contradict_the_tensors_are_refused) {
  for (const auto& [key, value] : {std::pair{"block_count", 2},
                                   {"embedding_length", 64},
                                   {"feed_forward_length", 64},
                                   {"attention.head_count", 3},
                                   {"attention.head_count_kv", 3},
                                   {"attention.key_length", 6},
                                   {"block_count", 0},
                                   {"context_length", 0}}) {
    auto writer = small_writer();
    writer.remove(std::string("llama.") + key);
    writer.add_u32(std::string("llama.") + key, static_cast<std::uint32_t>(value));
    expect_refused(writer.lay_out().bytes, key);
  }
}

TEST(gguf_malformed, arrays_nested_too_deeply_are_refused_and_shallow_ones_walked) {
  const auto nested = [](int depth) {
    std::string value;
    for (int level = 0; level < depth; ++level) value += std::string("\x09\0\0\0\x01\0\0\0\0\0\0\0", 12);
    return value + std::string("\0\0\0\0\x01\0\0\0\0\0\0\0\x05", 13);
  };
  auto deep = small_writer();
  deep.add_raw("deep", 9, nested(100'000));
  expect_refused(deep.lay_out().bytes, "deep arrays", "nested too deeply");
  auto shallow = small_writer();
  shallow.add_raw("shallow", 9, nested(2));
  EXPECT_TRUE(parse(shallow.lay_out().bytes));
}

TEST(gguf_malformed, every_metadata_type_is_read_and_truth_values_are_checked) {
  auto writer = small_writer();
  const std::size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  for (std::uint32_t type = 0; type < 13; ++type) {
    if (bytes[type] == 0) continue;
    writer.add_raw("one." + std::to_string(type), type, std::string(bytes[type], '\1'));
    std::string array(4, '\0');
    array[0] = static_cast<char>(type);
    writer.add_raw("many." + std::to_string(type), 9,
                   array + std::string("\2\0\0\0\0\0\0\0", 8) + std::string(2 * bytes[type], '\1'));
  }
  EXPECT_TRUE(parse(writer.lay_out().bytes));
  writer.add_raw("no.boolean", 7, "\2");
  expect_refused(writer.lay_out().bytes, "boolean 2", "a truth value must be 0 or 1");
}

TEST(gguf_malformed, paths_that_are_no_files_are_refused) {
  const test::temporary_folder folder;
  EXPECT_EQ(open_model(folder / "nothing.gguf").error().code, error_code::not_found);
  test::write_file(folder / "empty.gguf", "");
  EXPECT_EQ(open_model(folder / "empty.gguf").error().code, error_code::corrupt);
  EXPECT_EQ(open_model("/dev/null").error().code, error_code::io);
}

}  // namespace
}  // namespace tandem::model
