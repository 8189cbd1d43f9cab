#include "tests/core/synthetic_server.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::synthetic {
namespace {

constexpr std::int32_t kRowBudget = 2048;
constexpr double kMeanOffWithNoise = 0.5;  // of variance: exp(noise) is 1 on average

}  // namespace

row_seconds flat_then_linear(double seconds, double flat_rows) {
  return [=](double rows) { return seconds * std::max(1.0, rows / flat_rows); };
}
row_seconds linear(double seconds, double share) {
  return [=](double rows) { return seconds * (1 + share * (rows - 1)); };
}
row_seconds staircase(double seconds, double tile, double share) {
  return [=](double rows) { return seconds * (1 + share * std::floor((rows - 1) / tile)); };
}

source model(double accepted) {
  source made;
  made.offers[kNoOpinion] = 1;
  made.accepted[kNoOpinion] = accepted;
  return made;
}

source matches(double share, double accepted) {
  source made;
  made.offers[kEvidenceClasses - 1] = share;
  made.offers[1] = (1 - share) / 2;
  made.offers[kNothingOffered] = 1 - made.offers[1] - share;
  made.accepted[kEvidenceClasses - 1] = accepted;
  made.accepted[1] = 0.1;
  return made;
}

server::server(device made, source_at ngram, source_at draft_model, std::size_t sequences, std::uint64_t seed)
    : device_(std::move(made)), sequences_(sequences), random_(seed), seed_(seed) {
  sources_[index_of(draft_method::ngram)] = std::move(ngram);
  sources_[index_of(draft_method::draft_model)] = std::move(draft_model);
}

double server::uniform() {
  return static_cast<double>(random_() >> 11) * 0x1p-53;
}

/// Factor on the seconds of everything in that step: a function of seed and step, whatever was done before.
double server::disturbance(std::int64_t step) const {
  std::mt19937_64 random(seed_ * 1'000'003 + static_cast<std::uint64_t>(step));
  const auto next = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const double angle = 2 * std::numbers::pi * next();
  const double normal = std::sqrt(-2 * std::log(1 - next())) * std::cos(angle);
  const double factor = std::exp(device_.noise * normal - kMeanOffWithNoise * device_.noise * device_.noise);
  return next() < device_.slow_steps ? 5 * factor : factor;
}

double server::plain_tokens_per_second(std::int64_t steps) const {
  const auto rows = static_cast<double>(sequences_.size());
  double seconds = 0;
  for (std::int64_t i = 0; i < steps; ++i) seconds += device_.target(rows) * disturbance(i);
  return rows * static_cast<double>(steps) / seconds;
}

std::vector<draft_question> server::questions() {
  std::vector<draft_question> all;
  for (live& seq : sequences_) {
    draft_question asked;
    asked.acceptance = &seq.acceptance;
    asked.decoding = true;
    asked.length = seq.length;
    asked.output_length = seq.length - kPromptTokens;
    asked.tokens_left = kPromptTokens + kOutputTokens - seq.length;
    for (std::size_t m = 1; m < sources_.size(); ++m) asked.fits[m] = sources_[m] ? limits::kMaxDraftTokens : 0;
    asked.unseen[static_cast<std::size_t>(draft_method::draft_model)] = seq.unseen;
    all.push_back(asked);
  }
  return all;
}

/// Seconds until all tickets are filled. `falls_back`: by sequence, its first source has nothing.
double server::drafting(speculation_policy& policy, const std::vector<draft_choice>& choices,
                        const std::vector<bool>& falls_back) {
  drafts_seen work;
  work.method = draft_method::draft_model;
  bool asked_ngram = false;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].method == draft_method::ngram && choices[i].k > 0) asked_ngram = true;
    const bool by_model = choices[i].method == draft_method::draft_model;
    if (!by_model && !falls_back[i]) continue;
    const std::int32_t k = by_model ? choices[i].k : choices[i].fallback_k;
    work.first_rows += std::exchange(sequences_[i].unseen, 0);
    const auto further = static_cast<std::size_t>(std::max(0, k - 1));
    if (work.sequences_at.size() < further) work.sequences_at.resize(further);
    for (std::size_t j = 0; j < further; ++j) ++work.sequences_at[j];
  }
  if (work.first_rows == 0) return asked_ngram ? device_.asking_seconds : 0;
  double seconds = device_.draft(work.first_rows);
  for (const std::int32_t rows : work.sequences_at) seconds += device_.draft(rows);
  work.seconds = seconds * disturbance(step_);
  policy.observe(work);
  return work.seconds;
}

