#pragma once
/// Checks that every file format shares: shapes that can be, bytes that lie inside the file and belong to one tensor.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Shape as tensor stores it, and the bytes it needs.
struct tensor_extent {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::uint64_t bytes = 0;
};
/// `dimensions` from the outermost to the innermost; the innermost is `columns`, the product of the others `rows`.
/// The error is what is wrong, for the caller to say where.
tl::expected<tensor_extent, std::string> extent_of(std::span<const std::uint64_t> dimensions, tensor_kind kind);

/// The first two tensors of one file whose bytes overlap, if any.
std::optional<std::pair<const tensor*, const tensor*>> find_overlap(std::span<const tensor> tensors);

/// Offset in the file of the first value or block scale that is infinite or not a number, if any. Reads all of it.
std::optional<std::uint64_t> find_not_finite(const tensor& weight);

}  // namespace tandem::model
