// The search against trying everything, on made devices.
#include "core/speculation/draft_search.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/synthetic_server.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kMost = 8;

cost_model costs_of(const synthetic::row_seconds& target, const synthetic::row_seconds& draft) {
  cost_model costs;
  for (int i = 0; i < 12; ++i) {
    for (std::int32_t rows = 1; rows <= 40; ++rows)
      costs.observe(step_seen{.decode_rows = rows, .seconds = target(rows)});
    for (std::int32_t rows = 1; rows <= 8; ++rows)
      costs.observe(drafts_seen{draft_method::draft_model, rows, {}, draft(rows)});
  }
  return costs;
}

draft_option certain(draft_method method, double accepted) {
  draft_option option;
  option.method = method;
  option.most = kMost;
  option.offers[kNoOpinion] = 1;
  for (std::size_t j = 0; j < option.accepted[kNoOpinion].size(); ++j)
    option.accepted[kNoOpinion][j] = std::pow(accepted, static_cast<double>(j + 1));
  return option;
}

double tokens_per_second(const cost_model& costs, const std::vector<draft_option>& options,
                         const std::vector<std::int32_t>& k) {
  auto tokens = static_cast<double>(options.size());
  auto rows = static_cast<double>(options.size());
  std::array<double, kMost> forwards{};
  for (std::size_t i = 0; i < options.size(); ++i) {
    rows += k[i];
    for (std::int32_t j = 0; j < k[i]; ++j) {
      tokens += options[i].accepted[kNoOpinion][static_cast<std::size_t>(j)];
      if (options[i].method == draft_method::draft_model) ++forwards[static_cast<std::size_t>(j)];
    }
  }
  double seconds = costs.step_seconds(rows);
  for (const double sequences : forwards) seconds += costs.forward_seconds(draft_method::draft_model, sequences);
  return tokens / seconds;
}

double best_of_all(const cost_model& costs, const std::vector<draft_option>& options) {
  double best = 0;
  std::vector<std::int32_t> k(options.size(), 0);
  for (;;) {
    best = std::max(best, tokens_per_second(costs, options, k));
    std::size_t i = 0;
    while (i < k.size() && k[i] == kMost) k[i++] = 0;
    if (i == k.size()) return best;
    ++k[i];
  }
}

std::vector<std::int32_t> chosen(const cost_model& costs, const std::vector<draft_option>& options) {
  std::vector<const draft_option*> pointers;
  for (const draft_option& option : options) pointers.push_back(&option);
  step_base base;
  base.rows = static_cast<double>(options.size());
  base.tokens = base.rows;
  base.most_rows = 1000;
  const drafts_found found = search_drafts(costs, base, pointers);
  std::vector<std::int32_t> k;
  for (const auto& drafts : found.drafts) k.push_back(drafts[kNoOpinion]);
  return k;
}

struct made_device {
  const char* name;
  synthetic::row_seconds target;
  synthetic::row_seconds draft;
};

std::vector<made_device> devices() {
  return {{"memory-bound", synthetic::flat_then_linear(0.02, 16), synthetic::flat_then_linear(0.004, 16)},
          {"compute-bound", synthetic::linear(0.02, 0.3), synthetic::linear(0.006, 0.2)},
          {"tiles of 4", synthetic::staircase(0.02, 4, 0.5), synthetic::linear(0.002, 0.1)},
          {"tiles of 8", synthetic::staircase(0.02, 8, 0.9), synthetic::linear(0.001, 0.1)}};
}

