#include "gpu/host/model_executor.hpp"

#include <algorithm>
#include <cmath>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int64_t kRowGrain = 4;  // rows: less is not worth waking a thread

std::unique_ptr<float[]> untouched_floats(std::int64_t rows, std::int64_t columns) {
  return std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(rows * columns));
}

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

model_executor::model_executor(packed_model model, kv_cache cache, compute_team& team, options opts)
    : model_(std::move(model)),
      cache_(std::move(cache)),
      team_(team),
      options_(opts),
      ops_(row_ops_for(opts.set)),
      attention_(attention_for(opts.set)),
      attention_plan_(plan_shape(model_.shape, cache_, team.threads())),
      rope_(model_.rope, opts.max_positions),
      max_logit_rows_(std::min(limits::kMaxLogitRows, opts.max_rows)) {
  const model_shape& s = model_.shape;
  const std::int64_t rows = opts.max_rows;
  hidden_ = untouched_floats(rows, s.hidden);
  delta_ = untouched_floats(rows, s.hidden);
  normalized_ = untouched_floats(rows, s.hidden);
  query_key_value_ = untouched_floats(rows, s.qkv_width());
  attended_ = untouched_floats(rows, s.query_width());
  gate_up_ = untouched_floats(rows, 2 * std::int64_t{s.intermediate});
  gated_ = untouched_floats(rows, s.intermediate);
  logits_ = untouched_floats(max_logit_rows_, s.vocabulary_size);
  if (team.threads() > 1) partials_ = untouched_floats(limits::kAttentionPartialFloats, 1);
  pieces_left_ = std::make_unique<std::atomic<std::int32_t>[]>(static_cast<std::size_t>(attention_plan_.max_cuts()));
  places_.reserve(static_cast<std::size_t>(rows));
  tokens_.reserve(static_cast<std::size_t>(rows));
  for (const packed_layer& layer : model_.layers)
    for (const packed_matrix* matrix : {&layer.query_key_value, &layer.output, &layer.gate_up, &layer.down})
      input_of(*matrix);
  input_of(model_.head);
}

activations& model_executor::input_of(const packed_matrix& matrix) {
  const auto columns = static_cast<std::int32_t>(matrix.columns());
  const auto key = std::pair(matrix.wants(), columns);
  const auto found = inputs_.find(key);
  if (found != inputs_.end()) return found->second;
  return inputs_.emplace(key, activations(matrix.wants(), options_.max_rows, columns)).first->second;
}

template <class Body>
void model_executor::for_each_row(std::int32_t rows, Body body) {
  team_.parallel_for(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    for (auto row = static_cast<std::int32_t>(begin); row < static_cast<std::int32_t>(end); ++row) body(row);
  });
}

void model_executor::forward(std::span<const sequence_rows> sequences) {
  place_rows(sequences);
  if (rows_ == 0) return;
  look_up_tokens(sequences);
  for (std::int32_t layer = 0; layer < static_cast<std::int32_t>(model_.layers.size()); ++layer)
    run_layer(layer, sequences);
  for_each_row(rows_, [&](std::int32_t row) {
    const std::int64_t at = std::int64_t{row} * model_.shape.hidden;
    ops_.add(hidden_.get() + at, delta_.get() + at, model_.shape.hidden);
  });
  keep_features_entering(static_cast<std::int32_t>(model_.layers.size()));
}

void model_executor::keep_features(std::vector<std::int32_t> layers) {
  const auto most = static_cast<std::int32_t>(model_.layers.size());
  for (const std::int32_t layer : layers) TANDEM_ASSERT(layer >= 0 && layer <= most);
  feature_layers_ = std::move(layers);
  features_ = untouched_floats(options_.max_rows, feature_width());
}

std::int32_t model_executor::feature_width() const {
  return static_cast<std::int32_t>(feature_layers_.size()) * model_.shape.hidden;
}

/// hidden_ holds the state that enters `layer`.
void model_executor::keep_features_entering(std::int32_t layer) {
  const std::int32_t hidden = model_.shape.hidden;
  for (std::size_t i = 0; i < feature_layers_.size(); ++i) {
    if (feature_layers_[i] != layer) continue;
    const std::int64_t column = static_cast<std::int64_t>(i) * hidden;
    for_each_row(rows_, [&](std::int32_t row) {
      std::copy_n(hidden_.get() + std::int64_t{row} * hidden, hidden,
                  features_.get() + std::int64_t{row} * feature_width() + column);
    });
  }
}

std::span<const float> model_executor::features(std::int32_t row) const {
  TANDEM_ASSERT(row >= 0 && row < rows_);
  const auto width = static_cast<std::size_t>(feature_width());
  return {features_.get() + static_cast<std::size_t>(row) * width, width};
}

void model_executor::final_hidden(std::int32_t row, std::span<float> out) const {
  const std::int32_t hidden = model_.shape.hidden;
  TANDEM_ASSERT(row >= 0 && row < rows_ && out.size() == static_cast<std::size_t>(hidden));
  ops_.add_and_normalize(hidden_.get() + std::int64_t{row} * hidden, nullptr, nullptr, model_.final_norm.data(),
                         model_.shape.norm_epsilon, hidden, out.data());
}

/// Where each row's key and value go, and how attention is divided. Known pages are a promise of the scheduler.
void model_executor::place_rows(std::span<const sequence_rows> sequences) {
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
  TANDEM_ASSERT(rows_ <= options_.max_rows);
  rope_.reach(reached);
}

