// The draft model's stream: its KV, its noise, its vocabulary.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <numeric>
#include <random>

#include "tests/gpu/device_lab.hpp"

namespace tandem::test {
namespace {

std::shared_ptr<const model::model> rand_with(float noise, std::size_t pieces = 0) {
  rand_options options;
  options.seed = 5;
  options.noise = noise;
  if (pieces > 0) {
    std::vector<std::string> names(pieces);
    for (std::size_t i = 0; i < pieces; ++i) names[i] = std::to_string(i);
    options.tokenizer = pieces_tokenizer(names);
  }
  return open_made(make_rand(options));
}

lab_sequence greedy(std::size_t prompt_length, std::int32_t k, std::int32_t max_tokens) {
  lab_sequence sequence;
  std::mt19937 random(static_cast<std::uint32_t>(prompt_length));
  for (std::size_t i = 0; i < prompt_length; ++i) sequence.prompt.push_back(static_cast<token_id>(random() % 256));
  sequence.sampling.temperature = 0;
  sequence.k = k;
  sequence.max_tokens = max_tokens;
  return sequence;
}

void expect_all_accepted(const lab_sequence& sequence) {
  EXPECT_GT(sequence.drafted, 0);
  EXPECT_EQ(sequence.accepted, sequence.drafted);
}

TEST(draft_stream, A13_a_model_that_drafts_for_itself_is_always_right) {
  const auto self = rand_with(0);
  for (std::int32_t k = 1; k <= 8; ++k) {
    device_lab lab(make_tiny(tiny_options(2), *self, self.get()));
    lab_sequence sequence = greedy(10, k, 400);
    lab.run(sequence);
    expect_all_accepted(sequence);
    EXPECT_LE(sequence.steps, 400 / (k + 1) + 1) << "k + 1 tokens per step";
  }
}

TEST(draft_stream, A13_drawing_with_the_same_noise_under_the_coupled_rule_it_is_always_right_too) {
  const auto self = rand_with(0);
  device_lab lab(make_tiny(tiny_options(2), *self, self.get()));
  for (const std::int32_t top_k : {0, 10}) {
    lab_sequence sequence = greedy(33, 5, 200);
    sequence.sampling.temperature = 1.0F;
    sequence.sampling.top_k = top_k;
    sequence.sampling.repetition_penalty = 1.2F;
    sequence.sampling.presence_penalty = 0.5F;
    lab.run(sequence);
    expect_all_accepted(sequence);
  }
}

TEST(draft_stream, under_the_rejection_rule_equal_distributions_accept_everything) {
  const auto self = rand_with(0);
  device_lab lab(make_tiny(tiny_options(2), *self, self.get()));
  lab_sequence sequence = greedy(20, 4, 200);
  sequence.sampling.temperature = 0.9F;
  sequence.sampling.top_p = 0.9F;
  sequence.rule = acceptance_rule::rejection;
  lab.run(sequence);
  expect_all_accepted(sequence);
}

TEST(draft_stream, A13_its_kv_after_rejections_equals_one_rebuilt_from_scratch) {
  const auto target = rand_with(0);
  const auto draft = rand_with(0.15F);
  for (const std::int32_t k : {1, 3, 8}) {
    std::vector<std::pair<std::int32_t, std::int32_t>> counts;
    std::vector<std::vector<token_id>> outputs;
    for (const bool rebuild : {false, true}) {
      device_lab lab(make_tiny(tiny_options(2), *target, draft.get()));
      lab.rebuild_draft_kv = rebuild;
      lab_sequence sequence = greedy(10, k, 300);
      lab.run(sequence);
      counts.push_back({sequence.drafted, sequence.accepted});
      outputs.push_back(sequence.output());
    }
    EXPECT_EQ(counts[0], counts[1]) << "k = " << k;
    EXPECT_EQ(outputs[0], outputs[1]);
    EXPECT_GT(counts[0].second, 0);
    EXPECT_LT(counts[0].second, counts[0].first) << "a draft that is never wrong tests nothing";
  }
}

TEST(draft_stream, A14_catches_up_after_a_prefix_hit_and_after_a_phase_without_drafts) {
  const auto self = rand_with(0);
  device_lab lab(make_tiny(tiny_options(2), *self, self.get()));
  lab_sequence cold = greedy(163, 4, 40);
  lab.run(cold);
  expect_all_accepted(cold);
  for (const bool draft_pages_valid : {true, false}) {
    lab_sequence warm = greedy(163, 4, 40);
    warm.shared_blocks.assign(cold.table.begin(), cold.table.begin() + 10);
    warm.shared_draft_valid = draft_pages_valid;
    lab.run(warm);
    expect_all_accepted(warm);
    EXPECT_EQ(warm.output(), cold.output());
  }
  lab_sequence pausing = greedy(163, 4, 12);
  for (const std::int32_t k : {4, 0, 4}) {
    pausing.k = k;
    lab.run(pausing);
    pausing.max_tokens += 14;
  }
  expect_all_accepted(pausing);
  EXPECT_TRUE(std::equal(pausing.known.begin(), pausing.known.end(), cold.known.begin()));
}

TEST(draft_stream, drafts_for_many_sequences_with_different_k_in_one_batch_and_changes_no_output) {
  const auto target = rand_with(0);
  const auto draft = rand_with(0.1F);
  auto options = tiny_options(2);
  options.max_num_batched_tokens = 200;  // below the catch-up rows of all: the batch is split
  std::vector<lab_sequence> plain;
  std::vector<lab_sequence> drafted;
  for (std::int32_t i = 0; i < 9; ++i) {
    plain.push_back(greedy(static_cast<std::size_t>(5 + 4 * i), 0, 30));
    drafted.push_back(greedy(static_cast<std::size_t>(5 + 4 * i), i % 6, 30));
  }
  device_lab alone(make_tiny(tiny_options(1), *target));
  for (lab_sequence& each : plain) alone.run(each);
  device_lab lab(make_tiny(options, *target, draft.get()));
  std::vector<lab_sequence*> all;
  for (lab_sequence& each : drafted) all.push_back(&each);
  lab.run(all, 16);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(drafted[i].output(), plain[i].output()) << i;
}

TEST(draft_stream, A12_never_proposes_an_id_the_target_does_not_have_and_bears_a_smaller_vocabulary) {
  for (const auto& [target_pieces, draft_pieces] : {std::pair{200U, 256U}, {256U, 200U}}) {
    const auto target = rand_with(0, target_pieces);
    const auto draft = rand_with(0, draft_pieces);
    device_lab lab(make_tiny(tiny_options(1), *target, draft.get()));
    lab_sequence sequence = greedy(0, 5, 60);
    sequence.prompt = {1, 2, 3};
    sequence.sampling.temperature = 2.0F;
    sequence.rule = target_pieces < draft_pieces ? acceptance_rule::rejection : acceptance_rule::coupled;
    sequence.max_tokens = 20;
    for (token_id& token : sequence.prompt) token %= 200;
    if (draft_pieces <
        target_pieces) {  // the target may draw ids that its draft cannot read: keep it among those it can
      sequence.sampling.allowed_token_ids.resize(200);
      std::iota(sequence.sampling.allowed_token_ids.begin(), sequence.sampling.allowed_token_ids.end(), 0);
    }
    lab.run(sequence);
    EXPECT_EQ(sequence.output().size(), 20U);
    EXPECT_GT(sequence.drafted, 0);
    for (const token_id token : sequence.output()) EXPECT_LT(token, static_cast<token_id>(target_pieces));
  }
}

TEST(draft_stream, stops_drafting_when_its_ticket_was_cancelled_but_still_catches_up) {
  const auto self = rand_with(0);
  const auto device = make_tiny(tiny_options(1), *self, self.get());
  const auto stream = device->open_draft_stream();
  auto work = std::make_shared<draft_work>();
  work->step = 3;
  slot_opening opened;
  opened.slot = 0;
  opened.sampling = std::make_shared<const sampling_params>();
  opened.prompt_length = 3;
  opened.known = std::make_shared<const std::vector<token_id>>(std::vector<token_id>{1, 2, 3});
  work->opened.push_back(opened);
  work->table_deltas.push_back({0, 0, {5}});
  proposal wanted;
  wanted.slot = 0;
  wanted.incarnation = 9;
  wanted.new_tokens = {1, 2, 3};
  wanted.k = 8;
  wanted.ticket_row = 0;
  work->proposals.push_back(wanted);
  work->drafts = std::make_shared<ticket>(1);
  work->drafts->cancel();
  std::promise<draft_outcome> done;
  stream->launch(work, [&](draft_outcome outcome) { done.set_value(std::move(outcome)); });
  const draft_outcome outcome = done.get_future().get();
  ASSERT_TRUE(outcome.ok);
  EXPECT_EQ(outcome.step, 3U);
  ASSERT_EQ(outcome.entries.size(), 1U);
  EXPECT_EQ(outcome.entries[0].incarnation, 9U);
  EXPECT_EQ(outcome.entries[0].known_rows, 3);
  EXPECT_EQ(outcome.entries[0].draft_rows, 0);
  EXPECT_EQ(work->drafts->current(), ticket::state::cancelled);
}

/// Two sequences behind another source's ticket, which has drafts for the first one only.
struct work_behind {
  std::shared_ptr<ticket> first = std::make_shared<ticket>(2);
  std::shared_ptr<draft_work> work = std::make_shared<draft_work>();

