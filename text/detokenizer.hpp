#pragma once
/// Incremental token → text of one sequence. Only whole, valid UTF-8 characters ever come out.

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::text {

/// Owner: one sequence's stream. Not thread-safe.
///
/// Bytes go in token by token; text comes out as soon as its characters are complete. Bytes that can no longer become a
/// character turn into U+FFFD, exactly as a one-shot decode of all bytes would turn them (maximal subpart rule of the
/// Unicode standard, chapter 3.9), so the joined pieces equal the plain answer.
class utf8_assembler {
 public:
  /// Takes `bytes` and returns what is now complete, except the last `held` raw bytes that arrived so far (a possible
  /// stop string) which stay inside.
  std::string push(std::string_view bytes, std::size_t held = 0);
  /// End of the sequence: keeps the first `text_bytes` raw bytes pushed since construction, flushes all that remains
  /// of them (an unfinished character becomes U+FFFD).
  std::string finish(std::size_t text_bytes);
  /// Raw bytes pushed so far.
  std::size_t pushed() const { return emitted_ + pending_.size(); }

 private:
  std::string take(std::size_t raw_bytes, bool final);
  std::string pending_;
  std::size_t emitted_ = 0;  // raw bytes already turned into text
};

}  // namespace tandem::text
