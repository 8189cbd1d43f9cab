#include "gpu/host/eagle_runner.hpp"

#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

std::int64_t at(std::int32_t row, std::int32_t width) {
  return std::int64_t{row} * width;
}

void copy_or_zero(const float* from, std::int32_t count, float* to) {
  if (from == nullptr) {
    std::fill_n(to, count, 0.0F);
  } else {
    std::copy_n(from, count, to);
  }
}

std::int32_t widest_input(const packed_eagle& head) {
  return static_cast<std::int32_t>(std::max(head.combine.columns(), head.layer.query_key_value.columns()));
}

}  // namespace

eagle_runner::eagle_runner(packed_heads heads, kv_cache cache, model_executor& target, compute_team& team,
                           std::int32_t slots)
    : heads_(std::move(heads)),
      head_(heads_.eagle),
      target_(target),
      work_(team, target.limits().set, target.limits().max_rows),
      layer_(head_.shape, head_.rope, std::move(cache), work_, {target.limits().max_positions, 1}),
      sampler_(target.shape().vocabulary_size, heads_.target_ids, team.threads()),
      hidden_size_(head_.shape.hidden),
      raw_width_(heads_.kind == model::head_kind::eagle3 ? static_cast<std::int32_t>(head_.combine.columns())
                                                         : target.shape().hidden),
      backlog_(slots, raw_width_, target.limits().max_rows),
      features_(slots, hidden_size_),
      progress_(static_cast<std::size_t>(slots)) {
  const std::int32_t rows = target.limits().max_rows;
  block_features_ = untouched_floats(layer_.cache().shape().blocks, hidden_size_);
  row_features_ = untouched_floats(rows, hidden_size_);
  joined_ = untouched_floats(rows, widest_input(head_));
  logits_ = untouched_floats(target.max_logit_rows(), heads_.draft_vocabulary);
  first_captured_ = target.capture_before(head_.feature_layers);
}

std::uint64_t eagle_runner::block_bytes(const packed_heads& heads) {
  return static_cast<std::uint64_t>(heads.eagle.shape.hidden) * sizeof(float);
}

std::uint64_t eagle_runner::kept_bytes() const {
  const kv_shape& pages = layer_.cache().shape();
  const auto blocks = static_cast<std::uint64_t>(pages.blocks);
  return backlog_.bytes() + features_.bytes() + blocks * (kv_cache::block_bytes(pages) + block_bytes(heads_));
}

void eagle_runner::take_in(std::span<const committed_rows> rows) {
  std::vector<taken_rows> before;
  std::vector<taken_rows> now;
  for (const committed_rows& each : rows) {
    if (put_off(each)) continue;
    collect(each.slot, each.slot_gen, each.table, before);
    now.push_back({each.slot, each.slot_gen, each.first_position, each.tokens, each.table, nullptr, each.first_row});
  }
  take(before);
  take(now);
}

/// False: they have to be taken in now.
bool eagle_runner::put_off(const committed_rows& rows) {
  const auto count = static_cast<std::int32_t>(rows.tokens.size());
  const std::int32_t block_size = layer_.cache().shape().block_size;
  const bool has_room = backlog_.has_room(rows.slot, rows.slot_gen, rows.first_position, count);
  const bool fills_block = (rows.first_position + count) / block_size != rows.first_position / block_size;
  if (fills_block || !has_room) return false;
  for (std::int32_t i = 0; i < count; ++i)
    copy_raw(rows.first_row + i, backlog_.add(rows.slot, rows.tokens[static_cast<std::size_t>(i)]));
  return true;
}

void eagle_runner::copy_raw(std::int32_t forward_row, float* to) {
  if (heads_.kind != model::head_kind::eagle3) return target_.final_hidden(forward_row, to);
  const std::int32_t part = target_.shape().hidden;
  for (std::size_t i = 0; i < head_.feature_layers.size(); ++i)
    std::copy_n(target_.captured(first_captured_ + i, forward_row), part, to + static_cast<std::int64_t>(i) * part);
}

