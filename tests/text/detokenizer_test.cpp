#include "text/detokenizer.hpp"

#include <gtest/gtest.h>

#include <random>

#include "text/utf8.hpp"

namespace tandem::text {
namespace {

constexpr std::size_t kAll = static_cast<std::size_t>(-1);

std::string one_shot(const std::string& bytes) {
  utf8_assembler whole;
  std::string text = whole.push(bytes);
  return text + whole.finish(kAll);
}

TEST(detokenizer, C1_characters_come_out_whole_and_without_delay) {
  const std::string text = "a\xC3\xA9\xE6\x8E\xA8\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7";
  utf8_assembler assembler;
  std::string joined;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string piece = assembler.push(text.substr(i, 1));
    EXPECT_TRUE(is_valid_utf8(piece));
    joined += piece;
    const bool boundary = i + 1 == text.size() || (static_cast<unsigned char>(text[i + 1]) & 0xC0) != 0x80;
    if (boundary) {
      EXPECT_EQ(joined, text.substr(0, i + 1)) << "held back without need";
    }
  }
  EXPECT_EQ(joined + assembler.finish(kAll), text);
}

TEST(detokenizer, C1_a_token_may_hold_a_character_and_the_start_of_the_next) {
  utf8_assembler assembler;
  EXPECT_EQ(assembler.push("\xC3\xA9\xF0\x9F"), "\xC3\xA9");
  EXPECT_EQ(assembler.push("\x91\xA9 \xC3"), "\xF0\x9F\x91\xA9 ");
  EXPECT_EQ(assembler.push("\xA9"), "\xC3\xA9");
}

TEST(detokenizer, ill_formed_bytes_become_one_replacement_per_maximal_subpart) {
  const std::string r(kReplacementUtf8);
  EXPECT_EQ(one_shot("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(one_shot("\xC0\xAF"), r + r);
  EXPECT_EQ(one_shot("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(one_shot("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(one_shot("\xE6\x8E"), r);
}

TEST(detokenizer, C1_joined_pieces_equal_the_one_shot_text_for_any_bytes_and_cuts) {
  std::mt19937 random(7);
  const std::string alphabet = "a \xC3\xA9\xE6\x8E\xA8\xF0\x9F\x91\xED\xA0\x80\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(1 + random() % 24, '\0');
    for (char& c : bytes) c = alphabet[random() % alphabet.size()];
    utf8_assembler assembler;
    std::string joined;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t step = std::min<std::size_t>(1 + random() % 4, bytes.size() - at);
      const std::string piece = assembler.push(std::string_view(bytes).substr(at, step), random() % 4);
      EXPECT_TRUE(is_valid_utf8(piece));
      joined += piece;
      at += step;
      EXPECT_EQ(assembler.pushed(), at);
    }
    EXPECT_EQ(joined + assembler.finish(kAll), one_shot(bytes));
  }
}

TEST(detokenizer, C3_held_bytes_stay_inside_until_released_or_cut) {
  utf8_assembler assembler;
  EXPECT_EQ(assembler.push("hello EN", 2), "hello ");
  EXPECT_EQ(assembler.push("X", 0), "ENX");
  EXPECT_EQ(assembler.push("END", 3), "");
  EXPECT_EQ(assembler.finish(9), "");
  utf8_assembler flushed;
  EXPECT_EQ(flushed.push("abEN", 2), "ab");
  EXPECT_EQ(flushed.finish(kAll), "EN");
}

TEST(detokenizer, a_cut_before_what_was_already_given_out_gives_nothing_more) {
  utf8_assembler assembler;
  EXPECT_EQ(assembler.push("abc"), "abc");
  EXPECT_EQ(assembler.finish(1), "");
}

TEST(detokenizer, an_end_in_the_middle_of_a_character_gives_a_replacement) {
  utf8_assembler assembler;
  EXPECT_EQ(assembler.push("a\xF0\x9F\x91"), "a");
  EXPECT_EQ(assembler.finish(kAll), std::string(kReplacementUtf8));
}

}  // namespace
}  // namespace tandem::text
