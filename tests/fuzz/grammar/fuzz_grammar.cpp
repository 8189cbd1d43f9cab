// Compiles what a client could send and walks along what it allows. The first byte chooses the form.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/grammar/grammar_lab.hpp"

namespace {

using tandem::testing::form;

/// Takes tokens the bytes choose, as long as some may follow; mask and accept must agree.
void walk(const tandem::testing::grammar_lab& lab, tandem::grammar_matcher& matcher, const std::uint8_t* data,
          std::size_t size) {
  for (std::size_t i = 0; i < size && i < 32 && !matcher.has_ended(); ++i) {
    const auto bits = lab.mask(matcher);
    const auto wanted = static_cast<tandem::token_id>(data[i]);
    const bool allowed = tandem::testing::grammar_lab::bit(bits, wanted);
    if (matcher.accept(wanted) != allowed) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tandem::testing::grammar_lab kLab;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const form kinds[] = {form::json_schema, form::regex, form::ebnf, form::structural_tag, form::choice};
  tandem::structured_spec spec = tandem::testing::spec_of(kinds[data[0] % 5], text, data[0] < 128);
  if (spec.kind == form::choice) spec.choices = {text, text.substr(text.size() / 2)};
  const auto compiled = kLab.compiler->compile(spec);
  if (!compiled) return compiled.error().message.empty() ? std::abort(), 0 : 0;
  walk(kLab, *(*compiled)->start(), data, size);
  return 0;
}
