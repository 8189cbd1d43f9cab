#pragma once
/// --show-drafts: an answer's text with what was drafted and accepted in green.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "text/draft_runs.hpp"
#include "text/tokenizer.hpp"

namespace tandem::app {

/// Whether standard output is a terminal and NO_COLOR is not set (no-color.org): else colours are left out.
bool output_takes_colours();

/// Of one choice, piece by piece. A character is green when all its bytes come from accepted drafts; a colour never
/// splits one. Without the colours the text is what it was.
class draft_painter {
 public:
  draft_painter(const text::tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  /// `text` is the next visible text, `tokens` those that came with it; a part of their bytes may only show later.
  std::string paint(std::string_view text, const std::vector<token_id>& tokens,
                    const std::vector<std::uint8_t>& accepted);

 private:
  const text::tokenizer& tokenizer_;
  bool skip_special_;
  text::draft_runs runs_;
};

}  // namespace tandem::app
