#include "text/normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/assert.hpp"
#include "text/utf8.hpp"

namespace tandem::text {
namespace {

int combining_class(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  std::array<utf8proc_int32_t, 32> parts{};  // the longest canonical decomposition has 4 code points
  int boundary = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8_unit unit = read_utf8(text, at);
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(unit.code_point), parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundary);
    TANDEM_ASSERT(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()));
    out.insert(out.end(), parts.begin(), parts.begin() + count);
    at += unit.length;
  }
  return out;
}

// utf8proc's own ordering is quadratic in a run of marks, so runs are ordered here.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    auto end = std::find_if(begin, points.end(), [](auto point) { return combining_class(point) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

}  // namespace

bool is_trivially_nfc(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xCC; });
}

std::string to_nfc(std::string_view text) {
  auto points = decompose(text);
  order_marks(points);
  const auto count = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                              static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  TANDEM_ASSERT(count >= 0);
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(out, static_cast<std::uint32_t>(points[static_cast<std::size_t>(i)]));
  }
  return out;
}

}  // namespace tandem::text
