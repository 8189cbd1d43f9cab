#include "gpu/host/layer_executor.hpp"

#include <algorithm>
#include <cmath>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

const float* or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

attention_plan::shape plan_shape(const model_shape& model, const kv_cache& cache, std::int32_t threads) {
  attention_plan::shape shape;
  shape.kv_heads = model.kv_heads;
  shape.group = model.heads / model.kv_heads;
  shape.value_stride = cache.layer(0).value_stride;
  shape.threads = threads;
  shape.arena_floats = limits::kAttentionPartialFloats;
  return shape;
}

}  // namespace

float_buffer untouched_floats(std::int64_t rows, std::int64_t columns) {
  return std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(rows * columns));
}

layer_executor::layer_executor(const model_shape& shape, const model::rope_description& rope, kv_cache cache,
                               row_worker& work, options opts)
    : shape_(shape),
      cache_(std::move(cache)),
      work_(work),
      options_(opts),
      ops_(work.ops()),
      attention_(attention_for(work.set())),
      attention_plan_(plan_shape(shape_, cache_, work.team().threads())),
      rope_(rope, opts.max_positions) {
  const std::int64_t rows = work.max_rows();
  hidden_ = untouched_floats(rows, shape_.hidden);
  delta_ = untouched_floats(rows, shape_.hidden);
  normalized_ = untouched_floats(rows, shape_.hidden);
  query_key_value_ = untouched_floats(rows, shape_.qkv_width());
  attended_ = untouched_floats(rows, shape_.query_width());
  gate_up_ = untouched_floats(rows, 2 * std::int64_t{shape_.intermediate});
  gated_ = untouched_floats(rows, shape_.intermediate);
  if (work.team().threads() > 1) partials_ = untouched_floats(limits::kAttentionPartialFloats, 1);
  pieces_left_ = std::make_unique<std::atomic<std::int32_t>[]>(static_cast<std::size_t>(attention_plan_.max_cuts()));
  places_.reserve(static_cast<std::size_t>(rows));
}

/// Where each row's key and value go, and how attention is divided. Known pages are a promise of the scheduler.
std::int32_t layer_executor::place(std::span<const sequence_rows> sequences) {
  const std::int32_t block_size = cache_.shape().block_size;
  places_.clear();
  attention_rows_.clear();
  std::int32_t reached = 0;
  for (std::size_t index = 0; index < sequences.size(); ++index) {
    const sequence_rows& sequence = sequences[index];
    const auto count = static_cast<std::int32_t>(sequence.tokens.size());
    const std::int32_t first_row = static_cast<std::int32_t>(places_.size());
    TANDEM_ASSERT(sequence.first_position >= 0 && sequence.first_position + count <= options_.max_positions);
    reached = std::max(reached, sequence.first_position + count);
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t position = sequence.first_position + i;
      const auto page = static_cast<std::size_t>(position / block_size);
      TANDEM_ASSERT(page < sequence.table.size());
      places_.push_back({position, sequence.table[page], position % block_size});
    }
    attention_rows_.push_back({first_row, count, sequence.first_position});
  }
  attention_plan_.divide(attention_rows_);
  rows_ = static_cast<std::int32_t>(places_.size());
  TANDEM_ASSERT(rows_ <= work_.max_rows());
  rope_.reach(reached);
  return rows_;
}

void layer_executor::normalize_for(const packed_matrix& matrix, const std::vector<float>& norm, const float* delta,
                                   const std::vector<float>& bias) {
  const std::int32_t hidden = shape_.hidden;
  activations& input = work_.input_of(matrix, rows_);
  work_.for_each_row(rows_, [&](std::int32_t row) {
    const std::int64_t at = std::int64_t{row} * hidden;
    ops_.add_and_normalize(hidden_.get() + at, delta == nullptr ? nullptr : delta + at, or_null(bias), norm.data(),
                           shape_.norm_epsilon, hidden, normalized_.get() + at);
    input.convert(work_.set(), normalized_.get(), row, row + 1);
  });
}

void layer_executor::project(std::int32_t index, const packed_layer& layer) {
  work_.multiply(layer.query_key_value, rows_, query_key_value_.get());
  work_.for_each_row(rows_, [&](std::int32_t row) { prepare_heads(index, layer, row); });
}

void layer_executor::finish(std::int32_t index, const packed_layer& layer, std::span<const sequence_rows> sequences) {
  attend(index, sequences);
  activations& attended = work_.input_of(layer.output, rows_);
  work_.for_each_row(rows_, [&](std::int32_t row) { attended.convert(work_.set(), attended_.get(), row, row + 1); });
  work_.multiply(layer.output, rows_, delta_.get());

  normalize_for(layer.gate_up, layer.mlp_norm, delta_.get(), layer.output_bias);
  gate(layer);
  work_.multiply(layer.down, rows_, delta_.get());
}

