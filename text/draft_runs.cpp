#include "text/draft_runs.hpp"

#include <algorithm>

#include "text/utf8.hpp"

namespace tandem::text {

void draft_runs::add_token(std::string_view bytes, bool drafted) {
  bytes_ += bytes;
  drafts_.insert(drafts_.end(), bytes.size(), drafted ? 1 : 0);
}

bool draft_runs::take_character(std::string_view character) {
  std::size_t size = character.size();
  if (!std::string_view(bytes_).starts_with(character)) {
    const bool stands_for_others = character == kReplacementUtf8 && !bytes_.empty();
    // Text that is not that of these tokens: what is left of them says nothing about it.
    size = stands_for_others ? read_utf8(bytes_, 0).length : bytes_.size();
    if (!stands_for_others) drafts_.assign(size, 0);
  }
  const auto end = drafts_.begin() + static_cast<std::ptrdiff_t>(size);
  const bool all = size > 0 && std::all_of(drafts_.begin(), end, [](std::uint8_t draft) { return draft != 0; });
  bytes_.erase(0, size);
  drafts_.erase(drafts_.begin(), end);
  return all;
}

std::vector<text_run> draft_runs::take(std::string_view text) {
  std::vector<text_run> runs;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, read_utf8(text, at).length);
    const bool drafted = take_character(character);
    if (runs.empty() || runs.back().drafted != drafted) runs.push_back({0, 0, drafted});
    runs.back().bytes += character.size();
    ++runs.back().characters;
    at += character.size();
  }
  return runs;
}

}  // namespace tandem::text
