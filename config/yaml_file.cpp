#include "config/yaml_file.hpp"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/limits.hpp"

namespace tandem::config {
namespace {

using json = nlohmann::json;

json scalar_to_json(const YAML::Node& node) {
  // A quoted scalar carries the tag "!" and stays text.
  if (node.Tag() != "!") {
    const json value = json::parse(node.Scalar(), nullptr, false);
    if (!value.is_discarded()) return value;
  }
  return node.Scalar();
}

/// Aliases of aliases grow exponentially when they are written out, so what is written out is counted.
class node_reader {
 public:
  yaml_entry entry(const YAML::Node& key, const YAML::Node& value) {
    yaml_entry entry{key.as<std::string>(), {}, key.Mark().line + 1};
    if (value.IsNull()) return entry;
    if (!value.IsSequence()) {
      entry.values.push_back(text(value));
      return entry;
    }
    for (const YAML::Node& item : value) entry.values.push_back(text(item));
    return entry;
  }

 private:
  std::string text(const YAML::Node& node) {
    if (!node.IsScalar()) return to_json(node, 0).dump();
    count(node);
    return node.Scalar();
  }

  void count(const YAML::Node& node) {
    if (++values_ > limits::kMaxConfigValues) throw YAML::Exception(node.Mark(), "too many values, or endless aliases");
  }

  json to_json(const YAML::Node& node, std::size_t depth) {
    if (depth > limits::kMaxJsonDepth) throw YAML::Exception(node.Mark(), "nested too deeply");
    count(node);
    if (node.IsScalar()) return scalar_to_json(node);
    if (node.IsSequence()) {
      json list = json::array();
      for (const YAML::Node& item : node) list.push_back(to_json(item, depth + 1));
      return list;
    }
    if (!node.IsMap()) return nullptr;
    json object = json::object();
    for (const auto& entry : node) object[entry.first.as<std::string>()] = to_json(entry.second, depth + 1);
    return object;
  }

  std::size_t values_ = 0;
};

result<std::string> read_bounded(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) return fail(error_code::not_found, "--config: cannot read " + path + ": " + failed.message() + ".", path);
  if (size > limits::kMaxConfigFileBytes)
    return fail(error_code::too_large, "--config: " + path + " is larger than a configuration can be.", path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return fail(error_code::io, "--config: cannot read " + path + ".", path);
  return text.str();
}

}  // namespace

result<std::vector<yaml_entry>> read_yaml_file(const std::string& path) {
  const auto text = read_bounded(path);
  if (!text) return tl::unexpected(text.error());
  try {
    const YAML::Node root = YAML::Load(*text);
    std::vector<yaml_entry> entries;
    if (root.IsNull()) return entries;
    if (!root.IsMap())
      return fail(error_code::corrupt, "--config: " + path + " must be a map of flag names to values.", path);
    node_reader reader;
    for (const auto& entry : root) entries.push_back(reader.entry(entry.first, entry.second));
    return entries;
  } catch (const YAML::Exception& problem) {
    return fail(error_code::corrupt,
                "--config: " + path + " line " + std::to_string(problem.mark.line + 1) + ": " + problem.msg + ".",
                path);
  }
}

}  // namespace tandem::config
