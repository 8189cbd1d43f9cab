#include <fmt/format.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

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
    } catch (const std::exception& problem) {
      return refuse(spec, problem.what());
    }
  }

 private:
  static result<void> check(const structured_spec& spec) {
    if (spec.kind == form::json_schema) return check_schema(spec.text, spec.strict);
    if (spec.kind == form::choice) return choice_tag(spec.choices).map([](const std::string&) {});
    return {};
  }

  xgrammar::CompiledGrammar compile_text(const structured_spec& spec) const {
    xgrammar::GrammarCompiler compiler(tokens(), 1, false);
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
  const xgrammar::TokenizerInfo& tokens() const {
    std::call_once(sorted_, [this] {
      tokens_.emplace(vocabulary_.bytes, xgrammar::VocabType::RAW, static_cast<int>(vocabulary_.bytes.size()),
                      vocabulary_.end_tokens);
    });
    return *tokens_;
  }

  grammar_vocabulary vocabulary_;
  mutable std::once_flag sorted_;
  mutable std::optional<xgrammar::TokenizerInfo> tokens_;
};

}  // namespace

std::shared_ptr<const grammar_compiler> make_grammar_compiler(grammar_vocabulary vocabulary) {
  return std::make_shared<const xgrammar_compiler>(std::move(vocabulary));
}

}  // namespace tandem
