#pragma once
/// --prompts FILE.jsonl: one JSON object a line.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/request.hpp"
#include "core/result.hpp"

namespace tandem::app {

/// One request with the id to print; `id` is the line's own, else its place in the file, from 0.
struct prompt_entry {
  nlohmann::json id;
  generation_request request;
};

/// `defaults`: sampling fields from flags; a line's own fields win. Empty lines are skipped. "-" is standard input.
/// Errors: not_found, corrupt, invalid_argument with file and line; too_large.
result<std::vector<prompt_entry>> read_prompts_file(const std::string& path, const nlohmann::ordered_json& defaults);

}  // namespace tandem::app
