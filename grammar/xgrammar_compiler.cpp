#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config/structured_limits.hpp"
#include "core/sampling/constraint.hpp"
#include "grammar/make_compiler.hpp"
#include "grammar/schema_check.hpp"
#include "grammar/structural_tags.hpp"
#include "grammar/xgrammar_log.hpp"
#include "grammar/xgrammar_matcher.hpp"

namespace tandem {
namespace {

using form = structured_spec::form;

/// XGrammar's reasons may quote all of what was sent.
constexpr std::size_t kMostReasonBytes = 300;

tl::unexpected<error> refuse(const structured_spec& spec, std::string reason) {
  if (reason.size() > kMostReasonBytes) reason.resize(kMostReasonBytes);
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == ' ' || reason.back() == '.')) reason.pop_back();
  return fail(error_code::invalid_argument, fmt::format("'{}' cannot be used: {}.", spec.field, reason), spec.field);
}

xgrammar::CompiledGrammar compile_schema(xgrammar::GrammarCompiler& compiler, const std::string& schema) {
  constexpr bool kAnyWhitespace = true;
  constexpr bool kOnlyNamedProperties = true;  // unless the schema says otherwise
  return compiler.CompileJSONSchema(schema, kAnyWhitespace, std::nullopt, std::nullopt, kOnlyNamedProperties,
                                    limits::kMaxJsonWhitespace);
}

/// XGrammar lets control characters into JSON strings whose length is bounded, where JSON wants them escaped. So tokens
/// with any but line breaks are no part of JSON; tabs between its parts are not needed.
std::vector<std::string> json_bytes(std::vector<std::string> bytes) {
  const auto forbidden = [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r'; };
  for (std::string& token : bytes)
    if (std::any_of(token.begin(), token.end(), forbidden)) token.clear();
  return bytes;
}

class xgrammar_compiler final : public grammar_compiler {
 public:
  explicit xgrammar_compiler(grammar_vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  result<std::shared_ptr<const grammar>> compile(const structured_spec& spec) const override {
    try {
      if (auto fits = check(spec); !fits) return refuse(spec, fits.error().message);
      const xgrammar_warnings warnings;
      auto compiled = std::make_shared<const xgrammar_grammar>(compile_text(spec));
      // What is passed over in a regular expression or a grammar would let wrong outputs through.
      if (spec.strict && !warnings.all().empty()) return refuse(spec, warnings.all().front());
      if (!allows_anything(*compiled)) return refuse(spec, "no text of this model's tokens fits it");
      return compiled;
    } catch (const std::bad_alloc&) {
      throw;  // not the spec's fault
    } catch (const std::exception& problem) {
      return refuse(spec, problem.what());
    }
  }

 private:
  static result<void> check_tag(const structured_spec& spec) {
    const auto schemas = schemas_of_tag(spec.text);
    if (!schemas) return tl::unexpected(schemas.error());
    for (const std::string& schema : *schemas)
      if (auto fits = check_schema(schema, spec.strict); !fits) return fits;
    return {};
  }

  static result<void> check(const structured_spec& spec) {
    if (spec.kind == form::json_schema) return check_schema(spec.text, spec.strict);
    if (spec.kind == form::structural_tag) return check_tag(spec);
    if (spec.kind == form::choice) return choice_tag(spec.choices).map([](const std::string&) {});
    return {};
  }

  xgrammar::CompiledGrammar compile_text(const structured_spec& spec) const {
    xgrammar::GrammarCompiler compiler(tokens_for(spec.kind), 1, false);
    switch (spec.kind) {
      case form::json_object:
        return compile_schema(compiler, R"({"type": "object", "additionalProperties": true})");
      case form::json_schema:
        return compile_schema(compiler, spec.text);
      case form::regex:
        return compiler.CompileRegex(spec.text);
      case form::choice:
        return compiler.CompileStructuralTag(*choice_tag(spec.choices));
      case form::ebnf:
        return compiler.CompileGrammar(spec.text);
      case form::structural_tag:
        return compiler.CompileStructuralTag(spec.text);
    }
    throw std::logic_error("an unknown form");
  }

  bool allows_anything(const grammar& compiled) const {
    std::vector<std::uint32_t> bits(mask_words(vocabulary_.bytes.size()));
    compiled.start()->fill_mask(bits);
    return std::any_of(bits.begin(), bits.end(), [](std::uint32_t word) { return word != 0; });
  }

  /// Sorting them takes a while, and most servers are never asked for a grammar.
  const xgrammar::TokenizerInfo& tokens_for(form kind) const {
    const bool json = kind == form::json_object || kind == form::json_schema;
    lazy_tokens& wanted = json ? json_tokens_ : all_tokens_;
    std::call_once(wanted.sorted, [&] {
      const std::vector<std::string> bytes = json ? json_bytes(vocabulary_.bytes) : vocabulary_.bytes;
      wanted.tokens.emplace(bytes, xgrammar::VocabType::RAW, static_cast<int>(bytes.size()), vocabulary_.end_tokens);
    });
    return *wanted.tokens;
  }

  struct lazy_tokens {
    std::once_flag sorted;
    std::optional<xgrammar::TokenizerInfo> tokens;
  };
  grammar_vocabulary vocabulary_;
  mutable lazy_tokens all_tokens_;
  mutable lazy_tokens json_tokens_;
};

}  // namespace

std::shared_ptr<const grammar_compiler> make_grammar_compiler(grammar_vocabulary vocabulary) {
  return std::make_shared<const xgrammar_compiler>(std::move(vocabulary));
}

}  // namespace tandem