void eagle_runner::collect(slot_id slot, std::uint32_t slot_gen, std::span<const block_id> table,
                           std::vector<taken_rows>& into) {
  const head_backlog::waiting rows = backlog_.of(slot, slot_gen);
  if (!rows.tokens.empty()) into.push_back({slot, slot_gen, rows.first_position, rows.tokens, table, rows.raw, 0});
}

/// In batches of whole sequences, as many rows at once as the arena takes.
void eagle_runner::take(std::span<const taken_rows> all) {
  while (!all.empty()) {
    std::size_t taken = 0;
    std::size_t rows = 0;
    while (taken < all.size() && rows + all[taken].tokens.size() <= static_cast<std::size_t>(work_.max_rows()))
      rows += all[taken++].tokens.size();
    TANDEM_ASSERT(taken > 0);
    take_batch(all.first(taken));
    all = all.subspan(taken);
  }
}

void eagle_runner::take_batch(std::span<const taken_rows> rows) {
  make_features(rows);
  std::vector<sequence_rows> sequences;
  std::vector<entry> entries;
  std::int32_t row = 0;
  for (const taken_rows& each : rows) {
    const auto count = static_cast<std::int32_t>(each.tokens.size());
    const std::int32_t skipped = std::clamp(first_missing(each) - each.first_position, 0, count);
    for (std::int32_t i = skipped; i < count; ++i) {
      const float* before = i == 0 ? feature_before(each) : row_features_.get() + at(row + i - 1, hidden_size_);
      entries.push_back({each.tokens[static_cast<std::size_t>(i)], before});
    }
    sequences.push_back(
        {each.tokens.subspan(static_cast<std::size_t>(skipped)), each.first_position + skipped, each.table});
    row += count;
  }
  if (layer_.place(sequences) > 0) project(entries);
  row = 0;
  for (const taken_rows& each : rows) {
    keep_features(each, row_features_.get() + at(row, hidden_size_));
    row += static_cast<std::int32_t>(each.tokens.size());
  }
  for (const taken_rows& each : rows) backlog_.clear(each.slot);  // its tokens were theirs
}

/// row_features_: of all rows, one sequence after the other.
void eagle_runner::make_features(std::span<const taken_rows> rows) {
  std::vector<std::pair<const float*, std::int32_t>> sources;  // raw, or null and the row of the forward
  for (const taken_rows& each : rows)
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(each.tokens.size()); ++i)
      sources.push_back({each.raw == nullptr ? nullptr : each.raw + at(i, raw_width_), each.first_row + i});
  const auto count = static_cast<std::int32_t>(sources.size());
  const auto gather = [&](std::int32_t row, float* to) {
    const auto& [raw, forward_row] = sources[static_cast<std::size_t>(row)];
    raw != nullptr ? static_cast<void>(std::copy_n(raw, raw_width_, to)) : copy_raw(forward_row, to);
  };
  if (heads_.kind != model::head_kind::eagle3) {
    work_.for_each_row(count, [&](std::int32_t row) { gather(row, row_features_.get() + at(row, hidden_size_)); });
    return;
  }
  activations& input = work_.input_of(head_.combine, count);
  work_.for_each_row(count, [&](std::int32_t row) {
    gather(row, joined_.get() + at(row, raw_width_));
    input.convert(work_.set(), joined_.get(), row, row + 1);
  });
  work_.multiply(head_.combine, count, row_features_.get());
}

/// Of the row before the first: kept by slot, or by block behind a prefix hit.
const float* eagle_runner::feature_before(const taken_rows& rows) const {
  if (rows.first_position == 0) return nullptr;
  const float* kept = features_.find(rows.slot, rows.slot_gen, rows.first_position - 1);
  if (kept != nullptr) return kept;
  const std::int32_t block_size = layer_.cache().shape().block_size;
  if (rows.first_position % block_size != 0) return nullptr;
  const block_id before = rows.table[static_cast<std::size_t>(rows.first_position / block_size) - 1];
  return block_features_.get() + at(before, hidden_size_);
}

