#pragma once
/// Which characters of an answer were drafted and accepted, for those who show it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::text {

/// Neighbouring whole characters of visible text.
struct text_run {
  std::size_t bytes = 0;
  std::size_t characters = 0;
  bool drafted = false;
  bool operator==(const text_run&) const = default;
};

/// Of one choice, piece by piece. A character counts as drafted when all its bytes come from accepted drafts.
class draft_runs {
 public:
  /// The next token's bytes as a reader sees them (none for a special token that is not shown); a part of them may only
  /// show later.
  void add_token(std::string_view bytes, bool drafted);
  /// `text` is the next visible text. The runs cover it and alternate.
  std::vector<text_run> take(std::string_view text);

 private:
  /// Takes the bytes behind one character of visible text: true when all of them were drafts.
  bool take_character(std::string_view character);

  std::string bytes_;                 // of tokens, not shown yet
  std::vector<std::uint8_t> drafts_;  // per byte: 1 = of an accepted draft
};

}  // namespace tandem::text
