#include "gpu/host/model_executor.hpp"

#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::gpu::host {

model_executor::model_executor(packed_model model, kv_cache cache, compute_team& team, options opts)
    : model_(std::move(model)),
      work_(team, opts.set, opts.max_rows),
      layers_(model_.shape, model_.rope, std::move(cache), work_, {opts.max_positions, 0}),
      options_(opts),
      max_logit_rows_(std::min(limits::kMaxLogitRows, opts.max_rows)) {
  logits_ = untouched_floats(max_logit_rows_, model_.shape.vocabulary_size);
  tokens_.reserve(static_cast<std::size_t>(opts.max_rows));
  for (const packed_layer& layer : model_.layers)
    for (const packed_matrix* matrix : {&layer.query_key_value, &layer.output, &layer.gate_up, &layer.down})
      work_.prepare(*matrix);
  work_.prepare(model_.head);
}

std::size_t model_executor::capture_before(std::span<const std::int32_t> layers) {
  const std::size_t first = captured_layers_.size();
  for (const std::int32_t layer : layers) {
    TANDEM_ASSERT(layer >= 0 && layer <= static_cast<std::int32_t>(model_.layers.size()));
    captured_layers_.push_back(layer);
    captured_.push_back(untouched_floats(options_.max_rows, model_.shape.hidden));
  }
  return first;
}

void model_executor::copy_blocks(std::span<const block_copy> copies) {
  const auto layers = static_cast<std::int32_t>(model_.layers.size());
  work_.for_each_row(layers * static_cast<std::int32_t>(copies.size()), [&](std::int32_t i) {
    const block_copy& copy = copies[static_cast<std::size_t>(i / layers)];
    layers_.cache().copy(i % layers, copy.from, copy.to);
  });
}

void model_executor::forward(std::span<const sequence_rows> sequences) {
  rows_ = layers_.place(sequences);
  if (rows_ == 0) return;
  look_up_tokens(sequences);
  const auto count = static_cast<std::int32_t>(model_.layers.size());
  for (std::int32_t index = 0; index < count; ++index) {
    const packed_layer& layer = model_.layers[static_cast<std::size_t>(index)];
    layers_.normalize_for(layer.query_key_value, layer.attention_norm, index == 0 ? nullptr : layers_.delta(), {});
    capture(index);
    layers_.project(index, layer);
    layers_.finish(index, layer, sequences);
  }
  layers_.add_delta();
  capture(count);
}

void model_executor::look_up_tokens(std::span<const sequence_rows> sequences) {
  tokens_.clear();
  for (const sequence_rows& sequence : sequences)
    tokens_.insert(tokens_.end(), sequence.tokens.begin(), sequence.tokens.end());
  const packed_matrix& embedding = model_.embedding();
  work_.for_each_row(rows_, [&](std::int32_t row) {
    const token_id token = tokens_[static_cast<std::size_t>(row)];
    TANDEM_ASSERT(token >= 0 && token < model_.shape.vocabulary_size);
    embedding.row(token, layers_.hidden(row));
  });
}

void model_executor::capture(std::int32_t layer) {
  for (std::size_t i = 0; i < captured_layers_.size(); ++i) {
    if (captured_layers_[i] != layer) continue;
    std::copy_n(layers_.hidden(0), std::int64_t{rows_} * model_.shape.hidden, captured_[i].get());
  }
}

const float* model_executor::captured(std::size_t index, std::int32_t row) const {
  TANDEM_ASSERT(index < captured_.size() && row >= 0 && row < rows_);
  return captured_[index].get() + std::int64_t{row} * model_.shape.hidden;
}

void model_executor::final_hidden(std::int32_t row, float* out) {
  TANDEM_ASSERT(row >= 0 && row < rows_);
  work_.ops().add_and_normalize(layers_.hidden(row), nullptr, nullptr, model_.final_norm.data(),
                                model_.shape.norm_epsilon, model_.shape.hidden, out);
}

std::span<float> model_executor::logits(std::span<const std::int32_t> rows) {
  const auto count = static_cast<std::int32_t>(rows.size());
  TANDEM_ASSERT(count >= 1 && count <= max_logit_rows_);
  activations& input = work_.input_of(model_.head, count);
  work_.for_each_row(count, [&](std::int32_t i) {
    final_hidden(rows[static_cast<std::size_t>(i)], layers_.scratch(i));
    input.convert(work_.set(), layers_.scratch(0), i, i + 1);
  });
  work_.multiply(model_.head, count, logits_.get());
  return {logits_.get(), rows.size() * static_cast<std::size_t>(model_.shape.vocabulary_size)};
}

}  // namespace tandem::gpu::host