/// The entry of the last known token is there already when the head drafted behind it.
std::int32_t eagle_runner::first_missing(const taken_rows& rows) const {
  const progress& done = progress_[static_cast<std::size_t>(rows.slot)];
  return done.slot_gen == rows.slot_gen ? done.end : rows.first_position;
}

void eagle_runner::keep_features(const taken_rows& rows, const float* features) {
  const auto count = static_cast<std::int32_t>(rows.tokens.size());
  const std::int32_t block_size = layer_.cache().shape().block_size;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t position = rows.first_position + i;
    if ((position + 1) % block_size != 0) continue;
    const block_id block = rows.table[static_cast<std::size_t>(position / block_size)];
    std::copy_n(features + at(i, hidden_size_), hidden_size_, block_features_.get() + at(block, hidden_size_));
  }
  features_.keep(rows.slot, rows.slot_gen, rows.first_position + count - 1, features + at(count - 1, hidden_size_));
  progress_[static_cast<std::size_t>(rows.slot)] = {rows.slot_gen, rows.first_position + count};
}

void eagle_runner::embed(token_id token, float* out) const {
  TANDEM_ASSERT(token >= 0 && token < target_.shape().vocabulary_size);
  (head_.embedding ? *head_.embedding : target_.model().embedding()).row(token, out);
}

void eagle_runner::project(std::span<const entry> entries) {
  heads_.kind == model::head_kind::eagle3 ? norm_with_embedding(entries) : combine_with_embedding(entries);
  layer_.project(0, head_.layer);
}

/// EAGLE-1: combine · [embedding; feature] enters the layer, without a norm before attention.
void eagle_runner::combine_with_embedding(std::span<const entry> entries) {
  const auto count = static_cast<std::int32_t>(entries.size());
  const std::int32_t width = 2 * hidden_size_;
  activations& input = work_.input_of(head_.combine, count);
  work_.for_each_row(count, [&](std::int32_t row) {
    const entry& each = entries[static_cast<std::size_t>(row)];
    float* joined = joined_.get() + at(row, width);
    embed(each.token, joined);
    copy_or_zero(each.feature, hidden_size_, joined + hidden_size_);
    input.convert(work_.set(), joined_.get(), row, row + 1);
  });
  work_.multiply(head_.combine, count, layer_.hidden(0));
  activations& entering = work_.input_of(head_.layer.query_key_value, count);
  work_.for_each_row(count, [&](std::int32_t row) {
    if (!head_.combine_bias.empty()) work_.ops().add(layer_.hidden(row), head_.combine_bias.data(), hidden_size_);
    entering.convert(work_.set(), layer_.hidden(0), row, row + 1);
  });
}

/// EAGLE-3: attention reads [norm(embedding); norm(feature)], the residual is the feature, normed or not.
void eagle_runner::norm_with_embedding(std::span<const entry> entries) {
  const std::int32_t width = 2 * hidden_size_;
  const float epsilon = head_.shape.norm_epsilon;
  activations& entering = work_.input_of(head_.layer.query_key_value, static_cast<std::int32_t>(entries.size()));
  work_.for_each_row(static_cast<std::int32_t>(entries.size()), [&](std::int32_t row) {
    const entry& each = entries[static_cast<std::size_t>(row)];
    float* joined = joined_.get() + at(row, width);
    float* residual = layer_.hidden(row);
    embed(each.token, residual);
    work_.ops().add_and_normalize(residual, nullptr, nullptr, head_.embedding_norm.data(), epsilon, hidden_size_,
                                  joined);
    copy_or_zero(each.feature, hidden_size_, residual);
    work_.ops().add_and_normalize(residual, nullptr, nullptr, head_.feature_norm.data(), epsilon, hidden_size_,
                                  joined + hidden_size_);
    if (head_.residual_is_normed) std::copy_n(joined + hidden_size_, hidden_size_, residual);
    entering.convert(work_.set(), joined_.get(), row, row + 1);
  });
}

