#pragma once
/// The flags of the command line and the keys of --config, which are the same. Owner of the values: the `options`
/// given.

#include <string>

#include "config/options.hpp"
#include "core/result.hpp"

namespace CLI {
class App;
}

namespace tandem::config {

/// MODEL and every flag of the engine. `target` must outlive `command`.
void add_engine_flags(CLI::App& command, options& target);
/// What only `serve` takes: address, keys, names.
void add_server_flags(CLI::App& command, options& target);
/// What spans flags of `serve`. Error: invalid_argument naming the flag.
result<void> check_server_options(const server_options& server);
/// --log-level, --log-format, --config: for every command.
void add_common_flags(CLI::App& command, options& target);

/// After the command line was parsed: applies the keys of --config that no flag set, then checks what spans flags.
/// Errors: not_found, invalid_argument; one sentence naming the flag, key or file.
result<void> finish_options(CLI::App& command, options& target);

/// The refusal of an unknown flag or key, with the nearest known one when there is a near one.
std::string unknown_name_message(const CLI::App& command, const std::string& name, const std::string& where);

}  // namespace tandem::config