TEST(draft_search, is_within_five_percent_of_trying_everything) {
  const std::vector<std::vector<double>> companies{{0.2},      {0.5},      {0.8},           {0.95},
                                                   {0.1, 0.9}, {0.7, 0.7}, {0.3, 0.6, 0.9}, {0.85, 0.85, 0.85}};
  for (const made_device& made : devices()) {
    const cost_model costs = costs_of(made.target, made.draft);
    for (const draft_method method : {draft_method::ngram, draft_method::draft_model}) {
      for (const std::vector<double>& company : companies) {
        std::vector<draft_option> options;
        for (const double accepted : company) options.push_back(certain(method, accepted));
        const double best = best_of_all(costs, options);
        EXPECT_GE(tokens_per_second(costs, options, chosen(costs, options)), 0.95 * best)
            << made.name << " method " << static_cast<int>(method) << " " << company.front() << " of "
            << company.size();
      }
    }
  }
}

TEST(draft_search, gives_few_drafts_to_bad_sources_many_to_good_ones_and_none_under_load) {
  const cost_model costs = costs_of(synthetic::flat_then_linear(0.02, 12), synthetic::linear(0.001, 0.05));
  const auto alone = [&](double accepted) {
    return chosen(costs, {certain(draft_method::draft_model, accepted)}).front();
  };
  EXPECT_GE(alone(0.45), 1);
  EXPECT_LE(alone(0.45), 3);
  EXPECT_GE(alone(0.85), 5);
  EXPECT_EQ(alone(0.03), 0);
  for (const std::int32_t k : chosen(costs, std::vector<draft_option>(64, certain(draft_method::draft_model, 0.7))))
    EXPECT_LE(k, 1);
}

TEST(draft_search, gives_the_drafts_to_those_that_use_them) {
  const cost_model costs = costs_of(synthetic::linear(0.02, 0.3), synthetic::linear(0.001, 0.05));
  const auto k = chosen(costs, {certain(draft_method::ngram, 0.2), certain(draft_method::ngram, 0.95)});
  EXPECT_LT(k[0], k[1]);
}

TEST(draft_search, weighs_a_rare_offer_by_what_it_gains_when_it_comes) {
  const cost_model costs = costs_of(synthetic::linear(0.02, 0.25), synthetic::linear(0.001, 0.05));
  draft_option option = certain(draft_method::ngram, 0.1);
  option.offers = {0.6, 0.3, 0, 0, 0, 0.1};
  option.accepted[5] = certain(draft_method::ngram, 0.95).accepted[kNoOpinion];
  step_base base{.tokens = 1, .rows = 1, .most_rows = 100};
  const drafts_found found = search_drafts(costs, base, {&option});
  EXPECT_EQ(found.drafts[0][1], 0);
  EXPECT_EQ(found.drafts[0][5], kMost);
  EXPECT_GT(found.tokens_per_second(), 1 / costs.step_seconds(1));
}

TEST(draft_search, drafts_beside_a_prompt_only_when_a_draft_is_worth_a_prompt_row) {
  const cost_model costs = costs_of(synthetic::flat_then_linear(0.02, 16), synthetic::linear(0.001, 0.05));
  const draft_option option = certain(draft_method::ngram, 0.6);
  step_base base{.tokens = 1, .rows = 1, .most_rows = 100};
  EXPECT_GT(search_drafts(costs, base, {&option}).drafts[0][kNoOpinion], 3);
  base.least_row_seconds = 0.02;
  EXPECT_EQ(search_drafts(costs, base, {&option}).drafts[0][kNoOpinion], 0);
}

TEST(draft_search, stays_within_the_rows_of_the_step) {
  const cost_model costs = costs_of(synthetic::flat_then_linear(0.02, 64), synthetic::linear(0.001, 0.05));
  const std::vector<draft_option> options(4, certain(draft_method::ngram, 0.95));
  std::vector<const draft_option*> pointers;
  for (const draft_option& option : options) pointers.push_back(&option);
  const step_base base{.tokens = 4, .rows = 4, .most_rows = 10};
  std::int32_t rows = 0;
  for (const auto& drafts : search_drafts(costs, base, pointers).drafts) rows += drafts[kNoOpinion];
  EXPECT_EQ(rows, 10);
}

}  // namespace
}  // namespace tandem
