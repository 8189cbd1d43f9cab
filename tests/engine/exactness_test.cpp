// A7 through the whole engine: the joint distribution of the first tokens is the target's own, whatever drafts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <map>
#include <numeric>

#include "tandem/engine.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem {
namespace {

constexpr int kVocabulary = 16;
constexpr int kSamples = 20'000;
constexpr int kChoices = 100;  // of one request
constexpr int kJoint = 3;      // tokens whose joint distribution is compared
constexpr double kLeastExpected = 5;
constexpr double kSigmas = 3.72;  // one side of 1e-4

using tokens = std::vector<std::int32_t>;
using distribution = std::array<double, kVocabulary>;

struct filter {
  const char* name;
  std::int32_t top_k;
  float top_p;
  float temperature;
};
constexpr std::array kFilters = {filter{"none", 0, 1.0F, 1.0F}, filter{"top_k 4", 4, 1.0F, 1.0F},
                                 filter{"top_p 0.8 and hot", 0, 0.8F, 1.3F}};

const tokens& prompt() {
  static const tokens ids = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  return ids;
}

/// RAND with 16 tokens and a draft that is often wrong.
void write_models(const test::temporary_folder& folder) {
  std::vector<std::string> pieces;
  for (char letter = 'a'; letter < 'a' + kVocabulary; ++letter) pieces.emplace_back(1, letter);
  test::rand_options options;
  options.tokenizer = test::pieces_tokenizer(pieces);
  options.hidden = 32;
  options.intermediate = 32;
  options.heads = 2;
  options.kv_heads = 1;
  test::write_gguf(test::make_rand(options), folder / "target.gguf");
  options.noise = 0.6F;
  test::write_gguf(test::make_rand(options), folder / "draft.gguf");
}

Options options_for(const test::temporary_folder& folder, const std::string& rule) {
  Options options;
  options.model = (folder / "target.gguf").string();
  options.draft_model = (folder / "draft.gguf").string();
  options.speculative_config = R"({"adaptive": false, "sampling": ")" + rule + "\"}";
  options.dtype = "fp32";
  options.kv_cache_dtype = "fp32";
  options.threads = 1;
  return options;
}

/// The model's own distribution behind a prefix, all of it.
distribution model_distribution(Engine& engine, const tokens& prefix) {
  Request request;
  request.prompt_token_ids = prefix;
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 1;
  request.sampling.logprobs = kVocabulary;
  request.sampling.speculative_method = "none";
  distribution p{};
  const Output output = engine.generate(request);
  for (const auto& [id, logprob] : output.choices[0].logprobs[0].top)
    p[static_cast<std::size_t>(id)] = std::exp(static_cast<double>(logprob));
  return p;
}

/// Temperature, then top-k, then top-p: docs/api.md.
distribution filtered(const distribution& p, const filter& by) {
  distribution hot = p;
  for (double& value : hot) value = std::pow(value, 1.0 / static_cast<double>(by.temperature));
  const double sum = std::accumulate(hot.begin(), hot.end(), 0.0);
  for (double& value : hot) value /= sum;
  std::array<std::size_t, kVocabulary> order{};
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return hot[a] > hot[b]; });
  const std::size_t kept = by.top_k > 0 ? static_cast<std::size_t>(by.top_k) : order.size();
  double kept_sum = 0;
  for (std::size_t i = 0; i < kept; ++i) kept_sum += hot[order[i]];
  distribution out{};
  double reached = 0;
  for (std::size_t i = 0; i < kept && reached < static_cast<double>(by.top_p); ++i) {
    out[order[i]] = hot[order[i]];
    reached += hot[order[i]] / kept_sum;
  }
  const double left = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& value : out) value /= left;
  return out;
}

