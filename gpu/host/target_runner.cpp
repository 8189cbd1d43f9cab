#include "gpu/host/target_runner.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "core/sampling/constraint.hpp"
#include "core/sampling/distribution.hpp"

namespace tandem::gpu::host {

target_runner::target_runner(model_executor& executor, compute_team& team, std::int32_t slots, draft_head* head,
                             std::span<const std::int32_t> features)
    : executor_(executor),
      team_(team),
      slots_(slots, executor.cache().shape().blocks),
      head_(head),
      feature_layers_(features.size()),
      first_feature_(executor.capture_before(features)),
      scratch_(static_cast<std::size_t>(team.threads())) {}

step_outcome target_runner::run(const step_work& work) {
  slots_.apply(work.closed, work.opened, work.table_deltas);
  open_matchers(work.opened);
  executor_.copy_blocks(work.copies);
  step_outcome outcome;
  outcome.step = work.step;
  outcome.slots.resize(work.rows.size());
  parts_.clear();
  for (std::size_t i = 0; i < work.rows.size(); ++i) {
    parts_.push_back(plan(work.rows[i], work));
    parts_.back().out = &outcome.slots[i];
  }
  run_forward();
  hand_out_features();
  verify_all();
  score_prompts();
  tell_head();
  return outcome;
}

/// A sequence that resumes has output already.
void target_runner::open_matchers(std::span<const slot_opening> opened) {
  for (const slot_opening& opening : opened) {
    slot_state& slot = slots_.at(opening.slot);
    if (!slot.constrained()) continue;
    slot.matcher = slot.sampling->structure->start();
    const auto output = std::span(*opening.known).subspan(static_cast<std::size_t>(opening.prompt_length));
    if (std::all_of(output.begin(), output.end(), [&](token_id token) { return slot.matcher->accept(token); })) continue;
    slot.matcher_lost = slot.matcher->lost().value_or(stuck_reason::broken);
    slot.matcher = nullptr;
  }
}

target_runner::planned target_runner::plan(const step_rows& rows, const step_work& work) {
  planned part;
  part.rows = &rows;
  part.slot = &slots_.at(rows.slot);
  part.tokens = rows.tokens;
  TANDEM_ASSERT(part.slot->slot_gen == rows.slot_gen);
  TANDEM_ASSERT(!rows.tokens.empty() && (rows.draft_rows == 0 || rows.yields_token));
  TANDEM_ASSERT(rows.draft_rows >= 0 && rows.draft_rows < executor_.max_logit_rows());
  const std::int32_t capacity = part.slot->capacity(executor_.cache().shape().block_size);
  TANDEM_ASSERT(rows.first_position + part.known() <= capacity);
  take_drafts(part, work);
  return part;
}

/// The first offer that came in time and is not empty.
void target_runner::choose_offer(planned& part, const step_work& work) const {
  for (std::size_t i = 0; i < part.rows->offers.size(); ++i) {
    const draft_offer& offer = part.rows->offers[i];
    if (offer.ticket < 0) continue;
    TANDEM_ASSERT(static_cast<std::size_t>(offer.ticket) < work.tickets.size() && offer.row >= 0);
    const ticket& source = *work.tickets[static_cast<std::size_t>(offer.ticket)];
    if (source.current() != ticket::state::filled) continue;
    const ticket::row& drafts = source.drafts(static_cast<std::size_t>(offer.row));
    if (drafts.tokens.empty()) continue;
    part.source = &drafts;
    part.offer = static_cast<std::int32_t>(i);
    return;
  }
}

/// As many drafts as were asked for and have a page.
void target_runner::take_drafts(planned& part, const step_work& work) const {
  const step_rows& rows = *part.rows;
  if (rows.draft_rows == 0) return;
  choose_offer(part, work);
  if (part.source == nullptr) return;
  const std::int32_t capacity =
      std::min(part.slot->capacity(executor_.cache().shape().block_size), executor_.limits().max_positions);
  const std::int32_t room = capacity - rows.first_position - part.known();
  const auto offered = static_cast<std::int32_t>(part.source->tokens.size());
  part.drafts = std::max(0, std::min({rows.draft_rows, offered, room}));
  part.tokens.insert(part.tokens.end(), part.source->tokens.begin(), part.source->tokens.begin() + part.drafts);
  cut_drafts(part);
}

/// Behind a draft that the target cannot draw nothing can be accepted. That draft itself is judged all the same: under
/// the rejection rule its probability counts, and to leave it out would favour what the source proposes otherwise.
void target_runner::cut_drafts(planned& part) const {
  const auto all = std::span<const token_id>(part.tokens).last(static_cast<std::size_t>(part.drafts));
  const auto exists = [&](token_id token) { return token >= 0 && token < executor_.shape().vocabulary_size; };
  auto possible = static_cast<std::size_t>(std::find_if_not(all.begin(), all.end(), exists) - all.begin());
  if (part.slot->matcher) possible = acceptable_prefix(*part.slot->matcher, all.first(possible));
  part.last_impossible = possible < all.size();
  part.drafts = static_cast<std::int32_t>(possible) + (part.last_impossible ? 1 : 0);
  part.tokens.resize(static_cast<std::size_t>(part.known() + part.drafts));
}

void target_runner::run_forward() {
  std::vector<sequence_rows> sequences;
  sequences.reserve(parts_.size());
  std::int32_t row = 0;
  for (planned& part : parts_) {
    part.first_row = row;
    row += static_cast<std::int32_t>(part.row_tokens().size());
    sequences.push_back({part.row_tokens(), part.rows->first_position, part.slot->table});
    part.out->slot = part.rows->slot;
    part.out->slot_gen = part.rows->slot_gen;
    part.out->rows_done = part.known();
  }
  executor_.forward(sequences);
}

void target_runner::hand_out_features() {
  const auto hidden = static_cast<std::size_t>(executor_.shape().hidden);
  const std::size_t width = (feature_layers_ + 1) * hidden;
  for (const planned& part : parts_) {
    if (!part.rows->wants_features) continue;
    std::vector<float>& out = part.out->features;
    out.resize(static_cast<std::size_t>(part.known()) * width);
    team_.parallel_for(part.known(), 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* to = out.data() + static_cast<std::size_t>(i) * width;
        const std::int32_t row = part.first_row + static_cast<std::int32_t>(i);
        for (std::size_t layer = 0; layer < feature_layers_; ++layer, to += hidden)
          std::copy_n(executor_.captured(first_feature_ + layer, row), hidden, to);
        executor_.final_hidden(row, to);
      }
    });
  }
}

