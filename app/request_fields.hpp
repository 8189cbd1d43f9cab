#pragma once
/// JSON fields → generation_request, for --prompts files and for the sampling flags, which have the same names.
/// Kinds are checked here; ranges are checked where requests are admitted.

#include <nlohmann/json.hpp>
#include <string>

#include "core/request.hpp"
#include "core/result.hpp"

namespace CLI {
class App;
}

namespace tandem::app {

/// `fields` holds one of prompt, prompt_token_ids, messages, and any sampling field. Null means absent; unknown fields
/// are ignored with a log line. Errors: invalid_argument naming the field.
result<generation_request> read_request(const nlohmann::ordered_json& fields);

/// Declares --max-tokens, --temperature, …; a flag that was given puts its field into `fields`.
void add_sampling_flags(CLI::App& command, nlohmann::ordered_json& fields);
/// Offline, --seed is the seed of every request, not only the one from which they draw.
void take_seed(const CLI::App& command, std::uint64_t seed, nlohmann::ordered_json& fields);

}  // namespace tandem::app
