#pragma once
/// Text that remembers, byte by byte, who wrote it: the template (trusted) or the request.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.hpp"

namespace tandem::text::jinja {

class marked_text {
 public:
  marked_text() = default;
  marked_text(std::string text, bool trusted);

  std::string_view view() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  bool trusted() const;  ///< all of it

  void append(std::string_view text, bool trusted);
  void append(const marked_text& other);
  /// Bytes [begin, end).
  marked_text slice(std::size_t begin, std::size_t end) const;
  /// Same marks, each stretch of equal trust rewritten by `change` (string_view → string).
  template <class Change>
  marked_text mapped(Change change) const {
    marked_text out;
    for_each_run([&](std::string_view part, bool trusted) { out.append(change(part), trusted); });
    return out;
  }
  template <class Visit>
  void for_each_run(Visit visit) const {
    std::size_t begin = 0;
    for (const run& each : runs_) {
      visit(view().substr(begin, each.end - begin), each.trusted);
      begin = each.end;
    }
  }
  /// Ascending, disjoint, merged.
  std::vector<byte_range> trusted_ranges() const;
  /// Gives the text away.
  std::string take_text() && { return std::move(text_); }
  std::size_t memory_bytes() const { return text_.capacity() + runs_.capacity() * sizeof(run); }

 private:
  struct run {
    std::size_t end = 0;
    bool trusted = false;
  };
  std::string text_;
  std::vector<run> runs_;  // neighbours differ in trust; the last ends at size()
};

}  // namespace tandem::text::jinja
