// The device as a whole: options, failures, streams, and its numbers against the double-precision oracle.
#include "gpu/host/host_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <random>

#include "gpu/reference/forward_reference.hpp"
#include "tests/gpu/device_lab.hpp"
#include "tests/gpu/host_isas.hpp"

namespace tandem::test {
namespace {

std::shared_ptr<const model::model> rand_model() {
  return open_made(make_rand());
}

error refused(const gpu::host_options& options) {
  const auto device = gpu::make_host_device(options, *rand_model(), nullptr);
  EXPECT_FALSE(device.has_value());
  return device ? error{} : device.error();
}

TEST(host_device, refuses_options_out_of_range_and_names_them) {
  auto options = tiny_options();
  options.block_size = 257;
  EXPECT_EQ(refused(options).param, "block_size");
  options = tiny_options();
  options.max_num_seqs = 0;
  EXPECT_EQ(refused(options).param, "max_num_seqs");
  options = tiny_options();
  options.max_model_len = 513;  // the model was made for 512
  EXPECT_EQ(refused(options).param, "max_model_len");
  options = tiny_options();
  options.isa = "abacus";
  EXPECT_NE(refused(options).message.find("abacus"), std::string::npos);
  options = tiny_options();
  options.num_kv_blocks = 0;
  options.kv_bytes = 1;
  EXPECT_EQ(refused(options).code, error_code::io);
}

TEST(host_device, says_what_it_holds) {
  auto options = tiny_options(2);
  options.num_kv_blocks = 0;
  options.max_num_seqs = 3;
  std::vector<double> progress;
  options.on_progress = [&](double fraction) { progress.push_back(fraction); };
  const auto target = rand_model();
  const auto device = make_tiny(options, *target, target.get());
  const gpu::device_info& info = device->info();
  EXPECT_EQ(info.num_kv_blocks, 3 * 512 / 16) << "never more than all slots could use";
  // Keys and values of 2 layers, 2 kv heads of 16 channels, fp32, for target and draft.
  EXPECT_EQ(info.kv_bytes, 2ULL * 96 * 16 * 2 * 2 * 2 * 16 * 4);
  EXPECT_EQ(info.draft_context_limit, 512);
  EXPECT_EQ(info.vocabulary_size, 259);
  EXPECT_EQ(info.threads, 2);
  EXPECT_GT(info.weight_bytes, 0U);
  EXPECT_NE(info.name.find("2 threads"), std::string::npos);
  ASSERT_FALSE(progress.empty());
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  EXPECT_LE(progress.back(), 1.0);
}

TEST(host_device, without_a_draft_model_there_is_no_draft_stream) {
  const auto device = make_tiny(tiny_options(), *rand_model());
  EXPECT_EQ(device->open_draft_stream(), nullptr);
  EXPECT_EQ(device->info().draft_context_limit, 0);
}

slot_opening opening_of(slot_id slot, const std::vector<token_id>& prompt) {
  slot_opening opening;
  opening.slot = slot;
  opening.slot_gen = 1;
  auto greedy = std::make_shared<sampling_params>();
  greedy->temperature = 0;
  opening.sampling = greedy;
  opening.prompt_length = static_cast<std::int32_t>(prompt.size());
  opening.known = std::make_shared<const std::vector<token_id>>(prompt);
  opening.top_logprobs = 5;
  return opening;
}

step_rows rows_at(slot_id slot, std::int32_t position, std::vector<token_id> tokens) {
  step_rows rows;
  rows.slot = slot;
  rows.slot_gen = 1;
  rows.first_position = position;
  rows.tokens = std::move(tokens);
  rows.yields_token = true;
  return rows;
}

/// As a beam that forks: the second sequence holds the first one's full block and a copy of its last one.
TEST(host_device, copies_blocks_before_the_rows_of_the_step_that_says_so) {
  for (const gpu::kv_dtype kv : {gpu::kv_dtype::fp32, gpu::kv_dtype::bf16, gpu::kv_dtype::int8}) {
    auto options = tiny_options(2);
    options.kv = kv;
    device_lab lab(make_tiny(options, *rand_model()));
    std::vector<token_id> prompt(20);
    for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<token_id>(i * 31 % 256);
    const auto step = [&](step_id id, auto fill) {
      auto work = std::make_shared<step_work>();
      work->step = id;
      fill(*work);
      return lab.step(work);
    };
    const auto first = step(1, [&](step_work& work) {
      work.opened.push_back(opening_of(0, prompt));
      work.table_deltas.push_back({0, 0, {4, 7}});
      work.rows.push_back(rows_at(0, 0, prompt));
    });
    const token_id next = first.slots[0].tokens[0];
    const auto expected = step(2, [&](step_work& work) { work.rows.push_back(rows_at(0, 20, {next})); });
    const auto forked = step(3, [&](step_work& work) {
      work.opened.push_back(opening_of(1, prompt));
      work.table_deltas.push_back({1, 0, {4, 2}});
      work.copies.push_back({7, 2});
      work.rows.push_back(rows_at(1, 20, {next}));
      work.rows.push_back(rows_at(0, 21, {expected.slots[0].tokens[0]}));
    });
    ASSERT_TRUE(forked.ok);
    EXPECT_EQ(forked.slots[0].tokens, expected.slots[0].tokens);
    EXPECT_EQ(forked.slots[0].logprobs[0].top, expected.slots[0].logprobs[0].top);
  }
}

TEST(host_device, a_step_without_rows_completes) {
  device_lab lab(make_tiny(tiny_options(), *rand_model()));
  auto work = std::make_shared<step_work>();
  work->step = 5;
  const step_outcome outcome = lab.step(work);
  EXPECT_TRUE(outcome.ok);
  EXPECT_EQ(outcome.step, 5U);
  EXPECT_TRUE(outcome.slots.empty());
}

TEST(host_device, closing_a_stream_answers_every_launch_and_the_device_goes_on) {
  const auto device = make_tiny(tiny_options(), *rand_model());
  auto stream = device->open_target_stream();
  auto stuck = std::make_shared<step_work>();
  stuck->step = 1;
  stuck->tickets.push_back(std::make_shared<ticket>(0));  // nobody fills it
  auto queued = std::make_shared<step_work>();
  queued->step = 2;
  std::vector<step_outcome> outcomes;
  for (const auto& work : {stuck, queued})
    stream->launch(work, [&](step_outcome outcome) { outcomes.push_back(std::move(outcome)); });
  stream.reset();
  ASSERT_EQ(outcomes.size(), 2U);
  for (const step_outcome& each : outcomes) EXPECT_FALSE(each.ok);
  auto next = device->open_target_stream();
  std::promise<bool> ok;
  next->launch(queued, [&](step_outcome outcome) { ok.set_value(outcome.ok); });
  EXPECT_TRUE(ok.get_future().get());
}

TEST(host_device, a_step_whose_drafts_never_come_runs_without_them) {
  const auto target = rand_model();
  device_lab lab(make_tiny(tiny_options(), *target));
  auto work = std::make_shared<step_work>();
  slot_opening opened;
  opened.slot = 0;
  opened.sampling = std::make_shared<const sampling_params>();
  opened.prompt_length = 2;
  opened.known = std::make_shared<const std::vector<token_id>>(std::vector<token_id>{1, 2});
  work->opened.push_back(opened);
  work->table_deltas.push_back({0, 0, {3}});
  work->tickets.push_back(std::make_shared<ticket>(1));
  step_rows rows;
  rows.slot = 0;
  rows.tokens = {1, 2};
  rows.yields_token = true;
  rows.draft_rows = 4;
  rows.offers[0] = {0, 0};
  work->rows.push_back(rows);
  const step_outcome outcome = lab.step(work);
  ASSERT_TRUE(outcome.ok);
  EXPECT_EQ(outcome.slots[0].tokens.size(), 1U);
  EXPECT_EQ(outcome.slots[0].drafted, 0);
  EXPECT_GT(outcome.ticket_wait_ns, 0U);
}

/// One step over the prompt {1, 2} with two offers.
slot_outcome step_with_offers(device_lab& lab, std::vector<token_id> first, std::vector<token_id> second) {
  auto work = std::make_shared<step_work>();
  slot_opening opened;
  opened.slot = 0;
  sampling_params greedy;
  greedy.temperature = 0;
  opened.sampling = std::make_shared<const sampling_params>(greedy);
  opened.prompt_length = 2;
  opened.known = std::make_shared<const std::vector<token_id>>(std::vector<token_id>{1, 2});
  work->opened.push_back(opened);
  work->table_deltas.push_back({0, 0, {3}});
  for (std::vector<token_id>* drafts : {&first, &second}) {
    work->tickets.push_back(std::make_shared<ticket>(1));
    work->tickets.back()->fill(0).tokens = std::move(*drafts);
    work->tickets.back()->seal();
  }
  step_rows rows;
  rows.slot = 0;
  rows.tokens = {1, 2};
  rows.yields_token = true;
  rows.draft_rows = 2;
  rows.offers = {draft_offer{0, 0}, draft_offer{1, 0}};
  work->rows.push_back(rows);
  const step_outcome outcome = lab.step(work);
  TANDEM_ASSERT(outcome.ok);
  return outcome.slots.at(0);
}

TEST(host_device, drafts_come_from_the_first_offer_that_has_any) {
  const auto target = rand_model();
  device_lab lab(make_tiny(tiny_options(), *target));
  const token_id next = step_with_offers(lab, {}, {}).tokens.at(0);
  const token_id other = next == 0 ? 1 : 0;
  const slot_outcome none = step_with_offers(lab, {}, {});
  EXPECT_EQ(none.offer, -1);
  EXPECT_EQ(none.drafted, 0);
  const slot_outcome second = step_with_offers(lab, {}, {next, next, next});
  EXPECT_EQ(second.offer, 1);
  EXPECT_EQ(second.drafted, 2);
  EXPECT_GE(second.accepted, 1);
  const slot_outcome first = step_with_offers(lab, {other}, {next});
  EXPECT_EQ(first.offer, 0);
  EXPECT_EQ(first.drafted, 1);
  EXPECT_EQ(first.accepted, 0);
  EXPECT_EQ(first.tokens, std::vector<token_id>{next});
}

/// log-softmax of each reference row at the ids the device reports.
double worst_difference(const std::vector<token_logprobs>& scores, const std::vector<std::vector<double>>& logits) {
  double worst = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double largest = *std::max_element(logits[i].begin(), logits[i].end());
    double total = 0;
    for (const double logit : logits[i]) total += std::exp(logit - largest);
    for (const auto& [id, logprob] : scores[i].top)
      worst =
          std::max(worst, std::abs(logprob - (logits[i][static_cast<std::size_t>(id)] - largest - std::log(total))));
  }
  return worst;
}

double worst_over_prompt(const model::model& opened, std::size_t length, const std::string& isa) {
  auto options = tiny_options(2);
  options.isa = isa;
  device_lab lab(make_tiny(options, opened));
  lab_sequence sequence;
  std::mt19937 random(3);
  for (std::size_t i = 0; i < length; ++i) sequence.prompt.push_back(static_cast<token_id>(random() % 256));
  sequence.max_tokens = 0;
  sequence.prompt_logprobs = 20;
  lab.run(sequence, 50);
  EXPECT_EQ(sequence.prompt_scores.size(), length - 1);
  return worst_difference(sequence.prompt_scores,
                          gpu::reference::forward_reference(opened.describe(), sequence.prompt));
}

TEST(host_device, agrees_with_the_double_precision_oracle_for_every_architecture_and_instruction_set) {
  for (const char* architecture : {"llama", "qwen2"})
    for (const auto set : gpu::host::runnable_isas()) {
      rand_options options;
      options.architecture = architecture;
      options.tied = std::string(architecture) == "qwen2";
      const auto opened = open_made(make_rand(options));
      EXPECT_LT(worst_over_prompt(*opened, 60, std::string(gpu::host::isa_name(set))), 1e-3) << architecture;
    }
}

TEST(host_device, E4_every_rope_scaling_is_applied_far_beyond_the_original_context) {
  using scaling = model::rope_description::scaling_kind;
  for (const scaling kind : {scaling::none, scaling::linear, scaling::llama3, scaling::yarn}) {
    rand_options options;
    options.rope.scaling = kind;
    options.rope.factor = kind == scaling::none ? 1.0 : 4.0;
    options.rope.original_context = 32;
    const auto opened = open_made_folder(make_rand(options));
    ASSERT_EQ(opened->describe().rope.scaling, kind);
    EXPECT_LT(worst_over_prompt(*opened, 4 * 32 + 2, ""), 1e-3) << static_cast<int>(kind);
  }
}

TEST(host_device, E4_factors_of_a_gguf_tensor_are_applied) {
  rand_options options;
  options.rope.frequency_divisors = {1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 8.0F};
  const auto opened = open_made(make_rand(options));
  ASSERT_EQ(opened->describe().rope.frequency_divisors.size(), 8U);
  EXPECT_LT(worst_over_prompt(*opened, 4 * 32 + 2, ""), 1e-3);
}

TEST(host_device, quantised_weights_stay_close_to_the_oracle_on_the_fast_path) {
  for (const auto kind : {model::tensor_kind::q8_0, model::tensor_kind::bf16}) {
    rand_options made;
    made.kind = kind;
    const auto opened = open_made(make_rand(made));
    auto options = tiny_options(2);
    options.dtype = gpu::compute_dtype::automatic;
    device_lab lab(make_tiny(options, *opened));
    lab_sequence sequence;
    for (token_id i = 0; i < 60; ++i) sequence.prompt.push_back(i * 37 % 256);
    sequence.max_tokens = 0;
    sequence.prompt_logprobs = 20;
    lab.run(sequence);
    const auto logits = gpu::reference::forward_reference(opened->describe(), sequence.prompt);
    EXPECT_LT(worst_difference(sequence.prompt_scores, logits), 0.5);
  }
}

}  // namespace
}  // namespace tandem::test
