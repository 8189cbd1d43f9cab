// The adaptive policy on real answers: tests/core/recorded_answers.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/core/recorded_answers.hpp"

namespace tandem::recorded {
namespace {

constexpr std::uint64_t kSeeds = 6;

/// Seconds by answer, in units of plain decoding, over several noises from a cold start each.
std::vector<double> adaptive_shares(const device& on) {
  std::vector<std::unique_ptr<speculation_policy>> policies;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) policies.push_back(make_policy(automatic()));
  std::vector<double> shares;
  for (const answer& each : answers()) {
    double seconds = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) seconds += replay(each, on, *policies[seed], seed) / kSeeds;
    shares.push_back(seconds / plain(each, on));
  }
  return shares;
}

double sum(const std::vector<double>& shares) {
  double all = 0;
  for (const double share : shares) all += share;
  return all;
}

/// The one method and number that are best over all answers.
double best_fixed(const device& on) {
  double best = static_cast<double>(answers().size());
  for (const draft_method method : {draft_method::ngram, draft_method::draft_model}) {
    if (method == draft_method::draft_model && !on.draft) continue;
    for (const std::int32_t k : {1, 2, 3, 4, 6, 8, 12, 16}) {
      fixed_policy policy({method, k, std::nullopt});
      double all = 0;
      for (const answer& each : answers()) all += replay(each, on, policy, 1) / plain(each, on);
      best = std::min(best, all);
    }
  }
  return best;
}

TEST(adaptive_policy_on_real_answers, is_never_slower_than_plain_decoding) {
  for (const auto& [name, on] : devices()) {
    const std::vector<double> shares = adaptive_shares(on);
    for (std::size_t i = 0; i < shares.size(); ++i) EXPECT_LE(shares[i], 1 / 0.98) << name << ", " << answers()[i].name;
  }
}

TEST(adaptive_policy_on_real_answers, is_nearly_as_good_over_all_as_the_best_fixed_choice_in_hindsight) {
  for (const auto& [name, on] : devices()) {
    EXPECT_LE(sum(adaptive_shares(on)), best_fixed({on.target, on.draft, 0}) / 0.96) << name;
  }
}

TEST(adaptive_policy_on_real_answers, takes_long_repetitions_within_the_first_answer) {
  const auto edit = answers().front();
  ASSERT_EQ(edit.name, "edit");
  for (const auto& [name, on] : devices()) {
    EXPECT_LE(adaptive_shares(on).front(), 1.5 * foreknown(edit, on) / plain(edit, on)) << name;
  }
}

}  // namespace
}  // namespace tandem::recorded
