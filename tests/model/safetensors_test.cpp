/// E2: broken safetensors headers and shard indexes are refused with the tensor and the file.

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "model/model.hpp"
#include "model/safetensors_file.hpp"
#include "model/safetensors_shards.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/safetensors_writer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::model {
namespace {

using nlohmann::json;

result<std::vector<tensor>> parse(const std::string& bytes) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  auto tensors = parse_safetensors({copy.get(), bytes.size()}, "made.safetensors");
  if (tensors) {
    for (tensor& each : *tensors) each.data = {};
  }
  return tensors;
}

void expect_refused(const std::string& bytes, const std::string& mention) {
  const auto tensors = parse(bytes);
  ASSERT_FALSE(tensors) << mention;
  EXPECT_NE(tensors.error().message.find("made.safetensors"), std::string::npos) << tensors.error().message;
  EXPECT_NE(tensors.error().message.find(mention), std::string::npos) << tensors.error().message;
}

std::string with_header(const std::string& header, std::size_t data_bytes = 16) {
  return test::safetensors_bytes(header, std::string(data_bytes, '\0'));
}

std::string with_entry(const std::string& entry, std::size_t data_bytes = 16) {
  return with_header("{\"w\":" + entry + "}", data_bytes);
}

TEST(safetensors, a_good_file_gives_names_shapes_and_offsets) {
  const auto tensors = parse(test::safetensors_bytes(
      {{"a", "F32", {2, 3}, std::string(24, '\0')}, {"b", "BF16", {5}, std::string(10, '\0')}}));
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2U);
  EXPECT_EQ((*tensors)[0].rows, 2);
  EXPECT_EQ((*tensors)[0].columns, 3);
  EXPECT_EQ((*tensors)[1].rows, 1);
  EXPECT_EQ((*tensors)[1].columns, 5);
  EXPECT_EQ((*tensors)[1].file_offset, (*tensors)[0].file_offset + 24);
}

TEST(safetensors, E2_header_lengths_that_cannot_be_are_refused) {
  const std::string good = test::safetensors_bytes({{"a", "F32", {4}, std::string(16, '\0')}});
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{good.size() - 7},
                                     std::uint64_t{1} << 32, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    std::string bytes = good;
    std::memcpy(bytes.data(), &length, sizeof length);
    EXPECT_FALSE(parse(bytes)) << length;
  }
  for (std::size_t cut = 0; cut < good.size(); ++cut) EXPECT_FALSE(parse(good.substr(0, cut))) << cut;
}

TEST(safetensors, E2_entries_that_contradict_themselves_are_refused) {
  expect_refused(with_entry(R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})"), "\"w\"");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[4],"data_offsets":[0,32]})"), "truncated");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[5],"data_offsets":[0,16]})"), "need 20");
  expect_refused(with_entry(R"({"dtype":"F16","shape":[4],"data_offsets":[0,16]})"), "need 8");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]})"), "too large");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[0,4],"data_offsets":[0,0]})", 0), "zero");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[-4],"data_offsets":[0,16]})"), "no whole number");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[4],"data_offsets":[0,18446744073709551616]})"), "");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[4],"data_offsets":[0]})"), "data_offsets");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[1,1,1,1,4],"data_offsets":[0,16]})"), "shape");
  expect_refused(with_entry(R"({"dtype":"I64","shape":[2],"data_offsets":[0,16]})"), "\"I64\" is not supported");
  expect_refused(with_entry(R"({"shape":[4],"data_offsets":[0,16]})"), "dtype");
  expect_refused(with_entry("[1,2]"), "no object");
  expect_refused(with_entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), "belong to no tensor");
}

