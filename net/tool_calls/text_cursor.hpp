#pragma once
/// Text that arrives in pieces, read from the front, with tags in it that may be cut anywhere.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "config/edge_limits.hpp"

namespace tandem::net {

inline constexpr std::string_view kSpaces = " \t\r\n";
inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";

/// Length of the longest end of `text` that begins `tag` without being all of it.
inline std::size_t begun_at_end(std::string_view text, std::string_view tag) {
  if (tag.empty()) return 0;
  for (std::size_t length = std::min(text.size(), tag.size() - 1); length > 0; --length)
    if (text.ends_with(tag.substr(0, length))) return length;
  return 0;
}

/// Length of the white space at the end of `text`, as far as a parser holds it back.
inline std::size_t spaces_at_end(std::string_view text) {
  const std::size_t words = text.find_last_not_of(kSpaces) + 1;
  return std::min(text.size() - words, limits::kMaxHeldSpaceBytes);
}

/// Owner: a parser. What was taken is let go of at the next add().
class text_cursor {
 public:
  void add(std::string_view text) {
    text_.erase(0, at_);
    at_ = 0;
    text_ += text;
  }
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  bool empty() const { return at_ == text_.size(); }
  /// Valid until the next add().
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = rest().substr(0, bytes);
    at_ += taken.size();
    return taken;
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace tandem::net
