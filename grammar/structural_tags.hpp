#pragma once
/// XGrammar's JSON descriptions of outputs, where they are shorter than a grammar.

#include <string>
#include <vector>

#include "core/result.hpp"

namespace tandem {

/// One of `choices`, byte for byte. Error: invalid_argument for text that is not UTF-8.
result<std::string> choice_tag(const std::vector<std::string>& choices);

/// The JSON schemas inside a structural tag, as texts. Error: invalid_argument for what is no JSON.
result<std::vector<std::string>> schemas_of_tag(const std::string& tag);

}  // namespace tandem
