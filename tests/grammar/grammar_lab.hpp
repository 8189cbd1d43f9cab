#pragma once
/// A compiler over the tokens of a made model, and what tests ask of it.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/sampling/constraint.hpp"
#include "grammar/make_compiler.hpp"
#include "tests/support/made_tokenizer.hpp"

namespace tandem::testing {

using form = structured_spec::form;

/// Single bytes, pieces that cross the seams of JSON, parts of characters, control tokens.
inline test::made_tokenizer lab_tokens() {
  return test::bytes_tokenizer({"{\"", "\": ", "\", \"", "true", "null", "\"a\"", "12", "ab", "  ", "\n  ", "}\n", "é",
                                "\xC3", "\xA9\"", "\xE2\x82", "abcabc", "]}", "\\\"", "-1.5e"});
}

inline grammar_vocabulary vocabulary_of(const test::made_tokenizer& tokens) {
  grammar_vocabulary vocabulary;
  for (const test::made_token& token : tokens.tokens)
    vocabulary.bytes.push_back(token.kind == text::token_kind::control ? std::string() : token.bytes);
  vocabulary.end_tokens = {tokens.eos, tokens.find("<|endoftext|>")};
  return vocabulary;
}

inline structured_spec spec_of(form kind, std::string text, bool strict = true) {
  structured_spec spec;
  spec.kind = kind;
  spec.text = std::move(text);
  spec.strict = strict;
  spec.field = "the_field";
  return spec;
}

struct grammar_lab {
  test::made_tokenizer tokens = lab_tokens();
  std::shared_ptr<const grammar_compiler> compiler = make_grammar_compiler(vocabulary_of(tokens));

  result<std::shared_ptr<const grammar>> compile(form kind, std::string text, bool strict = true) const {
    return compiler->compile(spec_of(kind, std::move(text), strict));
  }
  std::vector<std::uint32_t> mask(grammar_matcher& matcher) const {
    std::vector<std::uint32_t> bits(mask_words(tokens.tokens.size()));
    matcher.fill_mask(bits);
    return bits;
  }
  static bool bit(const std::vector<std::uint32_t>& bits, token_id id) {
    return (bits[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1U) != 0;
  }
  /// Whether the bytes of `text`, one token each, are a whole output.
  bool fits(const grammar& rules, std::string_view text) const {
    const auto matcher = rules.start();
    for (const char byte : text)
      if (!matcher->accept(static_cast<unsigned char>(byte))) return false;
    return matcher->is_complete() && bit(mask(*matcher), tokens.eos);
  }
  bool fits(form kind, const std::string& rules, std::string_view text) const {
    const auto compiled = compile(kind, rules);
    return compiled && fits(**compiled, text);
  }
};

}  // namespace tandem::testing
