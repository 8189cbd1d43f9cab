#include "model/tensor_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/limits.hpp"

namespace tandem::model {

tl::expected<tensor_extent, std::string> extent_of(std::span<const std::uint64_t> dimensions, tensor_kind kind) {
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
  if (dimensions.size() > limits::kMaxTensorDimensions) {
    return tl::unexpected(
        fmt::format("it has {} dimensions, at most {} are possible", dimensions.size(), limits::kMaxTensorDimensions));
  }
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : dimensions) {
    if (dimension == 0) return tl::unexpected(std::string("a dimension is zero"));
    if (dimension > kMostElements / elements) return tl::unexpected(std::string("its dimensions are far too large"));
    elements *= dimension;
  }
  const std::uint64_t columns = dimensions.empty() ? 1 : dimensions.back();
  const kind_traits& kind_of = traits(kind);
  const auto block_elements = static_cast<std::uint64_t>(kind_of.block_elements);
  if (columns % block_elements != 0) {
    return tl::unexpected(
        fmt::format("rows of {} values cannot be {}, whose blocks have {}", columns, kind_of.name, block_elements));
  }
  tensor_extent extent;
  extent.columns = static_cast<std::int64_t>(columns);
  extent.rows = static_cast<std::int64_t>(elements / columns);
  extent.bytes = elements / block_elements * static_cast<std::uint64_t>(kind_of.block_bytes);
  return extent;
}

std::optional<std::pair<const tensor*, const tensor*>> find_overlap(std::span<const tensor> tensors) {
  std::vector<const tensor*> by_offset;
  by_offset.reserve(tensors.size());
  for (const tensor& each : tensors) by_offset.push_back(&each);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const tensor* a, const tensor* b) { return a->file_offset < b->file_offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const tensor& before = *by_offset[i - 1];
    if (before.file_offset + before.data.size() > by_offset[i]->file_offset) return std::pair{&before, by_offset[i]};
  }
  return std::nullopt;
}

}  // namespace tandem::model
