#include "tests/core/toy_chain.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "core/sampling/constraint.hpp"
#include "core/sampling/distribution.hpp"
#include "core/sampling/noise.hpp"
#include "tests/core/naive_sampling.hpp"
#include "tests/support/toy_grammar.hpp"

namespace tandem::testing {
namespace {

const std::vector<token_id> kPrompt{3, 7, 3};

const toy_model& the_target() {
  static const toy_model model(11, 1.5);
  return model;
}

toy_model draft_of(draft_kind kind) {
  return kind == draft_kind::good ? toy_model(the_target(), 12, 0.3) : toy_model(13, 2.0);
}

token_counts counts_of(const std::vector<token_id>& known) {
  token_counts counts;
  counts.add_prompt(kPrompt);
  for (std::size_t i = kPrompt.size(); i < known.size(); ++i) counts.add_output(known[i]);
  return counts;
}

token_id draw(const std::vector<candidate>& from, double u) {
  double sum = 0;
  for (const candidate& c : from) {
    sum += static_cast<double>(c.probability);
    if (u < sum) return c.id;
  }
  return from.back().id;
}

}  // namespace

toy_model::toy_model(std::uint32_t seed, double spread) : table_(kToyVocabulary * kToyVocabulary) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, spread);
  for (auto& row : table_) {
    for (float& logit : row) logit = static_cast<float>(normal(random));
  }
}

toy_model::toy_model(const toy_model& base, std::uint32_t seed, double noise) : table_(base.table_) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, noise);
  for (auto& row : table_) {
    for (float& logit : row) logit += static_cast<float>(normal(random));
  }
}

const std::array<float, kToyVocabulary>& toy_model::logits(token_id before_last, token_id last) const {
  const auto wrap = [](token_id id) { return static_cast<std::size_t>(id) % kToyVocabulary; };
  return table_[wrap(before_last) * kToyVocabulary + wrap(last)];
}

toy_chain::toy_chain(toy_setup setup)
    : setup_(std::move(setup)), target_(the_target()), draft_(draft_of(setup_.drafts)) {}

void toy_chain::append_adversarial(std::vector<token_id>& known, drafted& out) const {
  const auto& logits = target_.logits(known[known.size() - 2], known.back());
  const auto least = static_cast<token_id>(std::min_element(logits.begin(), logits.end()) - logits.begin());
  const auto most = static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  const std::array<token_id, 5> choices{most, least, known.back(), static_cast<token_id>(kToyVocabulary), kNoToken};
  out.tokens.push_back(choices[static_cast<std::size_t>(known.back() + 1 + known[known.size() - 2]) % choices.size()]);
  known.push_back(std::max(out.tokens.back(), 0));
}

void toy_chain::append_sampled(std::vector<token_id>& known, token_counts& counts, std::uint64_t key,
                               drafted& out) const {
  const auto& logits = draft_.logits(known[known.size() - 2], known.back());
  std::vector<float> row(logits.begin(), logits.end());
  apply_penalties(row, setup_.params, counts, static_cast<std::int32_t>(known.size() - kPrompt.size()));
  const auto position = static_cast<std::int64_t>(known.size());
  if (setup_.rule == acceptance_rule::coupled) {
    out.tokens.push_back(draw_coupled(row, setup_.params, key, position));
  } else {
    const std::vector<candidate> candidates = filtered_distribution(row, setup_.params);
    out.tokens.push_back(draw(candidates, uniform(key, position, 0, noise_purpose::draft)));
    out.q.emplace_back(kToyVocabulary, 0.0F);
    for (const candidate& c : candidates) out.q.back()[static_cast<std::size_t>(c.id)] = c.probability;
  }
  known.push_back(out.tokens.back());
  counts.add_output(out.tokens.back());
}

