#pragma once
/// Kinds of flags, with the refusals they share.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace tandem::config {

inline constexpr const char* kModelGroup = "Model";
inline constexpr const char* kSchedulingGroup = "Memory and scheduling";
inline constexpr const char* kSpeculationGroup = "Speculation";
inline constexpr const char* kServerGroup = "Server";
inline constexpr const char* kHidden = "";  // accepted or refused, but not shown in --help

/// A flag whose value is one of a few words.
template <class T>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, T& target, std::map<std::string, T> words,
                        const std::string& help) {
  std::string names;
  for (const auto& [word, value] : words) names += (names.empty() ? "" : "|") + word;
  const auto read = [flag, &target, words = std::move(words), names](const std::string& given) {
    const auto found = words.find(given);
    if (found == words.end())
      throw CLI::ValidationError(flag, "the value \"" + given + "\" is not one of " + names + ".");
    target = found->second;
  };
  return command.add_option_function<std::string>(flag, read, help)->type_name(names);
}

/// A flag of a later version: refused with a reason, so that nobody believes it had an effect.
inline void refuse_flag(CLI::App& command, const std::string& flag, const std::string& reason) {
  const auto refuse = [flag, reason](const std::string&) { throw CLI::ValidationError(flag, reason); };
  command.add_option_function<std::string>(flag, refuse)->group(kHidden);
}

template <class T>
CLI::Option* add_number(CLI::App& command, const std::string& flags, T& target, T least, T most,
                        const std::string& help) {
  return command.add_option(flags, target, help)
      ->check(CLI::Range(least, most).description(""))
      ->type_name(std::to_string(least) + ".." + std::to_string(most));
}

}  // namespace tandem::config
