// Folders of draft heads: what good ones say, and that broken or foreign ones are refused with a sentence.
#include "model/draft_heads.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "model/head_files.hpp"
#include "model/safetensors_file.hpp"
#include "tests/support/encode_tensor.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/made_heads.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::model {
namespace {

using heads_result = result<std::shared_ptr<const draft_heads>>;

/// RAND as a model file, for its description.
const description& target() {
  static const auto opened = [] {
    const test::temporary_folder folder;
    test::write_gguf(test::make_rand(), folder / "rand.gguf");
    return *open_model(folder / "rand.gguf");
  }();
  return opened->describe();
}

heads_result open(const test::made_heads& made) {
  const test::temporary_folder folder;
  test::write_heads(made, folder / "heads");
  return open_draft_heads(folder / "heads", target());
}

void expect_refused(const test::made_heads& made, error_code code, const std::string& mention) {
  const auto opened = open(made);
  ASSERT_FALSE(opened) << mention;
  EXPECT_EQ(opened.error().code, code) << opened.error().message;
  EXPECT_NE(opened.error().message.find(mention), std::string::npos) << opened.error().message;
  EXPECT_NE(opened.error().message.find("heads/"), std::string::npos) << "names the file: " << opened.error().message;
}

test::made_heads medusa(const test::medusa_options& options = {}) {
  return test::make_medusa(test::make_rand(), options);
}
test::made_heads eagle(const test::eagle_options& options = {}) {
  return test::make_eagle(test::make_rand(), options);
}

TEST(draft_heads, medusa_is_read_under_every_published_name) {
  std::vector<test::made_heads> all;
  for (const char* prefix : {"", "medusa_head.", "medusa_heads."})
    all.push_back(medusa({.blocks = 2, .prefix = prefix}));
  test::made_heads vllm = medusa({.blocks = 2});
  for (auto& tensor : vllm.tensors) {
    const std::string head = tensor.name.substr(0, 1);
    const std::string block = tensor.name.substr(2, 1);
    const std::string end = tensor.name.substr(tensor.name.rfind('.'));
    tensor.name = block == "2" ? "lm_heads." + head + ".weight" : "blocks." + head + ".layers." + block + end;
  }
  vllm.config = R"({"model_type": "medusa", "num_heads": 3, "num_hidden_layers": 2, "hidden_size": 64})";
  all.push_back(vllm);
  all.push_back(medusa({.blocks = 2}));
  all.back().weights_name = "medusa_lm_head.safetensors";
  for (const test::made_heads& made : all) {
    const auto opened = open(made);
    ASSERT_TRUE(opened) << opened.error().message;
    const head_description& head = (*opened)->describe();
    EXPECT_EQ(head.kind, head_kind::medusa);
    ASSERT_EQ(head.medusa.size(), 3u);
    ASSERT_EQ(head.medusa[2].blocks.size(), 2u);
    EXPECT_NE(head.medusa[2].blocks[1].bias, nullptr);
    EXPECT_NE(head.medusa[2].output, nullptr);
    EXPECT_EQ(head.draft_vocabulary, target().vocabulary_size);
    EXPECT_EQ((*opened)->parameters(), 3u * (2 * (64 * 64 + 64) + 259 * 64));
  }
}

TEST(draft_heads, eagle_one_and_three_are_told_apart) {
  const auto first = open(eagle({.third = false}));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ((*first)->describe().kind, head_kind::eagle);
  EXPECT_EQ((*first)->describe().eagle.output, nullptr);
  EXPECT_EQ((*first)->describe().eagle.final_norm, nullptr);
  const auto third = open(eagle({.norm_before_residual = true, .ids = {3, 7, 100}}));
  ASSERT_TRUE(third) << third.error().message;
  const head_description& head = (*third)->describe();
  EXPECT_EQ(head.kind, head_kind::eagle3);
  EXPECT_TRUE(head.eagle.residual_is_normed);
  EXPECT_EQ(head.draft_vocabulary, 3);
  EXPECT_EQ(head.target_ids, (std::vector<token_id>{3, 7, 100}));
  EXPECT_EQ(head.eagle.feature_layers, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(draft_heads, layers_of_features_in_both_conventions) {
  const auto layers_with = [](const std::string& ids) {
    test::made_heads made = eagle();
    made.reword("[0,1,2]", ids);
    const auto opened = open(made);
    return opened ? (*opened)->describe().eagle.feature_layers : std::vector<std::int32_t>{};
  };
  EXPECT_EQ(layers_with("[1,0,1]"), (std::vector<std::int32_t>{2, 1, 2})) << "behind layers 1, 0 and 1";
  EXPECT_EQ(layers_with("null"), (std::vector<std::int32_t>{2, 1, 0})) << "2, half of them, all but 3; of two layers";
  EXPECT_EQ(layers_with("[0,1]"), std::vector<std::int32_t>{});
  EXPECT_EQ(layers_with("[0,1,3]"), std::vector<std::int32_t>{});
  EXPECT_EQ(layers_with("[0,1,-1]"), std::vector<std::int32_t>{});
  EXPECT_EQ(layers_with("\"all\""), std::vector<std::int32_t>{});
}

TEST(draft_heads, heads_of_another_model_are_refused_with_both_sizes) {
  test::rand_options wide;
  wide.hidden = 96;
  expect_refused(test::make_medusa(test::make_rand(wide)), error_code::invalid_argument,
                 "hidden size is 96, the model's is 64");
  expect_refused(test::make_eagle(test::make_rand(wide)), error_code::invalid_argument,
                 "hidden size is 96, the model's is 64");
  expect_refused(test::make_eagle(test::make_rand(wide), {.third = false}), error_code::invalid_argument,
                 "hidden size");
  test::rand_options small;
  small.tokenizer = test::bytes_tokenizer({"more", "pieces"});
  expect_refused(test::make_medusa(test::make_rand(small)), error_code::invalid_argument, "vocabulary is 261");
  expect_refused(test::make_eagle(test::make_rand(small)), error_code::invalid_argument, "vocabulary is 261");
}

TEST(draft_heads, every_missing_misshapen_or_unknown_tensor_is_named) {
  for (const test::made_heads& whole : {medusa(), eagle(), eagle({.third = false})}) {
    for (const auto& tensor : whole.tensors) {
      test::made_heads made = whole;
      if (!tensor.name.ends_with(".bias") && tensor.name != "0.1.weight" && tensor.name != "lm_head.weight" &&
          tensor.name != "fc.weight") {
        made.erase(tensor.name);
        EXPECT_FALSE(open(made)) << tensor.name;
      }
      made = whole;
      auto& cut = made.tensor(tensor.name);
      if (cut.shape.size() == 1) continue;
      cut.shape[1] -= 1;
      cut.data.resize(static_cast<std::size_t>(cut.shape[0] * cut.shape[1]) * 4);
      EXPECT_FALSE(open(made)) << tensor.name;
    }
    test::made_heads made = whole;
    made.tensors.push_back({"layers.7.strange.weight", "F32", {1}, std::string(4, '\0')});
    expect_refused(made, error_code::unsupported, "layers.7.strange.weight");
  }
}

TEST(draft_heads, one_head_without_an_output_is_incomplete) {
  test::made_heads made = medusa();
  made.erase("1.1.weight");
  expect_refused(made, error_code::corrupt, "1.1.weight");
}

TEST(draft_heads, maps_of_a_trimmed_vocabulary_are_checked) {
  const auto with_ids = [](const std::function<void(std::vector<std::int64_t>&)>& spoil) {
    test::made_heads made = eagle({.ids = {3, 7, 100}});
    auto& map = made.tensor("d2t");
    std::vector<std::int64_t> values(3);
    std::memcpy(values.data(), map.data.data(), 24);
    spoil(values);
    map.shape = {static_cast<std::int64_t>(values.size())};
    map.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * 8);
    return made;
  };
  expect_refused(with_ids([](auto& v) { v[2] = 1000; }), error_code::corrupt, "entry 2 of \"d2t\" is 1000");
  expect_refused(with_ids([](auto& v) { v[0] = -1; }), error_code::corrupt, "entry 0");
  expect_refused(with_ids([](auto& v) { v[1] = 2; }), error_code::corrupt, "must ascend");
  expect_refused(with_ids([](auto& v) { v[1] = INT64_MAX; }), error_code::corrupt, "entry 1");
  expect_refused(with_ids([](auto& v) { v.pop_back(); }), error_code::corrupt, "2 entries");
  test::made_heads without = eagle({.ids = {3, 7, 100}});
  without.erase("d2t");
  expect_refused(without, error_code::invalid_argument, "vocabulary is 3");
}

TEST(draft_heads, configurations_that_cannot_be_are_refused) {
  const auto reworded = [](test::made_heads made, const std::string& from, const std::string& to) {
    made.reword(from, to);
    return made;
  };
  expect_refused(reworded(medusa(), ":3", ":0"), error_code::corrupt, "medusa_num_heads");
  expect_refused(reworded(medusa(), ":3", ":65"), error_code::corrupt, "medusa_num_heads");
  expect_refused(reworded(medusa(), ":3", ":\"many\""), error_code::corrupt, "medusa_num_heads");
  expect_refused(reworded(medusa(), ":3", ":4"), error_code::corrupt, "3.0.linear.weight");
  expect_refused(reworded(eagle(), "\"num_hidden_layers\":1", "\"num_hidden_layers\":2"), error_code::unsupported,
                 "only of 1");
  expect_refused(reworded(eagle(), "\"num_attention_heads\":4", "\"num_attention_heads\":3"), error_code::corrupt, "");
  expect_refused(reworded(eagle(), "\"rope_theta\":", "\"hidden_act\":\"gelu\",\"rope_theta\":"),
                 error_code::unsupported, "hidden_act");
  EXPECT_TRUE(open(reworded(eagle(), "[\"LlamaForCausalLMEagle3\"]", "7"))) << "other signs say what it is";
  test::made_heads nothing = medusa();
  nothing.config = "{}";
  expect_refused(nothing, error_code::unsupported, "neither a Medusa nor an EAGLE head");
  nothing.config = "[";
  expect_refused(nothing, error_code::corrupt, "config.json");
}

TEST(draft_heads, a_number_that_is_none_is_refused) {
  test::made_heads made = eagle();
  std::string& data = made.tensor("fc.weight").data;
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(data.data() + 40, &bad, sizeof bad);
  expect_refused(made, error_code::corrupt, "infinity or NaN");
}

TEST(draft_heads, pickled_weights_and_missing_files_are_told) {
  const test::temporary_folder folder;
  const auto problem = [&] { return open_draft_heads(folder / "heads", target()).error().message; };
  EXPECT_NE(problem().find("there is no such folder"), std::string::npos) << problem();
  test::write_heads(medusa(), folder / "heads");
  std::filesystem::remove(folder / "heads" / "model.safetensors");
  EXPECT_NE(problem().find("model.safetensors"), std::string::npos) << problem();
  test::write_file(folder / "heads" / "medusa_lm_head.pt", "pickle");
  EXPECT_NE(problem().find("pickled"), std::string::npos) << problem();
  std::filesystem::remove(folder / "heads" / "config.json");
  EXPECT_NE(problem().find("config.json"), std::string::npos) << problem();
}

/// Every byte of a small folder's files flipped in turn: refused or read, never anything else.
TEST(draft_heads, E2_damaged_bytes_never_crash) {
  std::mt19937 random(3);
  for (const test::made_heads& made : {medusa({.heads = 1, .ids = {1, 5}}), eagle({.ids = {1, 5}})}) {
    const std::string weights = test::safetensors_bytes(made.tensors);
    const std::size_t header =
        8 + static_cast<unsigned char>(weights[0]) + 256u * static_cast<unsigned char>(weights[1]);
    for (int i = 0; i < 400; ++i) {
      std::string config = made.config;
      std::string bytes = weights;
      config[random() % config.size()] = static_cast<char>(random());
      if (i % 2 == 0) bytes[random() % header] = static_cast<char>(random());
      safetensors_weights parsed;
      auto tensors =
          parse_safetensors({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "w", &parsed.integers);
      if (!tensors) continue;
      parsed.tensors = std::move(*tensors);
      const auto opened =
          parse_draft_heads(i % 2 == 0 ? made.config : config, "heads/config.json", std::move(parsed), target());
      if (!opened) {
        EXPECT_FALSE(opened.error().message.empty());
      }
    }
  }
}

}  // namespace
}  // namespace tandem::model
