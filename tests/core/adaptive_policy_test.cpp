// The adaptive policy in a closed loop with made devices and sources: never slower than plain decoding, as good as the
// best fixed choice, back when a source comes back.
#include "core/speculation/adaptive_policy.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/sources.hpp"
#include "tests/core/synthetic_server.hpp"

namespace tandem {
namespace {

using synthetic::device;
using synthetic::matches;
using synthetic::model;
using synthetic::server;
using synthetic::source_at;

speculation_settings automatic() {
  return {draft_method::draft_model, limits::kMaxDraftTokens, std::nullopt, true, true};
}
speculation_params asking_for(std::optional<draft_method> method, std::optional<std::int32_t> k, bool adaptive) {
  return {method, k, adaptive};
}

source_at always(const synthetic::source& made) {
  return [made](std::int64_t, std::size_t) { return made; };
}
/// Good and bad by turns.
source_at by_turns(const synthetic::source& good, const synthetic::source& bad, std::int64_t steps) {
  return [=](std::int64_t step, std::size_t) { return step / steps % 2 == 0 ? bad : good; };
}

struct named_device {
  const char* name;
  device made;
};
std::vector<named_device> devices() {
  device flat;
  flat.target = synthetic::flat_then_linear(0.02, 16);
  flat.draft = synthetic::flat_then_linear(0.006, 16);
  device tiles;
  tiles.target = synthetic::staircase(0.02, 4, 0.4);
  device noisy_flat = flat;
  noisy_flat.noise = 0.1;
  noisy_flat.slow_steps = 0.01;
  device noisy_linear;
  noisy_linear.noise = 0.1;
  noisy_linear.slow_steps = 0.01;
  device small_model;
  small_model.target = synthetic::linear(0.003, 0.25);
  small_model.draft = synthetic::linear(0.001, 0.2);
  small_model.asking_seconds = 60e-6;
  return {{"flat", flat},
          {"linear", device{}},
          {"tiles", tiles},
          {"noisy, flat", noisy_flat},
          {"noisy, linear", noisy_linear},
          {"small model", small_model}};
}

struct named_sources {
  const char* name;
  source_at ngram;
  source_at draft_model;
};
std::vector<named_sources> sources() {
  return {{"good", always(matches(0.8, 0.95)), always(model(0.85))},
          {"bad", always(matches(0.3, 0.1)), always(model(0.2))},
          {"n-gram only, chance", always(matches(0.5, 0.05)), nullptr},
          {"changing", by_turns(matches(0.8, 0.95), matches(0.3, 0.05), 300), by_turns(model(0.85), model(0.1), 420)},
          {"some sequences",
           [](std::int64_t, std::size_t i) { return i % 2 == 1 ? matches(0.8, 0.95) : matches(0.1, 0.05); },
           [](std::int64_t, std::size_t i) { return model(i % 3 == 0 ? 0.3 : 0.8); }}};
}

TEST(adaptive_policy, is_never_slower_than_plain_decoding) {
  constexpr std::int64_t kSteps = 1000;
  for (const named_device& on : devices()) {
    for (const named_sources& from : sources()) {
      for (const std::size_t sequences : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
        server loop(on.made, from.ngram, from.draft_model, sequences, 7 * sequences + 1);
        adaptive_policy policy(automatic());
        const double reached = loop.run(policy, kSteps).tokens_per_second();
        EXPECT_GE(reached, 0.98 * loop.plain_tokens_per_second(kSteps))
            << on.name << ", " << from.name << ", " << sequences << " sequences";
      }
    }
  }
}

TEST(adaptive_policy, is_as_good_as_the_best_fixed_choice) {
  constexpr std::int64_t kSteps = 1500;
  for (const std::size_t sequences : {1U, 8U, 32U}) {
    for (const double accepted : {0.3, 0.6, 0.9}) {
      device made;
      made.target = synthetic::flat_then_linear(0.02, 12);
      made.draft = synthetic::linear(0.003, 0.05);
      double best = 0;
      for (const std::int32_t k : {0, 1, 2, 3, 5, 8, 12, 16}) {
        server loop(made, nullptr, always(model(accepted)), sequences, 11);
        fixed_policy fixed({draft_method::draft_model, k, std::nullopt});
        best = std::max(best, loop.run(fixed, kSteps).tokens_per_second());
      }
      server loop(made, nullptr, always(model(accepted)), sequences, 11);
      adaptive_policy policy(automatic());
      EXPECT_GE(loop.run(policy, kSteps).tokens_per_second(), 0.95 * best) << sequences << " at " << accepted;
    }
  }
}

/// The best k for one sequence that is offered a long match in `share` of the steps, in closed form.
std::int32_t best_run(const device& on, double share, double accepted) {
  std::int32_t best = 0;
  double best_tokens_per_second = 0;
  double run = 0;
  for (std::int32_t k = 0; k <= limits::kMaxDraftTokens; ++k) {
    run += std::pow(accepted, k);
    const double tokens = share * run + (1 - share);
    const double seconds = share * on.target(1 + k) + (1 - share) * on.target(1) + on.asking_seconds;
    if (tokens / seconds <= best_tokens_per_second) continue;
    best_tokens_per_second = tokens / seconds;
    best = k;
  }
  return best;
}

TEST(adaptive_policy, drafts_long_runs_of_a_copy_and_few_of_a_bad_guess) {
  const auto mean_k = [&](double flat_rows, const synthetic::source& ngram) {
    server loop(device{.target = synthetic::flat_then_linear(0.02, flat_rows)}, always(ngram), nullptr, 1, 3);
    adaptive_policy policy(automatic());
    loop.run(policy, 300);
    const auto later = loop.run(policy, 300);
    return static_cast<double>(later.drafted) / static_cast<double>(later.steps);
  };
  // On eight rows for the price of one a run of 7 is best (329 tokens/s, 16 drafts: 304); on 24 rows one of 16.
  EXPECT_EQ(best_run(device{.target = synthetic::flat_then_linear(0.02, 8)}, 0.9, 0.97), 7);
  EXPECT_EQ(best_run(device{.target = synthetic::flat_then_linear(0.02, 24)}, 0.9, 0.97), 16);
  EXPECT_GT(mean_k(8, matches(0.9, 0.97)), 0.9 * 6);
  EXPECT_LT(mean_k(8, matches(0.9, 0.97)), 0.9 * 12);
  EXPECT_GT(mean_k(24, matches(0.9, 0.97)), 10);
  EXPECT_LT(mean_k(8, matches(0.0, 0.05)), 4);
}

TEST(adaptive_policy, drafts_from_a_copy_within_the_first_steps) {
  for (const double share : {0.1, 0.25}) {
    server loop(device{.target = synthetic::linear(0.02, share)}, always(matches(0.9, 0.97)), nullptr, 1, 3);
    adaptive_policy policy(automatic());
    EXPECT_GT(loop.run(policy, 20).drafted, 20) << share;
  }
}

TEST(adaptive_policy, comes_back_to_a_source_that_became_good_again) {
  for (const bool from_text : {false, true}) {
    constexpr std::int64_t kBadSteps = 1500;
    const auto turn = [=](const synthetic::source& bad, const synthetic::source& good) -> source_at {
      return [=](std::int64_t step, std::size_t) { return step < kBadSteps ? bad : good; };
    };
    const source_at ngram = from_text ? turn(matches(0.3, 0.02), matches(0.9, 0.95)) : source_at{};
    const source_at draft = from_text ? source_at{} : turn(model(0.05), model(0.9));
    server loop(device{.target = synthetic::linear(0.02, 0.1), .draft = synthetic::linear(0.004, 0.1)}, ngram, draft, 1,
                5);
    adaptive_policy policy(automatic());
    const double before = loop.run(policy, kBadSteps).tokens_per_second();
    loop.run(policy, 600);
    const double after = loop.run(policy, 400).tokens_per_second();
    EXPECT_GT(after, 1.5 * before) << (from_text ? "n-gram" : "draft model");
  }
}

/// In closed form 16 copied tokens and 6 guessed ones are best (785 tokens/s), against 692 with n-grams alone: a policy
/// that does not know the sequences and has to learn each new one must still be beyond the better source alone.
TEST(adaptive_policy, uses_for_each_sequence_the_source_that_suits_it) {
  device made;
  made.target = synthetic::flat_then_linear(0.02, 24);
  made.draft = synthetic::flat_then_linear(0.0005, 24);
  const source_at ngram = [](std::int64_t, std::size_t i) { return i == 0 ? matches(0.95, 0.97) : matches(0.0, 0.02); };
  const source_at draft = [](std::int64_t, std::size_t i) { return model(i == 0 ? 0.1 : 0.9); };
  const auto reached = [&](const source_at& first, const source_at& second, speculation_policy& policy) {
    server loop(made, first, second, 2, 9);
    loop.run(policy, 500);
    return loop.run(policy, 500).tokens_per_second();
  };
  adaptive_policy both(automatic());
  adaptive_policy only_ngram(automatic());
  adaptive_policy only_draft(automatic());
  const double alone = std::max(reached(ngram, nullptr, only_ngram), reached(nullptr, draft, only_draft));
  const double with_both = reached(ngram, draft, both);
  EXPECT_GT(with_both, alone);
}

/// The choice for one sequence after `warm_up` good steps with both sources.
draft_choice choice_for(const speculation_params& wanted, per_method<bool> available = kNgramAndModel,
                        std::optional<std::int32_t> disable_above = {}, std::size_t sequences = 1) {
  speculation_settings settings = automatic();
  settings.disable_by_batch_size = disable_above;
  adaptive_policy policy(settings);
  device made;
  made.target = synthetic::flat_then_linear(0.02, 64);
  made.draft = synthetic::flat_then_linear(0.001, 64);
  server loop(made, always(matches(0.9, 0.95)), always(model(0.9)), 1, 1);
  loop.run(policy, 200);
  for (int i = 0; i < 20; ++i)
    policy.observe(step_seen{.decode_rows = static_cast<std::int32_t>(sequences), .seconds = 0.02});
  sequence_acceptance acceptance;
  std::vector<draft_question> asked(sequences);
  for (draft_question& each : asked) {
    each.wanted = &wanted;
    each.acceptance = &acceptance;
    each.decoding = true;
    each.length = 100;
    each.tokens_left = 100;
    each.fits.fill(limits::kMaxDraftTokens);
    each.unseen.fill(1);
  }
  step_question question;
  question.sequences = asked;
  question.available = available;
  question.row_budget = 1000;
  return policy.choose(question).front();
}

TEST(adaptive_policy, keeps_to_what_a_request_fixes) {
  EXPECT_EQ(choice_for(asking_for(draft_method::none, {}, true)).k, 0);
  const draft_choice exact = choice_for(asking_for(draft_method::ngram, 4, false));
  EXPECT_EQ(exact.method, draft_method::ngram);
  EXPECT_EQ(exact.k, 4);
  EXPECT_EQ(exact.most, same_for_all(4));
  EXPECT_EQ(choice_for(asking_for({}, 3, false)).method, draft_method::draft_model);
  EXPECT_EQ(choice_for(asking_for({}, {}, false)).k, limits::kDefaultDraftTokens);
  EXPECT_EQ(choice_for(asking_for(draft_method::ngram, 4, false), only({draft_method::draft_model})).k, 0);
}

TEST(adaptive_policy, stays_within_what_a_request_allows) {
  EXPECT_GT(choice_for({}).k, 3);
  const draft_choice few = choice_for(asking_for({}, 3, true));
  EXPECT_GT(few.k, 0);
  EXPECT_LE(few.k, 3);
  EXPECT_EQ(choice_for(asking_for(draft_method::ngram, {}, true)).method, draft_method::ngram);
  EXPECT_EQ(choice_for(asking_for(draft_method::draft_model, {}, true)).method, draft_method::draft_model);
  EXPECT_EQ(choice_for(asking_for(draft_method::ngram, {}, true), only({draft_method::draft_model})).k, 0);
  EXPECT_EQ(choice_for({}, only({})).k, 0);
  EXPECT_EQ(choice_for({}, kNgramAndModel, 4, 5).k, 0);
  EXPECT_GT(choice_for({}, kNgramAndModel, 4, 4).k, 0);
}

TEST(adaptive_policy, gives_the_same_choices_for_the_same_past) {
  std::vector<double> tokens;
  for (int i = 0; i < 2; ++i) {
    server loop(device{}, always(matches(0.5, 0.8)), always(model(0.7)), 8, 21);
    adaptive_policy policy(automatic());
    const auto all = loop.run(policy, 400);
    tokens.insert(tokens.end(), {all.tokens, all.seconds, static_cast<double>(all.drafts_asked)});
  }
  EXPECT_EQ(tokens[0], tokens[3]);
  EXPECT_EQ(tokens[1], tokens[4]);
  EXPECT_EQ(tokens[2], tokens[5]);
}

}  // namespace
}  // namespace tandem
