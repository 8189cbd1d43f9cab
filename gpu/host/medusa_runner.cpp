#include "gpu/host/medusa_runner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::gpu::host {
namespace {

/// x += silu(delta + bias).
void add_activated(float* x, const float* delta, const std::vector<float>& bias, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) {
    const float value = delta[i] + (bias.empty() ? 0.0F : bias[static_cast<std::size_t>(i)]);
    x[i] += value / (1.0F + std::exp(-value));
  }
}

}  // namespace

medusa_runner::medusa_runner(packed_heads heads, model_executor& target, compute_team& team, std::int32_t slots)
    : heads_(std::move(heads)),
      target_(target),
      work_(team, target.limits().set, limits::kMaxLogitRows),
      sampler_(target.shape().vocabulary_size, heads_.target_ids, team.threads()),
      hidden_size_(target.shape().hidden),
      features_(slots, hidden_size_) {
  hidden_ = untouched_floats(limits::kMaxLogitRows, hidden_size_);
  delta_ = untouched_floats(limits::kMaxLogitRows, hidden_size_);
  logits_ = untouched_floats(limits::kMaxLogitRows, heads_.draft_vocabulary);
}

std::uint64_t medusa_runner::kept_bytes() const {
  return features_.bytes();
}

void medusa_runner::take_in(std::span<const committed_rows> rows) {
  std::vector<float> feature(static_cast<std::size_t>(hidden_size_));
  for (const committed_rows& each : rows) {
    if (!each.yielded) continue;
    const auto last = static_cast<std::int32_t>(each.tokens.size()) - 1;
    target_.final_hidden(each.first_row + last, feature.data());
    features_.keep(each.slot, each.slot_gen, each.first_position + last, feature.data());
  }
}

/// By place, so that the guesses of one head stand together and a run's are drawn in order.
std::vector<medusa_runner::guess> medusa_runner::guesses_for(std::span<head_run> runs) const {
  std::vector<guess> guesses;
  for (std::int32_t place = 0; place < static_cast<std::int32_t>(heads_.medusa.size()); ++place) {
    for (head_run& run : runs) {
      const float* feature = features_.find(run.slot, run.state->slot_gen, run.known - 2);
      if (place < run.k && feature != nullptr) guesses.push_back({&run, place, feature});
    }
  }
  return guesses;
}

void medusa_runner::draft(std::span<head_run> runs, const std::function<bool()>& wanted) {
  const std::vector<guess> guesses = guesses_for(runs);
  const auto most = static_cast<std::size_t>(limits::kMaxLogitRows);
  for (std::size_t begin = 0; begin < guesses.size() && wanted(); begin += most) {
    const auto some = std::span(guesses).subspan(begin, std::min(most, guesses.size() - begin));
    compute(some);
    draw(some);
  }
}

/// Logits of all guesses: each head's blocks over its own rows, then one product where all share the output.
void medusa_runner::compute(std::span<const guess> guesses) {
  const auto count = static_cast<std::int32_t>(guesses.size());
  for (std::int32_t i = 0; i < count; ++i)
    std::copy_n(guesses[static_cast<std::size_t>(i)].feature, hidden_size_,
                hidden_.get() + std::int64_t{i} * hidden_size_);
  for (std::int32_t first = 0; first < count;) {
    const std::int32_t place = guesses[static_cast<std::size_t>(first)].place;
    std::int32_t end = first;
    while (end < count && guesses[static_cast<std::size_t>(end)].place == place) ++end;
    run_head(heads_.medusa[static_cast<std::size_t>(place)], first, end - first);
    first = end;
  }
  if (heads_.medusa[0].output) return;
  activations& input = work_.input_of(target_.model().head, count);
  work_.for_each_row(count, [&](std::int32_t row) { input.convert(work_.set(), hidden_.get(), row, row + 1); });
  work_.multiply(target_.model().head, count, logits_.get());
}

/// Rows [first, first + count) of hidden_.
void medusa_runner::run_head(const packed_medusa_head& head, std::int32_t first, std::int32_t count) {
  float* rows = hidden_.get() + std::int64_t{first} * hidden_size_;
  const auto convert = [&](const packed_matrix& matrix) {
    activations& input = work_.input_of(matrix, count);
    work_.for_each_row(count, [&](std::int32_t row) { input.convert(work_.set(), rows, row, row + 1); });
  };
  for (const packed_medusa_block& block : head.blocks) {
    convert(block.weight);
    work_.multiply(block.weight, count, delta_.get());
    work_.for_each_row(count, [&](std::int32_t row) {
      const std::int64_t at = std::int64_t{row} * hidden_size_;
      add_activated(rows + at, delta_.get() + at, block.bias, hidden_size_);
    });
  }
  if (!head.output) return;
  convert(*head.output);
  work_.multiply(*head.output, count, logits_.get() + std::int64_t{first} * heads_.draft_vocabulary);
}

/// One thread per run: its drafts in order, as each is drawn with the penalties of those before.
void medusa_runner::draw(std::span<const guess> guesses) {
  std::vector<head_run*> runs;
  for (const guess& each : guesses)
    if (std::find(runs.begin(), runs.end(), each.run) == runs.end()) runs.push_back(each.run);
  const auto vocabulary = static_cast<std::size_t>(heads_.draft_vocabulary);
  const auto draw_run = [&](head_run& run, std::int32_t thread) {
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      if (guesses[i].run != &run || run.ended) continue;
      const std::span<float> logits(logits_.get() + i * vocabulary, vocabulary);
      run.ended = !sampler_.draw(*run.state, *run.filled, logits, run.known + run.drafts(), thread);
    }
  };
  work_.team().parallel_for(static_cast<std::int64_t>(runs.size()), 1,
                            [&](std::int64_t begin, std::int64_t end, std::int32_t thread) {
                              for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
                                draw_run(*runs[i], thread);
                            });
}

}  // namespace tandem::gpu::host
