#pragma once
/// Real answers replayed under a policy: what each step would have cost and given, the model's tokens being known.
/// One sequence at a time, drafts from prompt lookup and from a draft model, on a made device.

#include <cstdint>
#include <string>
#include <vector>

#include "core/speculation/policy.hpp"
#include "tests/core/synthetic_server.hpp"

namespace tandem::recorded {

struct answer {
  std::string name;
  std::vector<token_id> prompt;
  std::vector<token_id> output;
  std::vector<bool> foretold;  ///< the draft model says the same, given the tokens before
};

/// tests/core/data/answers.txt.
std::vector<answer> answers();

struct device {
  synthetic::row_seconds target;
  synthetic::row_seconds draft;  ///< one forward; none: there is no draft model
  double noise = 0;              ///< standard deviation of the logarithm of a step's seconds
};

/// Shapes of devices, with and without a draft model: two measured ones, on which rows cost early, and one with much
/// arithmetic to spare.
struct named_device {
  std::string name;
  device on;
};
std::vector<named_device> devices();
/// Everything left to the policy.
speculation_settings automatic();

/// Seconds of all steps of the answer. Policies learn across calls.
double replay(const answer& of, const device& on, speculation_policy& policy, std::uint64_t seed);
double plain(const answer& of, const device& on);
/// With the best number of drafts of prompt lookup at each step, known beforehand.
double foreknown(const answer& of, const device& on);

}  // namespace tandem::recorded
