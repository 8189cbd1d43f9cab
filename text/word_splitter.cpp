#include "text/word_splitter.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::text {
namespace {

// Unicode's White_Space. PCRE2's own \s adds U+180E, which the reference tokenizers do not count.
#define TANDEM_SPACE \
  "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

// GPT-2's pattern (github.com/openai/gpt-2, encoder.py) after a split into single digits: a digit ends the text before
// it, so the look-ahead of the space rule counts digits as an end. Possessive where nothing could be given back.
constexpr const char* kSmollmPattern =
    "\\p{N}"
    "|'(?:[stmd]|re|ve|ll)"
    "| ?\\p{L}++"
    "| ?[^" TANDEM_SPACE
    "\\p{L}\\p{N}]++"
    "|[" TANDEM_SPACE "]+(?![^" TANDEM_SPACE
    "\\p{N}])"
    "|[" TANDEM_SPACE "]++";

// The pattern in Qwen2's tokenizer.json.
constexpr const char* kQwen2Pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++"
    "|\\p{N}"
    "| ?[^" TANDEM_SPACE
    "\\p{L}\\p{N}]++[\\r\\n]*+"
    "|[" TANDEM_SPACE
    "]*[\\r\\n]++"
    "|[" TANDEM_SPACE "]+(?![^" TANDEM_SPACE
    "])"
    "|[" TANDEM_SPACE "]++";
#undef TANDEM_SPACE

struct code_free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct match_data_free {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct match_context_free {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

PCRE2_SPTR units(const char* text) {
  return reinterpret_cast<PCRE2_SPTR>(text);
}

}  // namespace

struct word_splitter::impl {
  std::unique_ptr<pcre2_code, code_free> code;
  std::unique_ptr<pcre2_match_context, match_context_free> context;
  bool compiled = false;  // to machine code
};

word_splitter::word_splitter(std::unique_ptr<const impl> state) : impl_(std::move(state)) {}
word_splitter::word_splitter(word_splitter&&) noexcept = default;
word_splitter& word_splitter::operator=(word_splitter&&) noexcept = default;
word_splitter::~word_splitter() = default;

result<word_splitter> word_splitter::make(pre_tokenizer kind) {
  const char* pattern = kind == pre_tokenizer::qwen2 ? kQwen2Pattern : kSmollmPattern;
  int code = 0;
  PCRE2_SIZE offset = 0;
  auto state = std::make_unique<impl>();
  state->code.reset(pcre2_compile(units(pattern), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code,
                                  &offset, nullptr));
  state->context.reset(pcre2_match_context_create(nullptr));
  if (!state->code || !state->context) {
    return fail(
        error_code::unsupported,
        "The installed PCRE2 library cannot compile the tokenizer's pattern; install one with Unicode support.");
  }
  state->compiled = pcre2_jit_compile(state->code.get(), PCRE2_JIT_COMPLETE) == 0;
  pcre2_set_match_limit(state->context.get(), limits::kMaxPatternSteps);
  pcre2_set_heap_limit(state->context.get(), limits::kMaxPatternHeapKiB);
  return word_splitter(std::move(state));
}

struct word_splitter::cursor::scratch {
  std::unique_ptr<pcre2_match_data, match_data_free> match;
};

word_splitter::cursor::cursor(const word_splitter& splitter, std::string_view valid_utf8)
    : splitter_(splitter), text_(valid_utf8), scratch_(std::make_unique<scratch>()) {
  scratch_->match.reset(pcre2_match_data_create(1, nullptr));
  TANDEM_ASSERT(scratch_->match != nullptr);
}
word_splitter::cursor::~cursor() = default;

result<std::string_view> word_splitter::cursor::next() {
  if (at_ == text_.size()) return std::string_view{};
  const impl& pattern = *splitter_.impl_;
  pcre2_match_data* const match = scratch_->match.get();
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (pattern.compiled) {
    found =
        pcre2_jit_match(pattern.code.get(), units(text_.data()), text_.size(), at_, 0, match, pattern.context.get());
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found = pcre2_match(pattern.code.get(), units(text_.data()), text_.size(), at_, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        match, pattern.context.get());
  }
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
    return fail(error_code::too_large, "The text is too irregular for the tokenizer's pattern; send it in parts.");
  }
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match);
  // Every character belongs to one of the alternatives; what should not happen becomes one word.
  const std::size_t end = found >= 0 && range[0] == at_ && range[1] > at_ ? range[1] : text_.size();
  const std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

}  // namespace tandem::text
