#pragma once
/// Answers as `generate --output json|jsonl` prints them. Definitions of the numbers: docs/api.md.

#include <nlohmann/json.hpp>

#include "core/result.hpp"
#include "engine/collected_answer.hpp"
#include "text/tokenizer.hpp"

namespace tandem::app {

/// {"id", "prompt_token_ids", "outputs", "usage", "timings"}; a refused request has "error" instead of the last four.
nlohmann::ordered_json answer_to_json(const nlohmann::json& id, const engine::collected_answer& answer,
                                      const text::tokenizer& tokenizer);
nlohmann::ordered_json error_to_json(const nlohmann::json& id, const error& failed);
/// One line; bytes that are not UTF-8 become U+FFFD.
std::string to_line(const nlohmann::ordered_json& value);

}  // namespace tandem::app
