#pragma once
/// The sampling semantics once more, as plainly as possible (double, sort everything): what the fast code is tested
/// against. And the chi-square test.

#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"

namespace tandem::testing {

/// Seen tokens in order; what came after the first `prompt_length` is output.
struct naive_history {
  std::vector<token_id> tokens;
  std::size_t prompt_length = 0;
};

std::vector<double> naive_penalized(std::vector<double> logits, const sampling_params& params,
                                    const naive_history& history);
/// Probability per id, 0 for filtered ones. Temperature 0: 1 for the greedy token.
std::vector<double> naive_distribution(const std::vector<double>& penalized, const sampling_params& params);

/// Probability that counts this far from `expected` arise by chance. Cells expected under 5 are pooled. 0 when an
/// impossible cell (expected 0) was seen.
double chi_square_p(const std::vector<double>& expected, const std::vector<std::int64_t>& observed);

}  // namespace tandem::testing