/// The inputs of `down` from those of `gate_up`.
void layer_executor::gate(const packed_layer& layer) {
  if (row_worker::can_gate(layer.gate_up, layer.down)) return work_.multiply_gated(layer.gate_up, rows_, layer.down);
  const std::int32_t width = shape_.intermediate;
  work_.multiply(layer.gate_up, rows_, gate_up_.get());
  activations& gated = work_.input_of(layer.down, rows_);
  work_.for_each_row(rows_, [&](std::int32_t row) {
    ops_.gate(gate_up_.get() + std::int64_t{row} * 2 * width, width, gated_.get() + std::int64_t{row} * width);
    gated.convert(work_.set(), gated_.get(), row, row + 1);
  });
}

void layer_executor::add_delta() {
  work_.for_each_row(rows_, [&](std::int32_t row) {
    ops_.add(hidden(row), delta_.get() + std::int64_t{row} * shape_.hidden, shape_.hidden);
  });
}

/// Biases, head norms and rotation of one row's query, key and value; the key and value go to their page.
void layer_executor::prepare_heads(std::int32_t index, const packed_layer& layer, std::int32_t row) {
  const model_shape& s = shape_;
  const row_place& place = places_[static_cast<std::size_t>(row)];
  float* values = query_key_value_.get() + std::int64_t{row} * s.qkv_width();
  if (!layer.query_key_value_bias.empty()) ops_.add(values, layer.query_key_value_bias.data(), s.qkv_width());
  for (std::int32_t head = 0; head < s.heads + s.kv_heads; ++head) {
    float* channels = values + std::int64_t{head} * s.head_dim;
    const std::vector<float>& norm = head < s.heads ? layer.query_norm : layer.key_norm;
    if (!norm.empty())
      ops_.add_and_normalize(channels, nullptr, nullptr, norm.data(), s.norm_epsilon, s.head_dim, channels);
    ops_.rotate(channels, rope_.cosines(place.position), rope_.sines(place.position), rope_.pairs(),
                rope_.interleaved());
  }
  for (std::int32_t head = 0; head < s.kv_heads; ++head) {
    const float* key = values + s.query_width() + std::int64_t{head} * s.head_dim;
    cache_.store(index, place.block, place.offset, head, key, key + s.kv_width());
  }
}

attention_task layer_executor::task_of(const attention_item& item, const kv_layer_view& view,
                                       std::span<const sequence_rows> sequences) const {
  const model_shape& s = shape_;
  const std::int32_t group = s.heads / s.kv_heads;
  const std::int64_t channel = std::int64_t{item.kv_head} * group * s.head_dim;
  attention_task task;
  task.cache = view;
  task.table = sequences[static_cast<std::size_t>(item.sequence)].table.data();
  task.kv_head = item.kv_head;
  task.group = group;
  task.rows = item.rows;
  task.first_position = item.first_position;
  task.queries = query_key_value_.get() + std::int64_t{item.first_row} * s.qkv_width() + channel;
  task.query_stride = s.qkv_width();
  task.out = attended_.get() + std::int64_t{item.first_row} * s.query_width() + channel;
  task.out_stride = s.query_width();
  task.scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  task.unseen_positions = options_.unseen_positions;
  if (item.cut < 0) return task;
  const attention_cut& cut = attention_plan_.cuts()[static_cast<std::size_t>(item.cut)];
  task.partials = partials_.get() + cut.partials;
  task.partial_partitions = cut.partitions;
  return task;
}

/// The thread that ends a cut's last piece merges all of them; the order of merging is that of the partitions.
void layer_executor::run_item(const attention_item& item, const attention_task& task) {
  if (item.cut < 0) return attention_.attend(task);
  attention_.attend_partitions(task, item.first_partition, item.end_partition);
  if (pieces_left_[static_cast<std::size_t>(item.cut)].fetch_sub(1, std::memory_order_acq_rel) == 1)
    attention_.merge_partials(task);
}

void layer_executor::attend(std::int32_t index, std::span<const sequence_rows> sequences) {
  const kv_layer_view view = cache_.layer(index);
  const std::span<const attention_item> items = attention_plan_.items();
  const std::span<const attention_cut> cuts = attention_plan_.cuts();
  for (std::size_t i = 0; i < cuts.size(); ++i) pieces_left_[i].store(cuts[i].pieces, std::memory_order_relaxed);
  work_.team().parallel_for(static_cast<std::int64_t>(items.size()), 1,
                            [&](std::int64_t begin, std::int64_t end, std::int32_t) {
                              for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
                                run_item(items[i], task_of(items[i], view, sequences));
                            });
}

}  // namespace tandem::gpu::host
