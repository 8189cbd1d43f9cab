#include "gpu/host/attention_plan.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "gpu/host/attention.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kRowsPerItem = 16;
constexpr std::int64_t kSharesPerThread = 4;  // so that threads end at about the same time

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int32_t last_position(const attention_item& item) {
  return item.first_position + item.rows - 1;
}

}  // namespace

attention_plan::attention_plan(const shape& of) : shape_(of) {
  TANDEM_ASSERT(of.kv_heads > 0 && of.group > 0 && of.value_stride > 0 && of.threads > 0 && of.arena_floats >= 0);
}

/// An item is cut when it costs at least two shares, and there are kSharesPerThread shares per thread.
std::int32_t attention_plan::max_cuts() const {
  return static_cast<std::int32_t>(kSharesPerThread / 2 * shape_.threads);
}

/// Positions, once per tile of queries.
std::int64_t attention_plan::cost_of(const attention_item& item) const {
  return divide_up(std::int64_t{item.rows} * shape_.group, kAttentionQueries) * (last_position(item) + 1);
}

void attention_plan::divide(std::span<const attention_rows> sequences) {
  whole_.clear();
  items_.clear();
  cuts_.clear();
  arena_used_ = 0;
  std::int64_t total = 0;
  for (std::size_t index = 0; index < sequences.size(); ++index) {
    const attention_rows& rows = sequences[index];
    for (std::int32_t row = 0; row < rows.rows; row += kRowsPerItem)
      for (std::int32_t head = 0; head < shape_.kv_heads; ++head) {
        attention_item item;
        item.sequence = static_cast<std::int32_t>(index);
        item.kv_head = head;
        item.first_row = rows.first_row + row;
        item.rows = std::min(kRowsPerItem, rows.rows - row);
        item.first_position = rows.first_position + row;
        item.end_partition = partitions_seen(last_position(item));
        total += cost_of(item);
        whole_.push_back(item);
      }
  }
  const std::int64_t share = divide_up(std::max<std::int64_t>(total, 1), kSharesPerThread * shape_.threads);
  for (const attention_item& item : whole_) add(item, share);
}

void attention_plan::add(const attention_item& item, std::int64_t share) {
  const std::int32_t partitions = item.end_partition;
  const std::int64_t wanted = std::min<std::int64_t>(partitions, cost_of(item) / share);
  const std::int64_t floats =
      std::int64_t{item.rows} * shape_.group * partitions * partial_floats(shape_.value_stride);
  if (shape_.threads == 1 || wanted < 2 || arena_used_ + floats > shape_.arena_floats) return items_.push_back(item);
  const auto length = static_cast<std::int32_t>(divide_up(partitions, wanted));
  attention_item piece = item;
  piece.cut = static_cast<std::int32_t>(cuts_.size());
  attention_cut cut{arena_used_, partitions, 0};
  for (std::int32_t first = 0; first < partitions; first += length) {
    piece.first_partition = first;
    piece.end_partition = std::min(partitions, first + length);
    items_.push_back(piece);
    ++cut.pieces;
  }
  cuts_.push_back(cut);
  arena_used_ += floats;
}

}  // namespace tandem::gpu::host