void model_executor::look_up_tokens(std::span<const sequence_rows> sequences) {
  tokens_.clear();
  for (const sequence_rows& sequence : sequences)
    tokens_.insert(tokens_.end(), sequence.tokens.begin(), sequence.tokens.end());
  const packed_matrix& embedding = model_.embedding();
  for_each_row(rows_, [&](std::int32_t row) {
    const token_id token = tokens_[static_cast<std::size_t>(row)];
    TANDEM_ASSERT(token >= 0 && token < model_.shape.vocabulary_size);
    embedding.row(token, hidden_.get() + std::int64_t{row} * model_.shape.hidden);
  });
}

void model_executor::run_layer(std::int32_t index, std::span<const sequence_rows> sequences) {
  const packed_layer& layer = model_.layers[static_cast<std::size_t>(index)];
  const model_shape& s = model_.shape;
  normalize_for(layer.query_key_value, layer.attention_norm, index == 0 ? nullptr : delta_.get(), {});
  keep_features_entering(index);
  multiply(layer.query_key_value, rows_, query_key_value_.get());
  for_each_row(rows_, [&](std::int32_t row) { prepare_heads(index, row); });
  attend(index, sequences);

  activations& attended = input_of(layer.output);
  for_each_row(rows_, [&](std::int32_t row) { attended.convert(options_.set, attended_.get(), row, row + 1); });
  multiply(layer.output, rows_, delta_.get());

  normalize_for(layer.gate_up, layer.mlp_norm, delta_.get(), layer.output_bias);
  multiply(layer.gate_up, rows_, gate_up_.get());
  activations& gated = input_of(layer.down);
  for_each_row(rows_, [&](std::int32_t row) {
    ops_.gate(gate_up_.get() + std::int64_t{row} * 2 * s.intermediate, s.intermediate,
              gated_.get() + std::int64_t{row} * s.intermediate);
    gated.convert(options_.set, gated_.get(), row, row + 1);
  });
  multiply(layer.down, rows_, delta_.get());
}

void model_executor::normalize_for(const packed_matrix& matrix, const std::vector<float>& norm, const float* delta,
                                   const std::vector<float>& bias) {
  const std::int32_t hidden = model_.shape.hidden;
  activations& input = input_of(matrix);
  for_each_row(rows_, [&](std::int32_t row) {
    const std::int64_t at = std::int64_t{row} * hidden;
    ops_.add_and_normalize(hidden_.get() + at, delta == nullptr ? nullptr : delta + at, or_null(bias), norm.data(),
                           model_.shape.norm_epsilon, hidden, normalized_.get() + at);
    input.convert(options_.set, normalized_.get(), row, row + 1);
  });
}

/// Biases, head norms and rotation of one row's query, key and value; the key and value go to their page.
void model_executor::prepare_heads(std::int32_t layer_index, std::int32_t row) {
  const packed_layer& layer = model_.layers[static_cast<std::size_t>(layer_index)];
  const model_shape& s = model_.shape;
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
    cache_.store(layer_index, place.block, place.offset, head, key, key + s.kv_width());
  }
}

attention_task model_executor::task_of(const attention_item& item, const kv_layer_view& view,
                                       std::span<const sequence_rows> sequences) const {
  const model_shape& s = model_.shape;
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
  if (item.cut < 0) return task;
  const attention_cut& cut = attention_plan_.cuts()[static_cast<std::size_t>(item.cut)];
  task.partials = partials_.get() + cut.partials;
  task.partial_partitions = cut.partitions;
  return task;
}

/// The thread that ends a cut's last piece merges all of them; the order of merging is that of the partitions.
void model_executor::run_item(const attention_item& item, const attention_task& task) {
  if (item.cut < 0) return attention_.attend(task);
  attention_.attend_partitions(task, item.first_partition, item.end_partition);
  if (pieces_left_[static_cast<std::size_t>(item.cut)].fetch_sub(1, std::memory_order_acq_rel) == 1)
    attention_.merge_partials(task);
}

void model_executor::attend(std::int32_t layer, std::span<const sequence_rows> sequences) {
  const kv_layer_view view = cache_.layer(layer);
  const std::span<const attention_item> items = attention_plan_.items();
  const std::span<const attention_cut> cuts = attention_plan_.cuts();
  for (std::size_t i = 0; i < cuts.size(); ++i) pieces_left_[i].store(cuts[i].pieces, std::memory_order_relaxed);
  team_.parallel_for(
      static_cast<std::int64_t>(items.size()), 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
          run_item(items[i], task_of(items[i], view, sequences));
      });
}

void model_executor::multiply(const packed_matrix& matrix, std::int32_t rows, float* out) {
  const activations& input = input_of(matrix);
  team_.parallel_for(matrix.tiles(), 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    matrix.multiply(input, rows, static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), out, matrix.rows());
  });
}

std::span<float> model_executor::logits(std::span<const std::int32_t> rows) {
  const auto count = static_cast<std::int32_t>(rows.size());
  TANDEM_ASSERT(count >= 1 && count <= max_logit_rows_);
  const std::int32_t hidden = model_.shape.hidden;
  activations& input = input_of(model_.head);
  for_each_row(count, [&](std::int32_t i) {
    const std::int32_t row = rows[static_cast<std::size_t>(i)];
    TANDEM_ASSERT(row >= 0 && row < rows_);
    ops_.add_and_normalize(hidden_.get() + std::int64_t{row} * hidden, nullptr, nullptr, model_.final_norm.data(),
                           model_.shape.norm_epsilon, hidden, normalized_.get() + std::int64_t{i} * hidden);
    input.convert(options_.set, normalized_.get(), i, i + 1);
  });
  multiply(model_.head, count, logits_.get());
  return {logits_.get(), rows.size() * static_cast<std::size_t>(model_.shape.vocabulary_size)};
}

}  // namespace tandem::gpu::host
