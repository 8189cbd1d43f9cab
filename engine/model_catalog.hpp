#pragma once
/// The models that have a name: what they are and which packages of the Python package index carry them.

#include <cstdint>
#include <span>
#include <string_view>

namespace tandem::engine {

struct known_model {
  std::string_view name;
  std::string_view summary;
  std::string_view licence;
  std::string_view package;  ///< "{}" stands for the part's number; without it there is one package
  std::string_view package_version;
  int parts = 1;
  std::uint64_t bytes = 0;  ///< of the joined file
  std::string_view sha256;  ///< of the joined file
};

std::span<const known_model> known_models();
/// Null when no model has this name.
const known_model* find_known_model(std::string_view name);

}  // namespace tandem::engine
