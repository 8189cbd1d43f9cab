#include "model/safetensors_shards.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <set>
#include <string>

#include "config/limits.hpp"
#include "model/folder_file.hpp"
#include "model/printable.hpp"
#include "model/safetensors_file.hpp"
#include "text/json_document.hpp"

namespace tandem::model {
namespace {

constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::size_t kAnySize = std::numeric_limits<std::size_t>::max();  // mapped, never allocated

/// Tensor names of each shard.
using shard_contents = std::map<std::string, std::set<std::string>>;

result<shard_contents> read_weight_map(text::json_field root, const std::string& path) {
  const text::json_field map = root["weight_map"];
  const auto corrupt = [&](const std::string& problem) {
    return fail(error_code::corrupt, fmt::format("{}: {}.", path, problem), path);
  };
  if (!map.is_object()) return corrupt("\"weight_map\" is missing or no object");
  shard_contents shards;
  std::set<std::string_view> names;
  for (const auto& member : map.members()) {
    std::string_view shard;
    const std::string name = printable(member.key, 120);
    if (member.value.get(shard)) return corrupt(fmt::format("the shard of tensor \"{}\" is no string", name));
    if (!names.insert(member.key).second) return corrupt(fmt::format("tensor \"{}\" is listed twice", name));
    if (names.size() > limits::kMaxTensors) return corrupt("it lists too many tensors");
    shards[std::string(shard)].insert(std::string(member.key));
  }
  if (shards.size() > limits::kMaxShards) return corrupt(fmt::format("it names {} shards, too many", shards.size()));
  return shards;
}

result<shard_contents> read_index(const std::filesystem::path& folder) {
  const auto file = open_folder_file(folder, kIndexName, limits::kMaxShardIndexBytes);
  if (!file) return tl::unexpected(file.error());
  const std::string path = (folder / kIndexName).string();
  const auto bytes = (*file)->bytes();
  text::json_document document;
  const auto root = document.parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  if (!root) return tl::unexpected(root.error());
  return read_weight_map(*root, path);
}

result<void> add_file(const std::filesystem::path& folder, const std::string& name, const safetensors_wishes& wishes,
                      safetensors_weights& weights, std::vector<tensor>& tensors) {
  auto file = open_folder_file(folder, name, kAnySize);
  if (!file) return tl::unexpected(file.error());
  std::vector<integer_array> integers;
  auto parsed = parse_safetensors((*file)->bytes(), (folder / name).string(), wishes.integers ? &integers : nullptr);
  if (!parsed) return tl::unexpected(parsed.error());
  tensors = std::move(*parsed);
  std::move(integers.begin(), integers.end(), std::back_inserter(weights.integers));
  weights.files.push_back(std::move(*file));
  return {};
}

// Exactly what the index says: a tensor more or less in a shard means that files of two downloads are mixed.
result<void> check_contents(const std::string& shard, const std::vector<tensor>& tensors,
                            std::set<std::string> expected) {
  for (const tensor& each : tensors) {
    if (expected.erase(each.name) == 1) continue;
    return fail(error_code::corrupt,
                fmt::format("{}: tensor \"{}\" is in this file but {} does not put it there.", each.file,
                            printable(each.name, 120), kIndexName),
                each.file);
  }
  if (expected.empty()) return {};
  return fail(error_code::corrupt,
              fmt::format("{}: tensor \"{}\" is missing, though {} puts it there.", shard,
                          printable(*expected.begin(), 120), kIndexName),
              shard);
}

}  // namespace

result<safetensors_weights> open_safetensors(const std::filesystem::path& folder, const safetensors_wishes& wishes) {
  safetensors_weights weights;
  std::error_code ignored;
  for (const std::string_view name : {kSingleName, wishes.other_name}) {
    if (name.empty() || !std::filesystem::exists(folder / name, ignored)) continue;
    if (auto added = add_file(folder, std::string(name), wishes, weights, weights.tensors); !added) {
      return tl::unexpected(added.error());
    }
    return weights;
  }
  if (!std::filesystem::exists(folder / kIndexName, ignored)) {
    return fail(error_code::not_found,
                fmt::format("{}: neither {} nor {} is in this folder.", folder.string(), kSingleName, kIndexName),
                folder.string());
  }
  auto shards = read_index(folder);
  if (!shards) return tl::unexpected(shards.error());
  for (auto& [name, expected] : *shards) {
    std::vector<tensor> tensors;
    const std::size_t integers_before = weights.integers.size();
    if (auto added = add_file(folder, name, wishes, weights, tensors); !added) return tl::unexpected(added.error());
    for (std::size_t i = integers_before; i < weights.integers.size(); ++i) expected.erase(weights.integers[i].name);
    if (auto same = check_contents((folder / name).string(), tensors, std::move(expected)); !same) {
      return tl::unexpected(same.error());
    }
    std::move(tensors.begin(), tensors.end(), std::back_inserter(weights.tensors));
  }
  return weights;
}

}  // namespace tandem::model
