#pragma once
/// How the attention of one forward is divided over threads. A pure decision: bits do not depend on it (attention.hpp).

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::gpu::host {

/// Consecutive rows of one sequence.
struct attention_rows {
  std::int32_t first_row = 0;  ///< of the forward
  std::int32_t rows = 0;
  std::int32_t first_position = 0;
};

/// What a thread claims at once: some rows of a sequence for one key/value head, over all positions they see or, when
/// `cut` is one, over partitions [first_partition, end_partition).
struct attention_item {
  std::int32_t sequence = 0;
  std::int32_t kv_head = 0;
  std::int32_t first_row = 0;  ///< of the forward
  std::int32_t rows = 0;
  std::int32_t first_position = 0;
  std::int32_t first_partition = 0;
  std::int32_t end_partition = 0;
  std::int32_t cut = -1;  ///< index in cuts()
};

/// Rows whose positions were divided. Whoever ends the last of its pieces merges them.
struct attention_cut {
  std::int64_t partials = 0;  ///< first float of its partial results in the arena
  std::int32_t partitions = 0;
  std::int32_t pieces = 0;
};

class attention_plan {
 public:
  struct shape {
    std::int32_t kv_heads = 0;
    std::int32_t group = 0;         ///< query heads per key/value head
    std::int32_t value_stride = 0;  ///< of the cache
    std::int32_t threads = 0;
    std::int64_t arena_floats = 0;  ///< for partial results
  };
  explicit attention_plan(const shape& of);

  /// Items for all rows. Those that would keep a thread busy while others idle are cut, as far as the arena reaches; with
  /// one thread none is. Valid until the next call.
  void divide(std::span<const attention_rows> sequences);
  std::span<const attention_item> items() const { return items_; }
  std::span<const attention_cut> cuts() const { return cuts_; }
  /// Cuts there can be at most.
  std::int32_t max_cuts() const;

 private:
  std::int64_t cost_of(const attention_item& item) const;
  void add(const attention_item& item, std::int64_t share);

  shape shape_;
  std::vector<attention_item> whole_;
  std::vector<attention_item> items_;
  std::vector<attention_cut> cuts_;
  std::int64_t arena_used_ = 0;
};

}  // namespace tandem::gpu::host