toy_chain::drafted toy_chain::draft(const std::vector<token_id>& known, std::uint64_t key) const {
  drafted out;
  std::vector<token_id> assumed = known;
  token_counts counts = counts_of(known);
  for (std::int32_t i = 0; i < setup_.k; ++i) {
    if (setup_.drafts == draft_kind::adversarial) {
      append_adversarial(assumed, out);
    } else {
      append_sampled(assumed, counts, key, out);
    }
  }
  return out;
}

std::vector<token_id> toy_chain::generate(std::uint64_t seed, std::size_t count, const verify_rule& rule) const {
  const std::uint64_t key = noise_key(seed, 0);
  std::vector<token_id> known = kPrompt;
  token_counts counts = counts_of(known);
  std::vector<float> scratch(kToyVocabulary);
  std::vector<std::uint32_t> mask(mask_words(kToyVocabulary));
  const auto matcher = setup_.params.structure ? setup_.params.structure->start() : nullptr;
  while (known.size() < kPrompt.size() + count) {
    const drafted drafts = draft(known, key);
    std::vector<token_id> assumed = known;
    assumed.insert(assumed.end(), drafts.tokens.begin(), drafts.tokens.end());
    acceptance_input input;
    input.params = &setup_.params;
    input.key = key;
    input.position = static_cast<std::int64_t>(known.size());
    input.output_index = static_cast<std::int32_t>(known.size() - kPrompt.size());
    input.drafts = drafts.tokens;
    input.q = drafts.q;
    input.rule = setup_.rule;
    input.matcher = matcher.get();
    input.mask = mask;
    // As the device: the first draft that cannot follow is the last that is judged.
    const std::size_t possible = matcher ? acceptable_prefix(*matcher, drafts.tokens) : drafts.tokens.size();
    input.last_draft_impossible = possible < drafts.tokens.size();
    input.drafts = input.drafts.first(possible + (input.last_draft_impossible ? 1 : 0));
    if (!drafts.q.empty()) input.q = input.q.first(input.drafts.size());
    input.logits = [&](std::int32_t row) {
      const std::size_t last = known.size() - 1 + static_cast<std::size_t>(row);
      const auto& logits = target_.logits(assumed[last - 1], assumed[last]);
      std::copy(logits.begin(), logits.end(), scratch.begin());
      return std::span<float>(scratch);
    };
    const acceptance_output out = rule(input, counts);
    known.insert(known.end(), out.tokens.begin(), out.tokens.end());
  }
  return {known.begin() + static_cast<std::ptrdiff_t>(kPrompt.size()), known.end()};
}

std::vector<double> toy_chain::exact_next(const std::vector<token_id>& known) const {
  const auto& logits = target_.logits(known[known.size() - 2], known.back());
  const std::vector<double> row(logits.begin(), logits.end());
  std::vector<double> penalized = naive_penalized(row, setup_.params, {known, kPrompt.size()});
  if (const auto* rules = dynamic_cast<const toy_grammar*>(setup_.params.structure.get())) {
    const std::vector<token_id> output(known.begin() + kPrompt.size(), known.end());
    for (std::size_t id = 0; id < penalized.size(); ++id)
      if (!rules->allows(output, static_cast<token_id>(id))) penalized[id] = -std::numeric_limits<double>::infinity();
  }
  return naive_distribution(penalized, setup_.params);
}

std::vector<double> toy_chain::exact_joint() const {
  std::vector<double> joint;
  joint.reserve(kToyVocabulary * kToyVocabulary * kToyVocabulary);
  std::vector<token_id> known = kPrompt;
  const std::vector<double> first = exact_next(known);
  for (std::size_t a = 0; a < kToyVocabulary; ++a) {
    known.push_back(static_cast<token_id>(a));
    const std::vector<double> second = exact_next(known);
    for (std::size_t b = 0; b < kToyVocabulary; ++b) {
      known.push_back(static_cast<token_id>(b));
      for (const double third : exact_next(known)) joint.push_back(first[a] * second[b] * third);
      known.pop_back();
    }
    known.pop_back();
  }
  return joint;
}

}  // namespace tandem::testing