TEST(safetensors, E2_overlaps_duplicates_and_headers_that_are_no_object_are_refused) {
  const std::string entry = R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})";
  const std::string shifted = R"({"dtype":"F32","shape":[4],"data_offsets":[4,20]})";
  expect_refused(with_header("{\"a\":" + entry + ",\"b\":" + shifted + "}", 20), "overlaps");
  expect_refused(with_header("{\"a\":" + entry + ",\"a\":" + entry + "}"), "two tensors have this name");
  expect_refused(with_header("[]"), "no JSON object");
  expect_refused(with_header("{"), "not valid JSON");
  expect_refused(with_header(""), "");
  expect_refused(with_header(std::string(100'000, '[')), "not valid JSON");
  std::string nested = "{\"a\":";
  for (int i = 0; i < 100'000; ++i) nested += "{\"a\":";
  expect_refused(with_header(nested + "1" + std::string(100'001, '}')), "");
}

TEST(safetensors, E2_random_bytes_never_crash) {
  const std::string good = test::safetensors_bytes({{"a", "F32", {2, 2}, std::string(16, '\0')}});
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 2; ++change) bytes[random() % bytes.size()] = static_cast<char>(random());
    parse(bytes);
  }
}

/// Two shards and an index over them.
class sharded_folder {
 public:
  sharded_folder() {
    write("one.safetensors", {{"a", "F32", {4}, std::string(16, '\0')}});
    write("two.safetensors", {{"b", "F32", {4}, std::string(16, '\0')}});
    index({{"a", "one.safetensors"}, {"b", "two.safetensors"}});
  }
  void write(const std::string& name, const std::vector<test::safetensors_entry>& entries) {
    test::write_file(folder_ / name, test::safetensors_bytes(entries));
  }
  void index(const json& map) { index_text(json({{"weight_map", map}}).dump()); }
  void index_text(const std::string& text) { test::write_file(folder_ / "model.safetensors.index.json", text); }
  result<safetensors_weights> open() const { return open_safetensors(folder_.path()); }
  const test::temporary_folder& folder() const { return folder_; }

 private:
  test::temporary_folder folder_;
};

void expect_refused(const sharded_folder& made, const std::string& mention) {
  const auto opened = made.open();
  ASSERT_FALSE(opened) << mention;
  EXPECT_NE(opened.error().message.find(mention), std::string::npos) << opened.error().message;
}

TEST(safetensors, E2_only_indexed_shards_are_loaded) {
  sharded_folder made;
  made.write("stray.safetensors", {{"c", "F32", {4}, std::string(16, '\0')}});
  const auto opened = made.open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->tensors.size(), 2U);
  EXPECT_EQ(opened->files.size(), 2U);
}

TEST(safetensors, E2_an_index_that_names_what_is_not_there_is_refused) {
  sharded_folder missing_file;
  missing_file.index({{"a", "one.safetensors"}, {"b", "three.safetensors"}});
  expect_refused(missing_file, "three.safetensors");
  sharded_folder missing_tensor;
  missing_tensor.index({{"a", "one.safetensors"}, {"b", "two.safetensors"}, {"c", "two.safetensors"}});
  expect_refused(missing_tensor, "\"c\" is missing");
  sharded_folder twice;
  twice.write("two.safetensors", {{"b", "F32", {4}, std::string(16, '\0')}, {"a", "F32", {1}, std::string(4, '\0')}});
  expect_refused(twice, "\"a\" is in this file but");
  sharded_folder listed_twice;
  listed_twice.index_text(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})");
  expect_refused(listed_twice, "listed twice");
  sharded_folder half;
  const std::string whole = test::read_file(half.folder() / "two.safetensors");
  test::write_file(half.folder() / "two.safetensors", whole.substr(0, whole.size() - 6));
  expect_refused(half, "two.safetensors");
}

TEST(safetensors, E2_shard_names_that_leave_the_folder_are_refused) {
  const test::temporary_folder outside;
  test::write_file(outside / "x.safetensors", test::safetensors_bytes({{"b", "F32", {4}, std::string(16, '\0')}}));
  for (const std::string& name : {std::string("../x.safetensors"), (outside / "x.safetensors").string(),
                                  std::string(""), std::string(".."), std::string("a/b"), std::string(300, 'x')}) {
    sharded_folder made;
    made.index({{"a", "one.safetensors"}, {"b", name}});
    expect_refused(made, "no name of a file in this folder");
  }
  sharded_folder linked;
  std::filesystem::create_symlink(outside / "x.safetensors", linked.folder() / "link.safetensors");
  linked.index({{"a", "one.safetensors"}, {"b", "link.safetensors"}});
  expect_refused(linked, "leads out of the model's folder");
}

TEST(safetensors, links_into_the_blobs_of_a_hub_cache_are_followed) {
  const test::temporary_folder cache;
  std::filesystem::create_directories(cache.path() / "blobs");
  std::filesystem::create_directories(cache.path() / "snapshots" / "abc");
  test::write_file(cache.path() / "blobs" / "123", test::safetensors_bytes({{"a", "F32", {1}, std::string(4, '\0')}}));
  std::filesystem::create_symlink("../../blobs/123", cache.path() / "snapshots" / "abc" / "model.safetensors");
  const auto opened = open_safetensors(cache.path() / "snapshots" / "abc");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->tensors.size(), 1U);
}

TEST(safetensors, E2_an_index_of_the_wrong_form_is_refused) {
  for (const char* text : {"[]", "{}", "{\"weight_map\":[]}", "{\"weight_map\":{\"a\":1}}", "", "{"}) {
    sharded_folder made;
    made.index_text(text);
    expect_refused(made, "model.safetensors.index.json");
  }
}

}  // namespace
}  // namespace tandem::model
