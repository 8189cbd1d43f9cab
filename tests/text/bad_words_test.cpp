#include "text/bad_words.hpp"

#include <gtest/gtest.h>

#include "tests/text/golden_files.hpp"

namespace tandem::text {
namespace {

using sequences = std::vector<std::vector<token_id>>;

sequences encoded(const tokenizer& words, std::vector<std::string> texts) {
  return encode_bad_words(words, texts).value();
}

TEST(bad_words, stand_alone_and_behind_a_space_where_that_is_as_many_tokens) {
  const auto words = smollm2_tokenizer();
  const sequences got = encoded(*words, {"hello"});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(words->decode(got[0], false), "hello");
  EXPECT_EQ(words->decode(got[1], false), " hello");
  EXPECT_EQ(got[0].size(), got[1].size());
  EXPECT_EQ(encoded(*words, {"  hello"}), got);  // leading spaces do not matter
  EXPECT_EQ(encoded(*words, {"hello", "hello"}).size(), 4u);
}

TEST(bad_words, whose_first_token_does_not_change_count_once) {
  tokenizer_spec spec = bytes_spec();
  const auto words = tokenizer::make(std::move(spec)).value();
  EXPECT_EQ(encoded(*words, {"ab"}), (sequences{{'a', 'b'}}));  // behind a space they are three tokens
}

TEST(bad_words, of_nothing_but_spaces_are_refused) {
  const auto words = smollm2_tokenizer();
  for (const std::string text : {" ", "\n\t "}) {
    const auto refused = encode_bad_words(*words, std::vector<std::string>{text});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().param, "bad_words");
  }
}

}  // namespace
}  // namespace tandem::text
