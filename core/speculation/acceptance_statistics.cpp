#include "core/speculation/acceptance_statistics.hpp"

#include <algorithm>
#include <numeric>

namespace tandem {
namespace {

constexpr double kSourceMemory = 0.99;    // per proposal: about the last hundred of a class
constexpr double kSequenceMemory = 0.85;  // about the last seven
constexpr double kClassPriorTrials = 16;
constexpr double kPlacePriorTrials = 6;
constexpr double kSequencePriorTrials = 5;
constexpr double kOfferPriorAnswers = 3;
constexpr double kSourceOfferPriorAnswers = 4;
constexpr double kUnaskedSteps = 32;  // after about so many steps unasked, a sequence's answers are old news
constexpr double kLeast = 0.02;
constexpr double kMost = 0.99;

// What is believed before anything was seen; a long repetition is rarely chance.
constexpr std::array<double, kEvidenceClasses> kMatchPrior{0, 0.35, 0.5, 0.65, 0.8, 0.9};
constexpr evidence_shares kMatchOffers{0.6, 0.2, 0.08, 0.05, 0.04, 0.03};
constexpr double kOtherPrior = 0.75;
constexpr evidence_shares kCustomOffers{0.5, 0.5};
constexpr evidence_shares kAlwaysOffers{0, 1};

bool tells_match(draft_method source) {
  return source == draft_method::ngram || source == draft_method::suffix;
}

const evidence_shares& prior_offers_of(draft_method source) {
  if (tells_match(source)) return kMatchOffers;
  return source == draft_method::custom ? kCustomOffers : kAlwaysOffers;
}

double odds(double probability) {
  return probability / (1 - probability);
}

double bounded(double probability) {
  return std::clamp(probability, kLeast, kMost);
}

/// How much a sequence's own past still counts: 1 right after it was asked.
double freshness(const sequence_record& record) {
  return kUnaskedSteps / (kUnaskedSteps + record.steps_unasked);
}

double factor_on_odds(const sequence_record& record) {
  const double foretold = bounded(record.foretold / record.tried);
  const double fresh = freshness(record);
  const double reached = bounded((fresh * record.accepted + kSequencePriorTrials * foretold) /
                                 (fresh * record.tried + kSequencePriorTrials));
  return odds(reached) / odds(foretold);
}

}  // namespace

acceptance_statistics::acceptance_statistics(draft_method source) : prior_offers_(prior_offers_of(source)) {
  for (std::size_t c = 0; c < kEvidenceClasses; ++c) {
    classes_[c].prior = tells_match(source) ? kMatchPrior[c] : kOtherPrior;
    estimate(classes_[c]);
  }
}

void acceptance_statistics::estimate(class_counts& of) {
  const double average = (of.all.accepted + kClassPriorTrials * of.prior) / (of.all.tried + kClassPriorTrials);
  double so_far = 1;
  for (std::size_t place = 0; place < of.at.size(); ++place) {
    const counts& here = of.at[place];
    of.given_before[place] = bounded((here.accepted + kPlacePriorTrials * average) / (here.tried + kPlacePriorTrials));
    so_far *= of.given_before[place];
    of.average[place] = so_far;
  }
}

survival acceptance_statistics::expect(const sequence_record* record, evidence_class evidence) const {
  const class_counts& of = classes_[evidence];
  if (record == nullptr || record->tried <= 0) return of.average;
  const double factor = factor_on_odds(*record);
  survival all{};
  double so_far = 1;
  for (std::size_t place = 0; place < all.size(); ++place) {
    const double before = of.given_before[place];
    so_far *= factor * before / (1 - before + factor * before);  // the odds times the factor, as a probability
    all[place] = so_far;
  }
  return all;
}

evidence_shares acceptance_statistics::offers(const sequence_record* record) const {
  const double seen = std::accumulate(offers_.begin(), offers_.end(), 0.0);
  evidence_shares shares{};
  for (std::size_t c = 0; c < shares.size(); ++c)
    shares[c] = (offers_[c] + kSourceOfferPriorAnswers * prior_offers_[c]) / (seen + kSourceOfferPriorAnswers);
  if (record == nullptr) return shares;
  const double fresh = freshness(*record);
  const double own = fresh * std::accumulate(record->offers.begin(), record->offers.end(), 0.0);
  for (std::size_t c = 0; c < shares.size(); ++c)
    shares[c] = (fresh * record->offers[c] + kOfferPriorAnswers * shares[c]) / (own + kOfferPriorAnswers);
  return shares;
}

void acceptance_statistics::observe(const proposal_seen& seen) {
  const evidence_class evidence = seen.evidence;
  for (double& count : offers_) count *= kSourceMemory;
  offers_[evidence] += 1;
  class_counts& of = classes_[evidence];
  const auto drafted = static_cast<std::size_t>(std::clamp(seen.drafted, 0, limits::kMaxDraftTokens));
  const auto accepted = static_cast<std::size_t>(std::clamp(seen.accepted, 0, seen.drafted));
  const std::size_t tried = std::min(drafted, accepted + 1);
  double foretold = 0;
  for (std::size_t place = 0; place < tried; ++place) foretold += of.given_before[place];
  if (seen.acceptance != nullptr) {
    sequence_record& record = seen.acceptance->by_method[static_cast<std::size_t>(seen.method)];
    for (double& count : record.offers) count *= kSequenceMemory;
    record.offers[evidence] += 1;
    // What was found and, as the policy wished, not offered is no failure.
    const bool was_tried = seen.drafted > 0 || evidence == kNothingOffered;
    if (seen.accepted > 0)
      record.failures = 0;
    else if (was_tried)
      record.failures = std::min(record.failures + 1, 1 << 10);
    if (tried > 0) {
      record.tried = kSequenceMemory * record.tried + static_cast<double>(tried);
      record.accepted = kSequenceMemory * record.accepted + static_cast<double>(accepted);
      record.foretold = kSequenceMemory * record.foretold + foretold;
    }
  }
  if (tried == 0) return;
  of.all = {kSourceMemory * of.all.tried + static_cast<double>(tried),
            kSourceMemory * of.all.accepted + static_cast<double>(accepted)};
  for (std::size_t place = 0; place < of.at.size(); ++place) {
    counts& here = of.at[place];
    here = {kSourceMemory * here.tried + (place < tried ? 1 : 0),
            kSourceMemory * here.accepted + (place < accepted ? 1 : 0)};
  }
  estimate(of);
}

}  // namespace tandem
