#pragma once
/// Nearest names, for suggestions after a typing error.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::config {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `left` into `right`.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// The candidate nearest to `name` when it is near enough to be meant; else empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tandem::config