  work_behind() {
    work->step = 3;
    work->drafts = std::make_shared<ticket>(2);
    for (slot_id slot = 0; slot < 2; ++slot) {
      slot_opening opened;
      opened.slot = slot;
      opened.sampling = std::make_shared<const sampling_params>();
      opened.prompt_length = 3;
      opened.known = std::make_shared<const std::vector<token_id>>(std::vector<token_id>{1, 2, 3});
      work->opened.push_back(opened);
      work->table_deltas.push_back({slot, 0, {slot}});
      proposal wanted{.slot = slot, .incarnation = 9, .new_tokens = {1, 2, 3}, .k = 4, .ticket_row = slot};
      wanted.unless = first;
      wanted.unless_row = slot;
      work->proposals.push_back(wanted);
    }
    first->fill(0).tokens = {7};
  }

  draft_outcome outcome(gpu::draft_stream& stream, const std::function<void()>& meanwhile) const {
    std::promise<draft_outcome> done;
    stream.launch(work, [&](draft_outcome outcome) { done.set_value(std::move(outcome)); });
    meanwhile();
    return done.get_future().get();
  }
};

TEST(draft_stream, leaves_out_what_another_source_has_drafts_for) {
  const auto self = rand_with(0);
  const auto device = make_tiny(tiny_options(1), *self, self.get());
  const auto stream = device->open_draft_stream();
  const work_behind behind;
  const draft_outcome outcome = behind.outcome(*stream, [&] { behind.first->seal(); });
  ASSERT_TRUE(outcome.ok);
  ASSERT_EQ(outcome.entries.size(), 2U);
  EXPECT_EQ(outcome.entries[0].known_rows, 0);
  EXPECT_EQ(outcome.entries[0].draft_rows, 0);
  EXPECT_EQ(outcome.entries[1].known_rows, 3);
  EXPECT_EQ(outcome.entries[1].draft_rows, 3);
  ASSERT_EQ(behind.work->drafts->current(), ticket::state::filled);
  EXPECT_TRUE(behind.work->drafts->drafts(0).tokens.empty());
  EXPECT_EQ(behind.work->drafts->drafts(1).tokens.size(), 4U);
}

TEST(draft_stream, drafts_for_all_when_the_source_before_it_never_answers) {
  const auto self = rand_with(0);
  const auto device = make_tiny(tiny_options(1), *self, self.get());
  const auto stream = device->open_draft_stream();
  for (const bool cancelled : {true, false}) {
    const work_behind behind;
    const draft_outcome outcome = behind.outcome(*stream, [&] {
      if (cancelled) behind.first->cancel();
    });
    ASSERT_TRUE(outcome.ok);
    EXPECT_EQ(behind.first->current(), cancelled ? ticket::state::cancelled : ticket::state::expired);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(behind.work->drafts->drafts(i).tokens.size(), 4U);
  }
}

}  // namespace
}  // namespace tandem::test
