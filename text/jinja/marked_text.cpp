#include "text/jinja/marked_text.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem::text::jinja {

marked_text::marked_text(std::string text, bool trusted) : text_(std::move(text)) {
  if (!text_.empty()) runs_.push_back({text_.size(), trusted});
}

bool marked_text::trusted() const {
  return std::all_of(runs_.begin(), runs_.end(), [](const run& each) { return each.trusted; });
}

void marked_text::append(std::string_view text, bool trusted) {
  if (text.empty()) return;
  text_.append(text);
  if (!runs_.empty() && runs_.back().trusted == trusted) {
    runs_.back().end = text_.size();
  } else {
    runs_.push_back({text_.size(), trusted});
  }
}

void marked_text::append(const marked_text& other) {
  other.for_each_run([this](std::string_view part, bool trusted) { append(part, trusted); });
}

marked_text marked_text::slice(std::size_t begin, std::size_t end) const {
  TANDEM_ASSERT(begin <= end && end <= size());
  marked_text out;
  auto at = std::upper_bound(runs_.begin(), runs_.end(), begin,
                             [](std::size_t place, const run& each) { return place < each.end; });
  while (begin < end) {
    TANDEM_ASSERT(at != runs_.end());
    const std::size_t stop = std::min(end, at->end);
    out.append(view().substr(begin, stop - begin), at->trusted);
    begin = stop;
    ++at;
  }
  return out;
}

std::vector<byte_range> marked_text::trusted_ranges() const {
  std::vector<byte_range> ranges;
  std::size_t begin = 0;
  for (const run& each : runs_) {
    if (each.trusted) ranges.push_back({begin, each.end});
    begin = each.end;
  }
  return ranges;
}

}  // namespace tandem::text::jinja
