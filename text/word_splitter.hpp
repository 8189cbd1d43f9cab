#pragma once
/// Cuts text into the words within which BPE merges.

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/result.hpp"
#include "text/tokenizer_spec.hpp"

namespace tandem::text {

/// One compiled pattern; immutable, used from many threads through cursors.
class word_splitter {
 public:
  static result<word_splitter> make(pre_tokenizer kind);
  word_splitter(word_splitter&&) noexcept;
  word_splitter& operator=(word_splitter&&) noexcept;
  ~word_splitter();

  /// Walks one text. Not thread-safe; must not outlive the splitter or the text.
  class cursor {
   public:
    cursor(const word_splitter& splitter, std::string_view valid_utf8);
    ~cursor();
    cursor(const cursor&) = delete;
    cursor& operator=(const cursor&) = delete;
    /// The next word; empty at the end. Words joined give the text. Error: too_large (the pattern's limits).
    result<std::string_view> next();

   private:
    struct scratch;
    const word_splitter& splitter_;
    std::string_view text_;
    std::size_t at_ = 0;
    std::unique_ptr<scratch> scratch_;
  };

 private:
  struct impl;
  explicit word_splitter(std::unique_ptr<const impl> state);
  std::unique_ptr<const impl> impl_;
};

}  // namespace tandem::text
