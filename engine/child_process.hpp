#pragma once
/// Runs another program to its end, with our standard streams.

#include <string>
#include <vector>

namespace tandem::engine {

inline constexpr int kChildNotFound = 127;

/// Exit status of `command` (found on PATH); kChildNotFound when it cannot be started; 128 + signal when one ended it.
int run_child(const std::vector<std::string>& command);

}  // namespace tandem::engine