/// Sequences in batches whose logits fit at once.
void target_runner::verify_all() {
  std::size_t begin = 0;
  while (begin < parts_.size()) {
    std::size_t end = begin;
    std::int32_t rows = 0;
    while (end < parts_.size() && rows + parts_[end].logit_rows() <= executor_.max_logit_rows())
      rows += parts_[end++].logit_rows();
    TANDEM_ASSERT(end > begin);
    if (rows > 0) verify_batch({parts_.data() + begin, end - begin});
    begin = end;
  }
}

void target_runner::verify_batch(std::span<planned> parts) {
  const auto vocabulary = static_cast<std::size_t>(executor_.shape().vocabulary_size);
  std::vector<std::int32_t> rows;
  std::vector<std::size_t> first_logit_row;
  for (const planned& part : parts) {
    first_logit_row.push_back(rows.size());
    for (std::int32_t i = 0; i < part.logit_rows(); ++i) rows.push_back(part.first_row + part.known() - 1 + i);
  }
  const std::span<float> logits = executor_.logits(rows);
  team_.parallel_for(static_cast<std::int64_t>(parts.size()), 1,
                     [&](std::int64_t begin, std::int64_t end, std::int32_t thread) {
                       for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
                         const auto count = static_cast<std::size_t>(parts[i].logit_rows());
                         if (count == 0) continue;
                         verify(parts[i], logits.subspan(first_logit_row[i] * vocabulary, count * vocabulary), thread);
                       }
                     });
}

acceptance_input target_runner::input_of(const planned& part, row_scratch& scratch) const {
  const slot_state& slot = *part.slot;
  acceptance_input input;
  input.params = slot.sampling.get();
  input.key = slot.noise_key;
  input.position = part.rows->first_position + part.known();
  input.output_index = static_cast<std::int32_t>(input.position) - slot.prompt_length;
  input.recent_output = slot.recent_output;
  input.drafts = std::span<const token_id>(part.tokens).subspan(static_cast<std::size_t>(part.known()));
  const auto drafts = static_cast<std::size_t>(part.drafts);
  if (part.source != nullptr && part.source->q.size() >= drafts) input.q = std::span(part.source->q).first(drafts);
  input.rule = slot.rule;
  input.last_draft_impossible = part.last_impossible;
  input.matcher = slot.matcher.get();
  if (slot.matcher) scratch.mask.resize(mask_words(static_cast<std::size_t>(executor_.shape().vocabulary_size)));
  input.mask = scratch.mask;
  return input;
}

