/// The `tandem` binary: declares the commands, runs the one that was typed.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "app/command.hpp"
#include "app/version.hpp"
#include "config/edit_distance.hpp"
#include "config/flags.hpp"

namespace tandem::app {
namespace {

int refuse_unknown_command(const CLI::App& root, const command_table& commands, const std::string& word) {
  if (word.rfind('-', 0) == 0) return report_usage(config::unknown_name_message(root, word, ""));
  for (const char* later : {"worker", "router"})
    if (word == later) return report_usage(fmt::format("`tandem {}` is not offered yet.", word));
  std::vector<std::string> names;
  for (const auto& [command, action] : commands)
    if (command->get_parent() == &root) names.push_back(command->get_name());
  const std::string near = config::nearest_name(word, names);
  return report_usage(fmt::format("There is no command \"{}\"{}", word,
                                  near.empty() ? "; see tandem --help." : "; did you mean \"" + near + "\"?"));
}

int run_typed_command(const CLI::App& root, const command_table& commands) {
  for (const auto& [command, action] : commands) {
    if (!command->parsed()) continue;
    const std::vector<std::string> unknown = command->remaining();
    if (unknown.empty()) return action();
    for (const std::string& word : unknown)
      if (word.rfind('-', 0) == 0) return report_usage(config::unknown_name_message(*command, word, ""));
    return report_usage(
        fmt::format("\"{}\" was not expected; see tandem {} --help.", unknown.front(), command->get_name()));
  }
  if (!root.remaining().empty()) return refuse_unknown_command(root, commands, root.remaining().front());
  fmt::print("{}", root.help());
  return kExitUsage;
}

/// What was typed, last word first as the parser wants it; `tandem help serve` is `tandem serve --help`.
std::vector<std::string> typed_words(int argument_count, char** arguments) {
  std::vector<std::string> words(arguments + std::min(argument_count, 1), arguments + argument_count);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int run(int argument_count, char** arguments) {
  CLI::App root{"tandem serves language models: `tandem serve smollm2-135m`, then ask over HTTP.", "tandem"};
  root.set_version_flag("--version", version_text(), "Version, CPU features, CUDA");
  root.allow_extras();
  root.require_subcommand(0, 1);
  command_table commands;
  for (const auto add :
       {add_serve, add_generate, add_chat, add_inspect, add_tokenize, add_detokenize, add_models, add_bench,
        add_perplexity})
    add(root, commands);
  try {
    root.parse(typed_words(argument_count, arguments));
  } catch (const CLI::Success& wanted) {  // --help, --version
    return root.exit(wanted);
  } catch (const CLI::ParseError& problem) {
    return report_usage(problem.what());
  }
  return run_typed_command(root, commands);
}

}  // namespace
}  // namespace tandem::app

int main(int argument_count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is a failed write, not the end of us
  try {
    return tandem::app::run(argument_count, arguments);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "tandem: {}\n", problem.what());
    return tandem::app::kExitFailed;
  }
}
