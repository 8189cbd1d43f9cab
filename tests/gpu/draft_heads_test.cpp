// Draft heads on the host device: numbers against the reference, and that nothing a sequence goes through spoils them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "gpu/reference/head_reference.hpp"
#include "tests/gpu/device_lab.hpp"

namespace tandem::test {
namespace {

lab_sequence sequence_of(std::size_t prompt_length, std::int32_t k, std::int32_t max_tokens, std::uint32_t seed = 1) {
  lab_sequence sequence;
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < prompt_length; ++i) sequence.prompt.push_back(static_cast<token_id>(random() % 256));
  sequence.sampling.temperature = 0;
  sequence.k = k;
  sequence.max_tokens = max_tokens;
  return sequence;
}

struct named_heads {
  const char* name;
  made_heads made;
};

made_model rand_target() {
  rand_options options;
  options.layers = 3;
  return make_rand(options);
}

std::vector<token_id> every_third() {
  std::vector<token_id> ids;
  for (token_id id = 1; id < 259; id += 3) ids.push_back(id);
  return ids;
}

std::vector<named_heads> all_heads(const made_model& target) {
  std::vector<named_heads> all;
  all.push_back({"medusa", make_medusa(target)});
  all.push_back({"medusa, two blocks, prefixed", make_medusa(target, {.blocks = 2, .prefix = "medusa_head."})});
  all.push_back({"medusa, the target's output", make_medusa(target, {.own_outputs = false})});
  all.push_back({"medusa, trimmed", make_medusa(target, {.ids = every_third()})});
  all.push_back({"eagle", make_eagle(target, {.third = false})});
  all.push_back({"eagle3", make_eagle(target)});
  all.push_back({"eagle3, normed residual", make_eagle(target, {.norm_before_residual = true})});
  all.push_back({"eagle3, own embedding, trimmed",
                 make_eagle(target, {.own_embedding = true, .ids = every_third(), .layer_prefix = "layers.0."})});
  all.push_back({"eagle3, the target's ends", make_eagle(target, {.own_output = false})});
  return all;
}

/// What the first drafting step behind `prompt` proposed.
ticket::row first_proposal(device_lab& lab, lab_sequence& sequence, std::int32_t chunk = 0) {
  ticket::row found;
  lab.on_drafts = [&](const ticket& drafts) {
    if (found.tokens.empty()) found = drafts.drafts(0);
  };
  lab.run(sequence, chunk);
  lab.on_drafts = nullptr;
  return found;
}

std::vector<double> softmax(const std::vector<double>& logits, const std::vector<token_id>& ids, std::size_t size) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - most);
  std::vector<double> probabilities(size, 0.0);
  for (std::size_t i = 0; i < logits.size(); ++i)
    probabilities[ids.empty() ? i : static_cast<std::size_t>(ids[i])] = std::exp(logits[i] - most) / sum;
  return probabilities;
}

/// The rejection rule tells the distribution each draft was drawn from.
TEST(draft_heads, every_layout_gives_the_reference_distribution_at_every_draft) {
  const made_model made = rand_target();
  const auto target = open_made(made);
  for (const named_heads& each : all_heads(made)) {
    const auto heads = open_made_heads(each.made, *target);
    device_lab lab(make_tiny(tiny_options(2), *target, nullptr, heads.get()));
    lab_sequence sequence = sequence_of(21, 3, 30);
    sequence.sampling.temperature = 1;
    sequence.rule = acceptance_rule::rejection;
    const ticket::row drafts = first_proposal(lab, sequence);
    ASSERT_EQ(drafts.tokens.size(), 3u) << each.name;
    ASSERT_EQ(drafts.q.size(), 3u) << each.name;
    // The first step has no drafts: the prompt's last row had not been computed when they were asked for.
    const std::span<const token_id> known(sequence.known.data(), sequence.prompt.size() + 1);
    const auto logits = gpu::reference::head_reference(heads->describe(), target->describe(), known, drafts.tokens);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<double> expected = softmax(logits[i], heads->describe().target_ids, drafts.q[i].size());
      for (std::size_t id = 0; id < expected.size(); ++id)
        ASSERT_NEAR(static_cast<double>(drafts.q[i][id]), expected[id], 2e-5) << each.name << " draft " << i;
    }
  }
}

