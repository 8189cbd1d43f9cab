#pragma once
/// --config FILE.yaml as a flat list of keys.

#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace tandem::config {

/// One key with its values (several for a YAML list). A nested map comes as one JSON text.
struct yaml_entry {
  std::string key;
  std::vector<std::string> values;
  int line = 0;
};

/// Errors: not_found, io, too_large, corrupt (with the line).
result<std::vector<yaml_entry>> read_yaml_file(const std::string& path);

}  // namespace tandem::config
