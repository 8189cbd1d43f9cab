#include "app/draft_painter.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"
#include "text/utf8.hpp"

namespace tandem::app {
namespace {

/// One token a byte; 256 and above are pieces and special tokens.
std::shared_ptr<const text::tokenizer> bytes_of_text(const std::vector<std::string>& pieces = {}) {
  const test::temporary_folder folder;
  test::cycle_options options;
  options.tokenizer = test::bytes_tokenizer(pieces);
  test::write_gguf(test::make_cycle(options), folder / "model.gguf");
  return *text::tokenizer::make((*model::open_model(folder / "model.gguf"))->tokenizer());
}

std::vector<token_id> ids_of(std::string_view bytes) {
  std::vector<token_id> ids;
  for (const char byte : bytes) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

std::string without_colours(std::string text) {
  for (const std::string colour : {"\x1b[32m", "\x1b[0m"}) {
    for (std::size_t at = text.find(colour); at != std::string::npos; at = text.find(colour))
      text.erase(at, colour.size());
  }
  return text;
}

class draft_painter_test : public ::testing::Test {
 protected:
  std::shared_ptr<const text::tokenizer> tokenizer_ = bytes_of_text();
  draft_painter painter_{*tokenizer_, true};
};

TEST_F(draft_painter_test, a_run_of_drafts_is_one_green_piece) {
  EXPECT_EQ(painter_.paint("abcdef", ids_of("abcdef"), {0, 1, 1, 0, 1, 0}), "a\x1b[32mbc\x1b[0md\x1b[32me\x1b[0mf");
  EXPECT_EQ(painter_.paint("gh", ids_of("gh"), {1, 1}), "\x1b[32mgh\x1b[0m");
  EXPECT_EQ(painter_.paint("ij", ids_of("ij"), {0, 0}), "ij");
  EXPECT_EQ(painter_.paint("", {}, {}), "");
}

TEST_F(draft_painter_test, text_that_is_held_back_keeps_its_colour) {
  EXPECT_EQ(painter_.paint("a", ids_of("abc"), {0, 1, 0}), "a");
  EXPECT_EQ(painter_.paint("bcd", ids_of("d"), {1}), "\x1b[32mb\x1b[0mc\x1b[32md\x1b[0m");
}

TEST_F(draft_painter_test, a_character_is_green_only_as_a_whole_and_never_split) {
  EXPECT_EQ(painter_.paint("", ids_of("\xE6\x97"), {1, 1}), "");
  EXPECT_EQ(painter_.paint("日", ids_of("\xA5"), {1}), "\x1b[32m日\x1b[0m");
  EXPECT_EQ(painter_.paint("本x", ids_of("\xE6\x9C\xACx"), {1, 1, 0, 1}), "本\x1b[32mx\x1b[0m");
}

TEST_F(draft_painter_test, broken_bytes_have_the_colour_of_the_tokens_they_came_from) {
  EXPECT_EQ(painter_.paint("a\xEF\xBF\xBD"
                           "b",
                           ids_of("a\xFF"
                                  "b"),
                           {0, 1, 0}),
            "a\x1b[32m\xEF\xBF\xBD\x1b[0mb");
  EXPECT_EQ(painter_.paint("\xEF\xBF\xBD"
                           "c",
                           ids_of("\xE6\x97"
                                  "c"),
                           {1, 1, 0}),
            "\x1b[32m\xEF\xBF\xBD\x1b[0mc");
}

TEST_F(draft_painter_test, a_special_token_has_no_text_and_shifts_nothing) {
  EXPECT_EQ(painter_.paint("ab", {'a', tokenizer_->spec().end_tokens[0], 'b'}, {0, 1, 1}), "a\x1b[32mb\x1b[0m");
}

TEST_F(draft_painter_test, text_that_is_not_the_tokens_own_is_plain) {
  EXPECT_EQ(painter_.paint("xyz", ids_of("abc"), {1, 1, 1}), "xyz");
  EXPECT_EQ(painter_.paint("d", ids_of("d"), {1}), "\x1b[32md\x1b[0m");
}

TEST_F(draft_painter_test, without_its_colours_any_text_is_what_it_was) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    draft_painter painter(*tokenizer_, true);
    std::string bytes;
    for (int i = 0; i < 60; ++i)
      bytes += std::string(random() % 3 == 0 ? "é" : random() % 3 == 1 ? "👍" : "a").substr(random() % 2);
    std::string shown;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 6, bytes.size() - at);
      std::string text;  // as a client sees it, were every piece assembled alone
      const std::string part = bytes.substr(at, count);
      for (std::size_t i = 0; i < part.size();) {
        const auto unit = text::read_utf8(part, i);
        text::append_utf8(text, unit.code_point);
        i += unit.length;
      }
      std::vector<std::uint8_t> accepted(count);
      for (auto& each : accepted) each = static_cast<std::uint8_t>(random() % 2);
      const std::string painted = painter.paint(text, ids_of(part), accepted);
      EXPECT_EQ(without_colours(painted), text);
      EXPECT_TRUE(text::is_valid_utf8(painted));
      at += count;
    }
  }
}

}  // namespace
}  // namespace tandem::app