/// What the first three tokens behind the prompt should be: 16^3 probabilities.
std::map<tokens, double> exact_joint(Engine& engine, const filter& by) {
  std::map<tokens, double> joint = {{{}, 1.0}};
  for (int depth = 0; depth < kJoint; ++depth) {
    std::map<tokens, double> longer;
    for (const auto& [begin, probability] : joint) {
      if (probability == 0) continue;
      tokens prefix = prompt();
      prefix.insert(prefix.end(), begin.begin(), begin.end());
      const distribution next = filtered(model_distribution(engine, prefix), by);
      for (std::int32_t id = 0; id < kVocabulary; ++id) {
        tokens more = begin;
        more.push_back(id);
        longer[more] = probability * next[static_cast<std::size_t>(id)];
      }
    }
    joint = std::move(longer);
  }
  return joint;
}

struct sampled {
  std::map<tokens, double> counts;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
};

sampled draw(Engine& engine, const filter& by, std::int32_t k) {
  std::vector<std::future<Output>> pending;
  for (int seed = 0; seed < kSamples / kChoices; ++seed) {
    Request request;
    request.prompt_token_ids = prompt();
    request.sampling.temperature = by.temperature;
    request.sampling.top_k = by.top_k;
    request.sampling.top_p = by.top_p;
    request.sampling.seed = static_cast<std::uint64_t>(seed);
    request.sampling.n = kChoices;
    request.sampling.max_tokens = k + kJoint + 1;  // the cap shortens no draft of the tokens that are compared
    request.sampling.num_speculative_tokens = k;
    pending.push_back(engine.submit(std::move(request)));
  }
  sampled out;
  for (auto& each : pending) {
    for (const Choice& choice : each.get().choices) {
      ++out.counts[{choice.token_ids.begin(), choice.token_ids.begin() + kJoint}];
      out.drafted += choice.usage.draft_tokens;
      out.accepted += choice.usage.accepted_tokens;
    }
  }
  return out;
}

/// Standard deviations by which chi-square exceeds what it should be (Wilson and Hilferty's cube root).
double excess(const std::map<tokens, double>& joint, const std::map<tokens, double>& counts) {
  double chi_square = 0;
  double pooled_expected = 0;
  double pooled_count = 0;
  int cells = 0;
  const auto add = [&](double expected, double count) {
    chi_square += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (const auto& [cell, probability] : joint) {
    const auto found = counts.find(cell);
    const double count = found == counts.end() ? 0 : found->second;
    const double expected = probability * kSamples;
    if (expected >= kLeastExpected) {
      add(expected, count);
    } else {
      pooled_expected += expected;
      pooled_count += count;
    }
  }
  if (pooled_expected > 0) add(std::max(pooled_expected, 1.0), pooled_count);
  const double free = std::max(1, cells - 1);
  return (std::cbrt(chi_square / free) - (1 - 2 / (9 * free))) / std::sqrt(2 / (9 * free));
}

class exactness : public ::testing::TestWithParam<const char*> {};

TEST_P(exactness, A7_the_joint_of_three_tokens_follows_the_target_for_every_k_and_filter) {
  const test::temporary_folder folder;
  write_models(folder);
  Engine engine(options_for(folder, GetParam()));
  for (const filter& by : kFilters) {
    const std::map<tokens, double> joint = exact_joint(engine, by);
    for (const std::int32_t k : {1, 2, 5}) {
      SCOPED_TRACE(std::string(by.name) + ", k = " + std::to_string(k));
      const sampled drawn = draw(engine, by, k);
      EXPECT_LT(excess(joint, drawn.counts), kSigmas);
      for (const auto& [cell, count] : drawn.counts) EXPECT_GT(joint.contains(cell) ? joint.at(cell) : 0, 0) << count;
      EXPECT_GT(drawn.accepted, drawn.drafted / 20);
      EXPECT_LT(drawn.accepted, drawn.drafted - drawn.drafted / 20);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(of, exactness, ::testing::Values("coupled", "rejection"),
                         [](const auto& rule) { return std::string(rule.param); });

}  // namespace
}  // namespace tandem
