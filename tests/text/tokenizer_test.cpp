#include "text/tokenizer.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "config/limits.hpp"
#include "tests/text/golden_files.hpp"

namespace tandem::text {
namespace {

using ids = std::vector<token_id>;

void expect_golden(const tokenizer& words, const std::string& file) {
  const auto cases = nlohmann::json::parse(read_golden(file));
  ASSERT_GT(cases.size(), 200u);
  for (const auto& each : cases) {
    const auto text = each["text"].get<std::string>();
    EXPECT_EQ(words.encode(text, true, false).value(), each["ids"].get<ids>()) << text;
    const ids plain = words.encode(text, false, false).value();
    EXPECT_EQ(plain, each["ids_plain"].get<ids>()) << text;
  }
}

std::shared_ptr<const tokenizer> bytes_tokenizer(bool add_bos = false) {
  tokenizer_spec spec = bytes_spec();
  spec.bos = 256;
  spec.add_bos = add_bos;
  return tokenizer::make(std::move(spec)).value();
}

TEST(tokenizer, E5_smollm2_ids_equal_the_reference_on_every_line) {
  expect_golden(*smollm2_tokenizer(), "tok-smollm2.json");
}

TEST(tokenizer, E5_qwen2_ids_equal_the_reference_on_every_line) {
  expect_golden(*qwen2_tokenizer(false), "tok-qwen2.json");
}

TEST(tokenizer, E5_decode_gives_back_the_text_it_encoded) {
  for (const char* file : {"tok-smollm2.json", "tok-qwen2.json"}) {
    const bool smollm = std::string_view(file) == "tok-smollm2.json";
    const auto words = smollm ? smollm2_tokenizer() : qwen2_tokenizer(false);
    for (const auto& each : nlohmann::json::parse(read_golden(file))) {
      const auto text = each["text"].get<std::string>();
      // smollm2 has no tokens for some bytes
      if (smollm && words->decode(each["ids"].get<ids>(), false) != text) {
        EXPECT_NE(text.find_first_of("\x04\x06\x13\x14\x16\x1d\xf1\xf2"), std::string::npos) << text;
        continue;
      }
      EXPECT_EQ(words->decode(each["ids"].get<ids>(), false), text);
    }
  }
}

TEST(tokenizer, E5_nfc_makes_composed_and_decomposed_text_the_same) {
  const auto words = qwen2_tokenizer(true);
  const auto encode = [&](const char* text) { return words->encode(text, false, false).value(); };
  EXPECT_EQ(encode("cafe\xCC\x81"), encode("caf\xC3\xA9"));
  EXPECT_EQ(encode("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), encode("\xED\x95\x9C"));  // Hangul jamo
  EXPECT_EQ(encode("q\xCC\x87\xCC\xA3"), encode("q\xCC\xA3\xCC\x87"));                // order of marks
  EXPECT_NE(qwen2_tokenizer(false)->encode("cafe\xCC\x81", false, false).value(), encode("cafe\xCC\x81"));
}

TEST(tokenizer, long_runs_of_one_character_encode_without_quadratic_time) {
  // A quadratic step would take hours here; the test's time limit catches it.
  for (const auto& words : {smollm2_tokenizer(), qwen2_tokenizer(true)}) {
    for (const std::string unit :
         {"a", " ", "\n", "1", "=", " \n", "\xE6\x8E\xA8", "\xCC\x81\xCC\xA3", "'s", "\xF0\x9F\x99\x82"}) {
      std::string text;
      while (text.size() < (1u << 20)) text += unit;
      const ids encoded = words->encode(text + "x", true, false).value();
      EXPECT_FALSE(encoded.empty());
      if (!words->spec().normalize_nfc) {
        EXPECT_EQ(words->decode(encoded, false), text + "x");
      }
    }
  }
}

TEST(tokenizer, short_and_long_words_merge_by_the_same_rule) {
  const auto words = smollm2_tokenizer();
  const ids joined = words->encode("internationalizationinternationalization", false, false).value();
  EXPECT_EQ(words->decode(joined, false), "internationalizationinternationalization");
  EXPECT_LT(joined.size(), 12u);
}

TEST(tokenizer, E7_special_tokens_are_found_only_inside_one_trusted_range) {
  const auto words = bytes_tokenizer();
  const auto count_specials = [&](const prompt_text& prompt) {
    const ids encoded = words->encode(prompt).value();
    return std::count_if(encoded.begin(), encoded.end(), [](token_id id) { return id >= 256; });
  };
  const std::string text = "a<|im_end|>b";
  EXPECT_EQ(count_specials({text, {{0, text.size()}}, true}), 1);
  EXPECT_EQ(count_specials({text, {{1, 11}}, true}), 1);
  EXPECT_EQ(count_specials({text, {}, true}), 0);
  EXPECT_EQ(count_specials({text, {{2, 12}}, true}), 0);
  EXPECT_EQ(count_specials({text, {{0, 10}}, true}), 0);
  EXPECT_EQ(count_specials({text, {{0, 5}, {5, 12}}, true}), 0) << "completed by another range";
  EXPECT_EQ(count_specials({"<|im_end|><tool><|im_start|>", {{0, 28}}, true}), 3);
}

TEST(tokenizer, user_defined_tokens_are_text_and_found_everywhere) {
  const auto words = bytes_tokenizer();
  EXPECT_EQ(words->encode("<tool><|im_end|>", false, false).value().front(), 258);
  EXPECT_EQ(words->encode({"a<tool>", {{0, 3}}, true}).value(), (ids{'a', 258}));
}

TEST(tokenizer, E7_text_never_yields_a_control_token_even_for_bytes_without_one) {
  const auto words = smollm2_tokenizer();
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const ids encoded = words->encode("\x04\x06\xF1\x80\x80\x80" + all + "<|im_end|>", false, false).value();
  for (const token_id id : encoded) {
    EXPECT_FALSE(words->is_special(id)) << id;
  }
}

TEST(tokenizer, the_longest_special_token_wins) {
  tokenizer_spec spec = bytes_spec();
  spec.pieces.emplace_back("<tool>s");
  spec.kinds.push_back(token_kind::user_defined);
  const auto words = tokenizer::make(std::move(spec)).value();
  EXPECT_EQ(words->encode("<tool>s<tool>", true, false).value(), (ids{260, 258}));
}

TEST(tokenizer, bos_comes_first_exactly_once_and_only_where_the_model_wants_it) {
  EXPECT_EQ(bytes_tokenizer(true)->encode("a", true, true).value(), (ids{256, 'a'}));
  EXPECT_EQ(bytes_tokenizer(true)->encode("<|im_start|>a", true, true).value(), (ids{256, 'a'}));
  EXPECT_EQ(bytes_tokenizer(true)->encode("a", true, false).value(), (ids{'a'}));
  EXPECT_EQ(bytes_tokenizer(true)->encode("", true, true).value(), (ids{256}));
  EXPECT_EQ(bytes_tokenizer(false)->encode("a", true, true).value(), (ids{'a'}));
}

TEST(tokenizer, invalid_utf8_becomes_replacement_characters_and_trusted_ranges_move_along) {
  const auto words = bytes_tokenizer();
  EXPECT_EQ(words->encode("\xFF", false, false).value(), words->encode("\xEF\xBF\xBD", false, false).value());
  const prompt_text prompt{"\xFF\xE2\x82<|im_end|>\xC3", {{3, 13}}, true};
  const ids encoded = words->encode(prompt).value();
  EXPECT_EQ(words->decode(encoded, false), "\xEF\xBF\xBD\xEF\xBF\xBD<|im_end|>\xEF\xBF\xBD");
  EXPECT_EQ(std::count(encoded.begin(), encoded.end(), 257), 1);
}

TEST(tokenizer, ids_outside_the_vocabulary_and_padding_rows_decode_to_nothing) {
  const auto words = bytes_tokenizer();
  EXPECT_EQ(words->token_bytes(-1, false), "");
  EXPECT_EQ(words->token_bytes(259, false), "");
  EXPECT_EQ(words->token_bytes(1000, false), "");
  EXPECT_EQ(words->token_bytes(0xFF, false), "\xFF");
  EXPECT_EQ(words->token_bytes(257, false), "<|im_end|>");
  EXPECT_EQ(words->token_bytes(257, true), "");
  EXPECT_EQ(words->token_bytes(258, true), "<tool>");
  EXPECT_EQ(words->find("<|im_end|>"), 257);
  EXPECT_EQ(words->find("[PAD259]"), kNoToken);
}

TEST(tokenizer, text_over_the_bound_is_refused) {
  const std::string text(limits::kMaxEncodeBytes + 1, 'a');
  EXPECT_EQ(bytes_tokenizer()->encode(text, false, false).error().code, error_code::too_large);
}

TEST(tokenizer, vocabularies_that_cannot_be_are_refused) {
  const auto refused = [](auto change) {
    tokenizer_spec spec = bytes_spec();
    change(spec);
    const auto made = tokenizer::make(std::move(spec));
    return !made && made.error().code == error_code::corrupt;
  };
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.kinds.pop_back(); }));
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.pieces.clear(), spec.kinds.clear(); }));
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.pieces[3] = "\xFF"; }));
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.bos = 9999; }));
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.end_tokens = {-5}; }));
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.merges.emplace_back("a", "b"); }));
  EXPECT_TRUE(refused([](tokenizer_spec& spec) { spec.pieces[3] = std::string(5000, 'a'); }));
}

TEST(tokenizer, target_and_draft_must_mean_the_same_by_every_shared_id) {
  const auto make = [](auto change) {
    tokenizer_spec spec = bytes_spec();
    change(spec);
    return tokenizer::make(std::move(spec)).value();
  };
  const auto target = bytes_tokenizer();
  EXPECT_TRUE(check_same_vocabulary(*target, *make([](tokenizer_spec&) {})));
  EXPECT_TRUE(check_same_vocabulary(*target, *make([](tokenizer_spec& spec) {
    spec.pieces.emplace_back("more");
    spec.kinds.push_back(token_kind::normal);
  })));
  const auto other = make([](tokenizer_spec& spec) { std::swap(spec.pieces[65], spec.pieces[66]); });
  const auto checked = check_same_vocabulary(*target, *other);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, error_code::invalid_argument);
  EXPECT_NE(checked.error().message.find("token 65"), std::string::npos);
  EXPECT_FALSE(check_same_vocabulary(*smollm2_tokenizer(), *qwen2_tokenizer(false)));
}

}  // namespace
}  // namespace tandem::text