/// Wants another draft, and its entry has a page and a position.
bool eagle_runner::can_go_on(const head_run& run) const {
  const std::int32_t entries = run.known + run.drafts();
  const auto held = static_cast<std::int32_t>(run.table.size()) * layer_.cache().shape().block_size;
  return !run.ended && run.drafts() < run.k && entries <= std::min(held, layer_.max_positions());
}

void eagle_runner::draft(std::span<head_run> runs, const std::function<bool()>& wanted) {
  TANDEM_ASSERT(static_cast<std::int32_t>(runs.size()) <= work_.max_rows());
  std::vector<taken_rows> before;
  for (const head_run& run : runs) collect(run.slot, run.state->slot_gen, run.table, before);
  take(before);
  std::int32_t row = 0;
  for (head_run& run : runs) {
    const float* feature = features_.find(run.slot, run.state->slot_gen, run.known - 2);
    run.ended = feature == nullptr;
    run.feature_row = row;
    if (feature != nullptr) std::copy_n(feature, hidden_size_, row_features_.get() + at(row++, hidden_size_));
  }
  for (std::int32_t depth = 0; depth < limits::kMaxDraftTokens && wanted(); ++depth) {
    std::vector<head_run*> going_on;
    for (head_run& run : runs)
      if (run.drafts() == depth && can_go_on(run)) going_on.push_back(&run);
    if (going_on.empty()) return;
    draft_once(going_on);
  }
}

/// One forward of the head: a draft for each run, and its own output as the feature of the next.
void eagle_runner::draft_once(std::span<head_run*> runs) {
  std::vector<sequence_rows> sequences;
  std::vector<entry> entries;
  for (head_run* run : runs) {
    const token_id& token = run->drafts() == 0 ? run->last : run->filled->tokens.back();
    const std::int32_t position = run->known - 1 + run->drafts();
    sequences.push_back({{&token, 1}, position, run->table});
    entries.push_back({token, row_features_.get() + at(run->feature_row, hidden_size_)});
    if (run->drafts() == 0) progress_[static_cast<std::size_t>(run->slot)] = {run->state->slot_gen, run->known};
  }
  layer_.place(sequences);
  project(entries);
  layer_.finish(0, head_.layer, sequences);
  layer_.add_delta();
  const auto count = static_cast<std::int32_t>(runs.size());
  for (std::int32_t i = 0; i < count; ++i)
    std::copy_n(layer_.hidden(i), hidden_size_,
                row_features_.get() + at(runs[static_cast<std::size_t>(i)]->feature_row, hidden_size_));
  const std::int32_t most = target_.max_logit_rows();
  for (std::int32_t first = 0; first < count; first += most)
    draw(runs.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(most, count - first))), first);
}

/// The next draft of runs whose outputs are rows first_row … of the layer.
void eagle_runner::draw(std::span<head_run*> runs, std::int32_t first_row) {
  const packed_matrix& output = head_.output ? *head_.output : target_.model().head;
  const auto count = static_cast<std::int32_t>(runs.size());
  activations& input = work_.input_of(output, count);
  float* rows = layer_.hidden(first_row);
  work_.for_each_row(count, [&](std::int32_t i) {
    float* row = rows + at(i, hidden_size_);
    if (!head_.final_norm.empty())
      work_.ops().add_and_normalize(row, nullptr, nullptr, head_.final_norm.data(), head_.shape.norm_epsilon,
                                    hidden_size_, layer_.scratch(i));
    input.convert(work_.set(), head_.final_norm.empty() ? rows : layer_.scratch(0), i, i + 1);
  });
  work_.multiply(output, count, logits_.get());
  const auto vocabulary = static_cast<std::size_t>(heads_.draft_vocabulary);
  work_.team().parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t thread) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      head_run& run = *runs[i];
      const std::span<float> logits(logits_.get() + i * vocabulary, vocabulary);
      run.ended = !sampler_.draw(*run.state, *run.filled, logits, run.known + run.drafts(), thread);
    }
  });
}

}  // namespace tandem::gpu::host
