#include "text/bad_words.hpp"

#include <utility>

namespace tandem::text {
namespace {

constexpr const char* kSpaces = " \t\n\v\f\r";

}  // namespace

result<std::vector<std::vector<token_id>>> encode_bad_words(const tokenizer& tokenizer,
                                                            std::span<const std::string> words) {
  std::vector<std::vector<token_id>> encoded;
  for (const std::string& word : words) {
    const std::size_t begin = word.find_first_not_of(kSpaces);
    if (begin == std::string::npos)
      return fail(error_code::invalid_argument, "bad_words holds a word of nothing but spaces; leave it out.",
                  "bad_words");
    const std::string bare = word.substr(begin);
    auto alone = tokenizer.encode(bare, true, false);
    if (!alone) return tl::unexpected(alone.error());
    auto behind_space = tokenizer.encode(" " + bare, true, false);
    if (!behind_space) return tl::unexpected(behind_space.error());
    if (alone->empty() || behind_space->empty()) continue;
    const bool another = behind_space->front() != alone->front() && behind_space->size() == alone->size();
    encoded.push_back(std::move(*alone));
    if (another) encoded.push_back(std::move(*behind_space));
  }
  return encoded;
}

}  // namespace tandem::text