/// What a source has, before anybody has checked it.
proposal_seen server::offer(std::size_t sequence, draft_method method, std::int32_t k, const drafts_by_evidence& most) {
  proposal_seen seen{method, &sequences_[sequence].acceptance, kNothingOffered, 0, 0};
  const source now = sources_[index_of(method)](step_, sequence);
  double left = uniform();
  while (seen.evidence + 1U < kEvidenceClasses && left >= now.offers[seen.evidence])
    left -= now.offers[seen.evidence++];
  if (seen.evidence == kNothingOffered) return seen;
  seen.drafted = std::min<std::int32_t>(k, most[seen.evidence]);
  while (seen.accepted < seen.drafted && uniform() < now.accepted[seen.evidence]) ++seen.accepted;
  return seen;
}

void server::step(speculation_policy& policy, totals& all) {
  const std::vector<draft_question> asked = questions();
  step_question question;
  question.sequences = asked;
  for (std::size_t m = 1; m < sources_.size(); ++m) question.available[m] = sources_[m] != nullptr;
  question.row_budget = kRowBudget;
  const std::vector<draft_choice> choices = policy.choose(question);
  std::vector<proposal_seen> proposals;
  std::vector<bool> falls_back(choices.size(), false);
  std::vector<std::int32_t> drafted(choices.size(), 0);
  std::vector<std::int32_t> accepted(choices.size(), 0);
  const auto ask = [&](std::size_t i, draft_method method, std::int32_t k, const drafts_by_evidence& most) {
    proposals.push_back(offer(i, method, k, most));
    drafted[i] = proposals.back().drafted;
    accepted[i] = proposals.back().accepted;
    ++all.asked;
    all.drafts_asked += k;
  };
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const draft_choice& choice = choices[i];
    if (choice.method != draft_method::none && choice.k > 0) ask(i, choice.method, choice.k, choice.most);
    falls_back[i] = choice.fallback_k > 0 && drafted[i] == 0;
    if (falls_back[i]) ask(i, choice.fallback, choice.fallback_k, same_for_all(choice.fallback_k));
  }
  const double waited = drafting(policy, choices, falls_back);
  step_seen seen;
  std::vector<std::size_t> ended;
  bool several = false;
  for (const proposal_seen& each : proposals) {
    several |= seen.only_source != draft_method::none && seen.only_source != each.method;
    seen.only_source = each.method;
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::int32_t tokens = 1 + accepted[i];
    seen.decode_rows += 1 + drafted[i];
    all.drafted += drafted[i];
    const bool by_model = (choices[i].method == draft_method::draft_model && choices[i].k > 0) || falls_back[i];
    const std::int32_t k = falls_back[i] ? choices[i].fallback_k : choices[i].k;
    // A draft model has the KV of all its accepted drafts but the last.
    sequences_[i].unseen += by_model ? (tokens - 1 == k ? 2 : 1) : tokens;
    sequences_[i].length += tokens;
    all.tokens += tokens;
    if (sequences_[i].length >= kPromptTokens + kOutputTokens) ended.push_back(i);
  }
  seen.seconds = device_.target(seen.decode_rows) * disturbance(step_);
  seen.ticket_wait_seconds = waited;
  if (several) seen.only_source = draft_method::none;
  policy.observe(seen);
  for (const proposal_seen& each : proposals) policy.observe(each);
  for (const std::size_t i : ended) sequences_[i] = live{};
  all.seconds += seen.seconds + waited;
  ++all.steps;
  ++step_;
}

totals server::run(speculation_policy& policy, std::int64_t steps) {
  totals all;
  for (std::int64_t i = 0; i < steps; ++i) step(policy, all);
  return all;
}

}  // namespace tandem::synthetic