TEST(draft_heads, outputs_are_those_without_heads_greedy_and_sampled) {
  const made_model made = rand_target();
  const auto target = open_made(made);
  device_lab plain(make_tiny(tiny_options(1), *target));
  for (const named_heads& each : all_heads(made)) {
    const auto heads = open_made_heads(each.made, *target);
    device_lab lab(make_tiny(tiny_options(2), *target, nullptr, heads.get()));
    for (const float temperature : {0.0F, 1.0F}) {
      lab_sequence alone = sequence_of(40, 0, 60);
      alone.sampling.temperature = temperature;
      alone.sampling.repetition_penalty = 1.2F;
      alone.sampling.presence_penalty = 0.3F;
      lab_sequence drafted = alone;
      drafted.k = 4;
      plain.run(alone);
      lab.run(drafted, 16);
      EXPECT_EQ(drafted.output(), alone.output()) << each.name;
      EXPECT_GT(drafted.drafted, 0) << each.name;
    }
  }
}

void expect_all_accepted(const lab_sequence& sequence, const char* what) {
  EXPECT_GT(sequence.drafted, 0) << what;
  EXPECT_EQ(sequence.accepted, sequence.drafted) << what;
}

/// A prompt that goes on as CYCLE does: the last row may draft behind it too.
lab_sequence cycle_sequence(std::size_t prompt_length, std::int32_t k, std::int32_t max_tokens, token_id first = 9) {
  lab_sequence sequence = sequence_of(0, k, max_tokens);
  for (std::size_t i = 0; i < prompt_length; ++i)
    sequence.prompt.push_back(static_cast<token_id>((static_cast<std::size_t>(first) + i) % 256));
  return sequence;
}

class always_right : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    heads_ = open_made_heads(GetParam() ? make_cycle_eagle() : make_cycle_medusa(), *target_);
    lab_ = std::make_unique<device_lab>(make_tiny(tiny_options(2), *target_, nullptr, heads_.get()));
  }
  std::shared_ptr<const model::model> target_ = open_made(make_cycle());
  std::shared_ptr<const model::draft_heads> heads_;
  std::unique_ptr<device_lab> lab_;
};
INSTANTIATE_TEST_SUITE_P(heads, always_right, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "eagle" : "medusa"; });

TEST_P(always_right, A14_cold_chunked_behind_a_prefix_hit_and_behind_steps_without_drafts) {
  lab_sequence cold = cycle_sequence(163, 3, 40);
  lab_->run(cold);
  expect_all_accepted(cold, "cold");
  EXPECT_LE(cold.steps, 40 / 4 + 2);
  lab_sequence chunked = cycle_sequence(163, 3, 40);
  lab_->run(chunked, 7);
  expect_all_accepted(chunked, "chunked");
  lab_sequence warm = cycle_sequence(163, 3, 40);
  warm.shared_blocks.assign(cold.table.begin(), cold.table.begin() + 10);
  lab_->run(warm);
  expect_all_accepted(warm, "behind a prefix hit");
  EXPECT_EQ(warm.output(), cold.output());
  lab_sequence pausing = cycle_sequence(163, 3, 13);
  for (const std::int32_t k : {3, 0, 3}) {
    pausing.k = k;
    lab_->run(pausing);
    pausing.max_tokens += 13;
  }
  expect_all_accepted(pausing, "behind steps without drafts");
}

TEST_P(always_right, many_sequences_with_different_k_in_one_batch) {
  std::vector<lab_sequence> all;
  for (std::int32_t i = 0; i < 9; ++i)
    all.push_back(cycle_sequence(static_cast<std::size_t>(5 + 4 * i), i % 5, 30, 20 * i));
  std::vector<lab_sequence*> together;
  for (lab_sequence& each : all) together.push_back(&each);
  lab_->run(together, 16);
  for (const lab_sequence& each : all)
    if (each.k > 0) expect_all_accepted(each, "in a batch");
}

/// Everything a random head proposed in a run, with its distributions.
std::vector<ticket::row> all_proposals(device_lab& lab, lab_sequence& sequence, std::int32_t chunk = 0) {
  std::vector<ticket::row> all;
  lab.on_drafts = [&](const ticket& drafts) { all.push_back(drafts.drafts(0)); };
  lab.run(sequence, chunk);
  lab.on_drafts = nullptr;
  std::erase_if(all, [](const ticket::row& row) { return row.tokens.empty(); });
  return all;
}

void expect_same(const std::vector<ticket::row>& a, const std::vector<ticket::row>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tokens, b[i].tokens) << what << ", proposal " << i;
    EXPECT_EQ(a[i].q, b[i].q) << what << ", proposal " << i;
  }
}

