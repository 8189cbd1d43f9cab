#pragma once
/// What every command of the binary shares: how it is declared, how it ends, how it complains.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.hpp"
#include "core/result.hpp"

namespace tandem::app {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // the shell's convention: 128 + SIGINT

/// The commands that were declared, each with what it does when it was the one typed.
using command_table = std::vector<std::pair<CLI::App*, std::function<int()>>>;

void add_serve(CLI::App& root, command_table& commands);
void add_generate(CLI::App& root, command_table& commands);
void add_chat(CLI::App& root, command_table& commands);
void add_inspect(CLI::App& root, command_table& commands);
void add_tokenize(CLI::App& root, command_table& commands);
void add_detokenize(CLI::App& root, command_table& commands);
void add_models(CLI::App& root, command_table& commands);
void add_bench(CLI::App& root, command_table& commands);
void add_perplexity(CLI::App& root, command_table& commands);

/// A command that takes unknown words too, so that main can answer them with a suggestion.
CLI::App* declare(CLI::App& root, const std::string& name, const std::string& summary);

/// Prints "tandem: <sentence>" to standard error; gives kExitUsage when `failed` is about a flag, else kExitFailed.
int report(const error& failed);
int report_usage(const std::string& sentence);

/// Applies --config, checks MODEL, sets up logging. Error: as finish_options.
result<void> prepare(CLI::App& command, config::options& options);

}  // namespace tandem::app
