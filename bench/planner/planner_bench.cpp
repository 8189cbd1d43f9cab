// Cost of one turn of the pure scheduler: commit a step's outcome, plan the next one; and of choosing the drafts of a
// step. No device, no messages.
#include <benchmark/benchmark.h>

#include <memory>

#include "core/scheduling/scheduler.hpp"
#include "core/speculation/adaptive_policy.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kPromptTokens = 64;
constexpr std::int32_t kMaxTokens = 1'000'000;

std::unique_ptr<scheduler> make_scheduler(std::int32_t sequences) {
  scheduler_options options;
  options.max_num_seqs = sequences;
  options.max_num_batched_tokens = 4096;
  options.max_model_len = kPromptTokens + kMaxTokens;
  options.num_kv_blocks = (kPromptTokens + kMaxTokens) / options.block_size * 2;
  options.prefix_caching = false;
  return std::make_unique<scheduler>(options, make_policy(speculation_settings{}));
}

admit_sequence admission(std::uint64_t number) {
  admit_sequence admit;
  admit.id = {{number}, 0};
  admit.request = std::make_shared<generation_request>();
  admit.prompt = std::make_shared<const std::vector<token_id>>(kPromptTokens, 1);
  admit.sampling = std::make_shared<sampling_params>();
  admit.max_tokens = kMaxTokens;
  admit.arrival = number;
  return admit;
}

step_finished answer(const step_work& work) {
  auto outcome = std::make_shared<step_outcome>();
  outcome->step = work.step;
  for (const step_rows& rows : work.rows) {
    slot_outcome slot;
    slot.slot = rows.slot;
    slot.slot_gen = rows.slot_gen;
    slot.rows_done = static_cast<std::int32_t>(rows.tokens.size());
    if (rows.yields_token) slot.tokens = {5};
    outcome->slots.push_back(std::move(slot));
  }
  return {outcome};
}

/// Answers leases at once, as the allocator would during the step.
struct turn {
  scheduler& under_test;
  block_id next_block = 0;
  std::shared_ptr<const step_work> work;

  void take(const scheduler_commands& commands, time_point now) {
    if (commands.step) work = commands.step->work;
    if (!commands.lease) return;
    blocks_leased leased{1, {}, 1'000'000};
    for (std::int32_t i = 0; i < commands.lease->want; ++i) leased.blocks.push_back(next_block++);
    take(under_test.on(leased, now), now);
  }
};

void commit_and_plan(benchmark::State& state) {
  const auto sequences = static_cast<std::int32_t>(state.range(0));
  const auto under_test = make_scheduler(sequences);
  turn loop{*under_test};
  const time_point now{};
  for (std::int32_t i = 0; i < sequences; ++i) loop.take(under_test->on(admission(i + 1ull), now), now);
  for (auto _ : state) {
    state.PauseTiming();
    const step_finished message = answer(*loop.work);
    state.ResumeTiming();
    loop.take(under_test->on(message, now), now);
  }
  state.SetItemsProcessed(state.iterations() * sequences);
}
BENCHMARK(commit_and_plan)->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Iterations(2000);

/// Both sources can serve, every sequence may use either, and nothing is free.
void choose_drafts(benchmark::State& state) {
  const auto sequences = static_cast<std::size_t>(state.range(0));
  adaptive_policy policy(
      {.method = draft_method::none, .k = limits::kMaxDraftTokens, .adaptive = true, .any_method = true});
  std::vector<sequence_acceptance> acceptance(sequences);
  std::vector<draft_question> asked(sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    asked[i].acceptance = &acceptance[i];
    asked[i].decoding = true;
    asked[i].length = 1000;
    asked[i].tokens_left = 1000;
    asked[i].fits.fill(limits::kMaxDraftTokens);
    asked[i].unseen.fill(1);
  }
  for (std::int32_t rows = 1; rows <= 2048; rows += 1 + rows / 8)
    policy.observe(step_seen{.decode_rows = rows, .seconds = 0.02 + 1e-4 * rows});
  step_question question;
  question.sequences = asked;
  question.available.fill(true);
  question.row_budget = 2048;
  for (auto _ : state) benchmark::DoNotOptimize(policy.choose(question));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(choose_drafts)->Arg(1)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tandem
