#include "app/draft_painter.hpp"

#include <unistd.h>

#include <cstdlib>

namespace tandem::app {
namespace {

constexpr std::string_view kDraftColour = "\x1b[32m";
constexpr std::string_view kPlainColour = "\x1b[0m";

}  // namespace

bool output_takes_colours() {
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0');
}

std::string draft_painter::paint(std::string_view text, const std::vector<token_id>& tokens,
                                 const std::vector<std::uint8_t>& accepted) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    runs_.add_token(tokenizer_.token_bytes(tokens[i], skip_special_), i < accepted.size() && accepted[i] != 0);
  std::string shown;
  for (const text::text_run& run : runs_.take(text)) {
    if (run.drafted) shown += kDraftColour;
    shown += text.substr(0, run.bytes);
    if (run.drafted) shown += kPlainColour;
    text.remove_prefix(run.bytes);
  }
  return shown;
}

}  // namespace tandem::app