/// Draws the run's tokens; `logits` has one row per draft with a row of its own, and one more.
void target_runner::verify(planned& part, std::span<float> logits, std::int32_t thread) {
  const auto vocabulary = static_cast<std::size_t>(executor_.shape().vocabulary_size);
  const slot_state& slot = *part.slot;
  if (slot.constrained() && !slot.matcher) {
    part.out->stuck = slot.matcher_lost;
    return;
  }
  const bool keeps_raw = slot.top_logprobs >= 0;
  row_scratch& scratch = scratch_[static_cast<std::size_t>(thread)];
  acceptance_input input = input_of(part, scratch);
  input.logits = [&](std::int32_t row) {
    const std::span<float> raw = logits.subspan(static_cast<std::size_t>(row) * vocabulary, vocabulary);
    if (!keeps_raw) return raw;
    scratch.logits.assign(raw.begin(), raw.end());
    return std::span<float>(scratch.logits);
  };
  token_counts none;
  acceptance_output drawn = verify_drafts(input, slot.keeps_counts ? part.slot->counts : none);
  TANDEM_ASSERT(drawn.tokens.size() == static_cast<std::size_t>(drawn.accepted) + (drawn.stuck ? 0 : 1));
  TANDEM_ASSERT(drawn.accepted <= part.draft_rows());
  for (std::size_t i = 0; keeps_raw && i < drawn.tokens.size(); ++i)
    part.out->logprobs.push_back(
        raw_logprobs(logits.subspan(i * vocabulary, vocabulary), drawn.tokens[i], slot.top_logprobs));
  part.slot->note_output(drawn.tokens);
  part.out->tokens = std::move(drawn.tokens);
  part.out->accepted = drawn.accepted;
  part.out->drafted = part.drafts;
  part.out->offer = part.offer;
  part.out->stuck = drawn.stuck;
}

/// One entry per known token after the first of the part, as far as the prompt reaches.
void target_runner::reserve_prompt_logprobs(planned& part) {
  const std::int32_t first = part.rows->first_position + 1;
  const bool goes_on = part.rows->following_token != kNoToken;
  const std::int32_t end = std::min(part.slot->prompt_length, first + part.known() - (goes_on ? 0 : 1));
  part.out->prompt_logprobs.resize(static_cast<std::size_t>(std::max(0, end - first)));
}

std::vector<target_runner::prompt_row> target_runner::prompt_rows() {
  std::vector<prompt_row> rows;
  for (planned& part : parts_) {
    if (part.slot->prompt_logprobs < 0) continue;
    reserve_prompt_logprobs(part);
    for (std::size_t i = 0; i < part.out->prompt_logprobs.size(); ++i) {
      const bool last = static_cast<std::int32_t>(i) + 1 == part.known();
      rows.push_back({&part, part.first_row + static_cast<std::int32_t>(i),
                      last ? part.rows->following_token : part.tokens[i + 1], &part.out->prompt_logprobs[i]});
    }
  }
  return rows;
}

void target_runner::score_prompts() {
  const std::vector<prompt_row> all = prompt_rows();
  const auto vocabulary = static_cast<std::size_t>(executor_.shape().vocabulary_size);
  const auto batch = static_cast<std::size_t>(executor_.max_logit_rows());
  for (std::size_t begin = 0; begin < all.size(); begin += batch) {
    const auto some = std::span(all).subspan(begin, std::min(batch, all.size() - begin));
    std::vector<std::int32_t> rows;
    for (const prompt_row& each : some) rows.push_back(each.row);
    const std::span<const float> logits = executor_.logits(rows);
    const auto score = [&](std::int64_t first, std::int64_t end, std::int32_t) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i)
        *some[i].out = raw_logprobs(logits.subspan(i * vocabulary, vocabulary), some[i].token,
                                    some[i].part->slot->prompt_logprobs);
    };
    team_.parallel_for(static_cast<std::int64_t>(some.size()), 1, score);
  }
}

/// Rows of drafts that were not accepted hold nothing: their tokens are none of the sequence's.
void target_runner::tell_head() {
  if (head_ == nullptr) return;
  std::vector<committed_rows> all;
  for (const planned& part : parts_) {
    committed_rows rows;
    rows.slot = part.rows->slot;
    rows.slot_gen = part.slot->slot_gen;
    rows.yielded = !part.out->tokens.empty() && !part.out->stuck;
    rows.first_row = part.first_row;
    rows.first_position = part.rows->first_position;
    rows.tokens = std::span(part.tokens).first(static_cast<std::size_t>(part.known() + part.out->accepted));
    rows.table = part.slot->table;
    all.push_back(rows);
  }
  head_->take_in(all);
}

}  // namespace tandem::gpu::host
