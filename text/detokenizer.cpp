#include "text/detokenizer.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "text/utf8.hpp"

namespace tandem::text {

std::string utf8_assembler::push(std::string_view bytes, std::size_t held) {
  pending_.append(bytes);
  return take(pending_.size() - std::min(held, pending_.size()), false);
}

std::string utf8_assembler::finish(std::size_t text_bytes) {
  // Text already given out is never taken back.
  const std::size_t keep = text_bytes > emitted_ ? text_bytes - emitted_ : 0;
  if (keep < pending_.size()) pending_.resize(keep);
  return take(pending_.size(), true);
}

// Units that end within the first `raw_bytes` come out. The bytes behind decide what an unfinished character is.
std::string utf8_assembler::take(std::size_t raw_bytes, bool final) {
  TANDEM_ASSERT(raw_bytes <= pending_.size());
  std::string out;
  std::size_t at = 0;
  while (at < raw_bytes) {
    const utf8_unit unit = read_utf8(pending_, at);
    if (unit.truncated && !final) break;
    if (at + unit.length > raw_bytes) break;
    if (unit.valid) {
      out.append(pending_, at, unit.length);
    } else {
      out.append(kReplacementUtf8);
    }
    at += unit.length;
  }
  pending_.erase(0, at);
  emitted_ += at;
  return out;
}

}  // namespace tandem::text
