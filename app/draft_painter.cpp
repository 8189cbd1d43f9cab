#include "app/draft_painter.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "text/utf8.hpp"

namespace tandem::app {
namespace {

constexpr std::string_view kDraftColour = "\x1b[32m";
constexpr std::string_view kPlainColour = "\x1b[0m";

}  // namespace

bool output_takes_colours() {
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0');
}

bool draft_painter::take_character(std::string_view character) {
  std::size_t size = character.size();
  if (!std::string_view(bytes_).starts_with(character)) {
    const bool stands_for_others = character == text::kReplacementUtf8 && !bytes_.empty();
    // Text that is not that of these tokens: what is left of them says nothing about it.
    size = stands_for_others ? text::read_utf8(bytes_, 0).length : bytes_.size();
    if (!stands_for_others) drafts_.assign(size, 0);
  }
  const auto end = drafts_.begin() + static_cast<std::ptrdiff_t>(size);
  const bool all = size > 0 && std::all_of(drafts_.begin(), end, [](std::uint8_t draft) { return draft != 0; });
  bytes_.erase(0, size);
  drafts_.erase(drafts_.begin(), end);
  return all;
}

std::string draft_painter::paint(std::string_view text, const std::vector<token_id>& tokens,
                                 const std::vector<std::uint8_t>& accepted) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view bytes = tokenizer_.token_bytes(tokens[i], skip_special_);
    bytes_ += bytes;
    drafts_.insert(drafts_.end(), bytes.size(), i < accepted.size() ? accepted[i] : std::uint8_t{0});
  }
  std::string shown;
  bool green = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, text::read_utf8(text, at).length);
    const bool draft = take_character(character);
    if (draft != green) shown += draft ? kDraftColour : kPlainColour;
    green = draft;
    shown += character;
    at += character.size();
  }
  if (green) shown += kPlainColour;
  return shown;
}

}  // namespace tandem::app
