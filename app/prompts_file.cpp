#include "app/prompts_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "app/request_fields.hpp"
#include "config/limits.hpp"

namespace tandem::app {
namespace {

/// Whether brackets nest deeper than limits::kMaxJsonDepth: copying and printing a document recurse.
bool nests_too_deeply(const std::string& text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\')
      ++at;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{'))
      ++depth;
    else if (!in_string && (c == ']' || c == '}') && depth > 0)
      --depth;
    if (depth > limits::kMaxJsonDepth) return true;
  }
  return false;
}

result<prompt_entry> read_line(const std::string& line, std::size_t place, const nlohmann::json& defaults) {
  if (nests_too_deeply(line))
    return fail(error_code::invalid_argument, fmt::format("nests deeper than {} levels.", limits::kMaxJsonDepth));
  const nlohmann::json given = nlohmann::json::parse(line, nullptr, false);
  if (given.is_discarded() || !given.is_object()) return fail(error_code::corrupt, "is not one JSON object.");
  nlohmann::json fields = defaults;
  const auto limit = given.find("max_completion_tokens");
  if (limit != given.end() && !limit->is_null()) fields.erase("max_tokens");  // a line's limit wins over the flags'
  fields.update(given);
  auto request = read_request(fields);
  if (!request) return tl::unexpected(request.error());
  const bool has_id = given.contains("id") && !given["id"].is_null();
  return prompt_entry{has_id ? given["id"] : nlohmann::json(place), std::move(*request)};
}

result<std::vector<prompt_entry>> read_lines(std::istream& lines, const std::string& path,
                                             const nlohmann::json& defaults) {
  std::vector<prompt_entry> entries;
  std::string line;
  std::size_t bytes = 0;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    bytes += line.size() + 1;
    if (bytes > limits::kMaxPromptsFileBytes || entries.size() >= limits::kMaxPromptsPerFile)
      return fail(error_code::too_large, fmt::format("--prompts: {} is too large at line {}; split it.", path, number));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto entry = read_line(line, entries.size(), defaults);
    if (!entry)
      return fail(entry.error().code, fmt::format("--prompts: {} line {}: {}", path, number, entry.error().message),
                  path);
    entries.push_back(std::move(*entry));
  }
  return entries;
}

}  // namespace

result<std::vector<prompt_entry>> read_prompts_file(const std::string& path, const nlohmann::json& defaults) {
  if (path == "-") return read_lines(std::cin, "standard input", defaults);
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(error_code::not_found, fmt::format("--prompts: cannot read {}.", path), path);
  return read_lines(file, path, defaults);
}

}  // namespace tandem::app