/// To the bit: chunks and blocks that another sequence computed leave no trace in what heads see.
TEST(draft_heads, A14_proposals_do_not_depend_on_chunks_or_prefix_hits) {
  const made_model made = rand_target();
  const auto target = open_made(made);
  std::int32_t accepted = 0;
  for (const named_heads& each : all_heads(made)) {
    const auto heads = open_made_heads(each.made, *target);
    device_lab lab(make_tiny(tiny_options(2), *target, nullptr, heads.get()));
    lab_sequence cold = sequence_of(75, 3, 40);
    cold.sampling.temperature = 1;
    cold.rule = acceptance_rule::rejection;
    lab_sequence chunked = cold;
    lab_sequence warm = cold;
    const auto expected = all_proposals(lab, cold);
    EXPECT_GT(cold.drafted, 60) << each.name;
    EXPECT_LT(cold.accepted, cold.drafted) << each.name;
    accepted += cold.accepted;
    expect_same(all_proposals(lab, chunked, 5), expected, std::string(each.name) + ", chunked");
    // The other sequence goes on differently behind the shared blocks.
    lab_sequence other = sequence_of(75, 2, 20);
    other.prompt[65] = 7;
    lab.run(other);
    warm.shared_blocks.assign(other.table.begin(), other.table.begin() + 4);
    expect_same(all_proposals(lab, warm), expected, std::string(each.name) + ", behind a prefix hit");
  }
  EXPECT_GT(accepted, 0) << "no head ever drafted behind a draft that became known";
}

TEST(draft_heads, a_slot_that_has_computed_nothing_gets_no_drafts) {
  const auto target = open_made(make_cycle());
  const auto heads = open_made_heads(make_cycle_eagle(), *target);
  device_lab lab(make_tiny(tiny_options(1), *target, nullptr, heads.get()));
  lab_sequence sequence = sequence_of(1, 3, 1);
  lab.run(sequence);
  EXPECT_EQ(sequence.drafted, 0);
  EXPECT_EQ(sequence.output().size(), 1u);
}

TEST(draft_heads, rows_that_wait_fit_into_the_smallest_steps) {
  const made_model made = rand_target();
  const auto target = open_made(made);
  device_lab plain(make_tiny(tiny_options(1), *target));
  for (const named_heads& each : all_heads(made)) {
    const auto heads = open_made_heads(each.made, *target);
    gpu::host_options options = tiny_options(1);
    options.max_num_batched_tokens = 4;
    device_lab lab(make_tiny(options, *target, nullptr, heads.get()));
    lab_sequence alone = sequence_of(10, 0, 40);
    lab_sequence undrafted = alone;
    plain.run(alone);
    lab.run(undrafted, 4);
    EXPECT_EQ(undrafted.output(), alone.output()) << each.name;
  }
}

TEST(draft_heads, int8_weights_and_narrow_kinds_still_draft_well) {
  const auto target = open_made(make_cycle());
  for (const bool eagle : {true, false}) {
    const auto heads = open_made_heads(eagle ? make_cycle_eagle() : make_cycle_medusa(), *target);
    auto options = tiny_options(2);
    options.dtype = gpu::compute_dtype::automatic;
    options.quantization = gpu::weight_quantization::int8;
    options.kv = gpu::kv_dtype::int8;
    device_lab lab(make_tiny(options, *target, nullptr, heads.get()));
    lab_sequence sequence = sequence_of(50, 3, 60);
    lab.run(sequence);
    expect_all_accepted(sequence, eagle ? "eagle" : "medusa");
  }
}

TEST(draft_heads, the_device_says_what_it_holds) {
  const auto target = open_made(make_cycle());
  const auto bare = make_tiny(tiny_options(1), *target);
  EXPECT_EQ(bare->info().head_method, draft_method::none);
  EXPECT_EQ(bare->open_head_stream(), nullptr);
  const auto heads = open_made_heads(make_cycle_eagle(), *target);
  const auto device = make_tiny(tiny_options(1), *target, nullptr, heads.get());
  EXPECT_EQ(device->info().head_method, draft_method::eagle);
  EXPECT_EQ(device->info().head_draft_limit, limits::kMaxDraftTokens);
  EXPECT_EQ(device->open_draft_stream(), nullptr);
  EXPECT_GT(device->info().weight_bytes, bare->info().weight_bytes);
  EXPECT_GT(device->info().kv_bytes, bare->info().kv_bytes);
  const auto three = open_made_heads(make_cycle_medusa(), *target);
  EXPECT_EQ(make_tiny(tiny_options(1), *target, nullptr, three.get())->info().head_draft_limit, 3);
}

}  // namespace
}  // namespace tandem::test
