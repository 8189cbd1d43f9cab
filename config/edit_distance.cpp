#include "config/edit_distance.hpp"

#include <algorithm>

namespace tandem::config {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const std::size_t width = right.size() + 1;
  std::vector<std::size_t> table((left.size() + 1) * width);
  const auto at = [&](std::size_t row, std::size_t column) -> std::size_t& { return table[row * width + column]; };
  for (std::size_t row = 0; row <= left.size(); ++row) at(row, 0) = row;
  for (std::size_t column = 0; column < width; ++column) at(0, column) = column;
  for (std::size_t row = 1; row <= left.size(); ++row) {
    for (std::size_t column = 1; column < width; ++column) {
      const std::size_t substitution = left[row - 1] == right[column - 1] ? 0 : 1;
      std::size_t best =
          std::min({at(row - 1, column) + 1, at(row, column - 1) + 1, at(row - 1, column - 1) + substitution});
      const bool swapped =
          row > 1 && column > 1 && left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1];
      if (swapped) best = std::min(best, at(row - 2, column - 2) + 1);
      at(row, column) = best;
    }
  }
  return at(left.size(), right.size());
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  // Names are short; a longer one is not a typing error of any of ours.
  constexpr std::size_t kLongestName = 64;
  if (name.size() > kLongestName) return {};
  const std::size_t near_enough = std::max<std::size_t>(1, name.size() / 3);
  std::string best;
  std::size_t best_distance = near_enough + 1;
  constexpr std::size_t kTellingBeginning = 4;  // so much of a name says which one is meant
  for (const std::string& candidate : candidates) {
    if (name.size() >= kTellingBeginning && candidate.starts_with(name)) return candidate;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace tandem::config
