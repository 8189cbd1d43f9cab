#include "core/speculation/adaptive_policy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {
namespace {

constexpr double kExplorationShare = 0.01;    // of all step time
constexpr double kMostSavedSteps = 8;         // step times that can be saved up for exploration
constexpr double kLeastAdvantage = 1.015;     // over plain decoding, before drafting is believed to pay
constexpr double kBenefitOfDoubt = 1;         // plain decoding gets that much of what the costs may be wrong by
constexpr std::int32_t kSteadyUnseen = 4;     // tokens; a source that lacks more has to catch up first
constexpr std::int32_t kHopedForTokens = 64;  // a sequence is expected to go on for that long, or as long as it has
constexpr double kMostStepsOfUse = 256;       // over which a catch-up is spread at most

bool leaves_no_choice(const speculation_params* wanted) {
  return wanted != nullptr && (wanted->method == draft_method::none || !wanted->adaptive);
}

/// In tokens.
struct draft_prices {
  double row = 0;
  double forward = 0;  ///< one sequence's share of a forward of the draft model
};

/// Tokens gained less their price, with as many drafts as are worth it.
double worth_of(const draft_option& option, const draft_prices& prices, double tokens_per_second) {
  const bool pays_forwards = computes(option.method);
  const double each = prices.row + (pays_forwards ? prices.forward : 0);
  double worth = pays_forwards ? -tokens_per_second * option.once_seconds : 0;
  for (std::size_t evidence = 1; evidence < kEvidenceClasses; ++evidence) {
    for (std::int32_t place = 0; place < option.most; ++place) {
      const double gain = option.accepted[evidence][static_cast<std::size_t>(place)] - each;
      if (gain <= 0) break;
      worth += option.offers[evidence] * gain;
    }
  }
  return worth;
}

std::int32_t count_decoding(const step_question& question) {
  return static_cast<std::int32_t>(std::count_if(question.sequences.begin(), question.sequences.end(),
                                                 [](const draft_question& asked) { return asked.decoding; }));
}

per_method<acceptance_statistics> statistics_of_all() {
  const auto of = [](draft_method method) { return acceptance_statistics(method); };
  return {of(draft_method::none),   of(draft_method::ngram), of(draft_method::suffix), of(draft_method::draft_model),
          of(draft_method::medusa), of(draft_method::eagle), of(draft_method::custom)};
}

}  // namespace

adaptive_policy::adaptive_policy(speculation_settings settings)
    : settings_(settings), statistics_(statistics_of_all()) {}

std::optional<draft_option> adaptive_policy::option_of(const draft_question& asked, draft_method method,
                                                       std::int32_t most) const {
  draft_option option;
  option.method = method;
  option.most = std::min(most, asked.fits[index_of(method)]);
  if (option.most <= 0) return std::nullopt;
  const acceptance_statistics& statistics = statistics_[index_of(method)];
  const sequence_record* record = asked.acceptance ? &asked.acceptance->by_method[index_of(method)] : nullptr;
  option.offers = statistics.offers(record);
  for (evidence_class c = 1; c < kEvidenceClasses; ++c) {
    if (option.offers[c] > 0) option.accepted[c] = statistics.expect(record, c);
  }
  if (kind_of(method) != source_kind::model) return option;
  const std::int32_t unseen = asked.unseen[index_of(method)];
  option.first_rows = std::clamp(unseen, 1, kSteadyUnseen);
  if (unseen > kSteadyUnseen) {
    const std::int32_t hoped_for = std::min(asked.tokens_left, std::max(kHopedForTokens, asked.output_length));
    option.once_seconds = costs_.forward_seconds(method, unseen) / std::clamp(hoped_for / 2.0, 1.0, kMostStepsOfUse);
  }
  return option;
}

adaptive_policy::outlook adaptive_policy::outlook_of(const draft_question& asked, const step_question& question,
                                                     std::int32_t decoding, double saved_per_token) const {
  outlook out;
  const bool too_many = settings_.disable_by_batch_size && decoding > *settings_.disable_by_batch_size;
  if (leaves_no_choice(asked.wanted) || too_many) {
    speculation_settings settings = settings_;
    settings.k = std::min(settings.k, limits::kDefaultDraftTokens);
    out.fixed = fixed_choice(settings, asked.wanted, question.available, decoding);
    out.fixed->k = std::min(out.fixed->k, asked.fits[index_of(out.fixed->method)]);
    return out;
  }
  if (!asked.decoding) {
    out.fixed = start_of(asked, question, saved_per_token);
    return out;
  }
  for (const draft_method method : kDraftSources) {
    if (!question.available[index_of(method)] || !allows(asked, method)) continue;
    out.options[index_of(method)] = option_of(asked, method, most_for(asked));
  }
  return out;
}

std::int32_t adaptive_policy::most_for(const draft_question& asked) const {
  return asked.wanted != nullptr ? asked.wanted->k.value_or(settings_.k) : settings_.k;
}

bool adaptive_policy::allows(const draft_question& asked, draft_method method) const {
  const bool named = asked.wanted != nullptr && asked.wanted->method.has_value();
  return named ? *asked.wanted->method == method : settings_.any_method || settings_.method == method;
}

/// Seconds a token of an answer is expected to save with a draft model beside so many sequences.
double adaptive_policy::model_saves_per_token(const step_question& question) const {
  constexpr draft_method kModel = draft_method::draft_model;
  if (!question.available[index_of(kModel)] || settings_.k <= 0 || !costs_.knows_steps()) return 0;
  const acceptance_statistics& statistics = statistics_[index_of(kModel)];
  draft_option option{.method = kModel, .most = settings_.k, .offers = statistics.offers(nullptr)};
  option.accepted[kNoOpinion] = statistics.expect(nullptr, kNoOpinion);
  const auto sequences = static_cast<double>(question.sequences.size());
  const step_base base{.tokens = sequences, .rows = sequences, .most_rows = question.row_budget};
  const std::vector<const draft_option*> all(question.sequences.size(), &option);
  const double drafted_seconds = sequences / search_drafts(costs_, base, all).tokens_per_second();
  return costs_.step_seconds(sequences) - drafted_seconds;
}

/// While a prompt is computed, whether a draft model takes it in as well: when what it is expected to save over the
/// answer is more than that costs.
draft_choice adaptive_policy::start_of(const draft_question& asked, const step_question& question,
                                       double saved_per_token) const {
  constexpr draft_method kModel = draft_method::draft_model;
  const std::int32_t most = std::min(most_for(asked), asked.tokens_left - 1);
  if (!question.available[index_of(kModel)] || !allows(asked, kModel) || most <= 0) return {};
  if (!costs_.knows_steps()) return {kModel, 0};
  const double saved = std::min(asked.tokens_left, kHopedForTokens) * saved_per_token;
  const double price = costs_.forward_seconds(kModel, asked.unseen[index_of(kModel)]);
  return saved > price ? draft_choice{kModel, 0} : draft_choice{};
}

step_base adaptive_policy::base_of(const step_question& question, const std::vector<outlook>& outlooks) const {
  step_base base;
  std::int64_t context = 0;
  for (std::size_t i = 0; i < outlooks.size(); ++i) {
    const draft_question& asked = question.sequences[i];
    if (!asked.decoding) continue;
    context += asked.length;
    base.rows += 1;
    base.tokens += 1;
    if (!outlooks[i].fixed || outlooks[i].fixed->k == 0) continue;
    base.rows += outlooks[i].fixed->k;
    const survival accepted = statistics_[index_of(outlooks[i].fixed->method)].expect(nullptr, kNoOpinion);
    for (std::int32_t j = 0; j < outlooks[i].fixed->k; ++j) base.tokens += accepted[static_cast<std::size_t>(j)];
  }
  base.context = base.rows > 0 ? static_cast<double>(context) / base.rows : 0;
  if (question.prefill_rows > 0) base.least_row_seconds = costs_.prefill_row_seconds();
  base.most_rows = std::max(0, question.row_budget - static_cast<std::int32_t>(base.rows));
  return base;
}

adaptive_policy::step_plan adaptive_policy::plan_with(const step_base& base, const std::vector<outlook>& outlooks,
                                                      std::vector<draft_method> methods) const {
  std::vector<const draft_option*> options(outlooks.size(), nullptr);
  for (std::size_t i = 0; i < outlooks.size(); ++i) {
    const auto& option = outlooks[i].options[index_of(methods[i])];
    if (option) options[i] = &*option;
  }
  return {std::move(methods), search_drafts(costs_, base, options)};
}

/// The source that is worth most to each sequence, a row and a forward at their average prices; none where none is. Of
/// the sources that compute only one takes part in a step.
std::vector<draft_method> adaptive_policy::best_alone(const step_base& base, const std::vector<outlook>& outlooks,
                                                      double tokens_per_second, draft_method computing) const {
  const auto sequences = static_cast<double>(outlooks.size());
  const double rows =
      (costs_.step_seconds(base.rows + 2 * sequences) - costs_.step_seconds(base.rows)) / (2 * sequences);
  draft_prices prices;
  prices.row = tokens_per_second * std::max(rows, base.least_row_seconds);
  prices.forward = tokens_per_second * costs_.forward_seconds(computing, sequences) / sequences;
  std::vector<draft_method> methods(outlooks.size(), draft_method::none);
  for (std::size_t i = 0; i < outlooks.size(); ++i) {
    double best = 0;
    for (const draft_method method : kDraftSources) {
      if (computes(method) && method != computing) continue;
      const auto& option = outlooks[i].options[index_of(method)];
      const double worth = option ? worth_of(*option, prices, tokens_per_second) : 0;
      if (worth <= best) continue;
      best = worth;
      methods[i] = method;
    }
  }
  return methods;
}

/// All sequences with one source, for every source, or each with its own best: whichever gives most.
adaptive_policy::step_plan adaptive_policy::best_plan(const step_base& base,
                                                      const std::vector<outlook>& outlooks) const {
  std::optional<step_plan> best;
  bool several = false;
  draft_method computing = draft_method::none;  // the best of those that compute
  double computing_speed = 0;
  for (const draft_method method : kDraftSources) {
    const bool offered = std::any_of(outlooks.begin(), outlooks.end(),
                                     [&](const outlook& o) { return o.options[index_of(method)].has_value(); });
    if (!offered) continue;
    step_plan plan = plan_with(base, outlooks, std::vector<draft_method>(outlooks.size(), method));
    several = best.has_value();
    if (computes(method) && plan.found.tokens_per_second() > computing_speed) {
      computing = method;
      computing_speed = plan.found.tokens_per_second();
    }
    if (!best || plan.found.tokens_per_second() > best->found.tokens_per_second()) best = std::move(plan);
  }
  if (!best) return plan_with(base, outlooks, std::vector<draft_method>(outlooks.size(), draft_method::none));
  if (!several || outlooks.size() == 1) return std::move(*best);
  step_plan mixed = plan_with(base, outlooks, best_alone(base, outlooks, best->found.tokens_per_second(), computing));
  return mixed.found.tokens_per_second() > best->found.tokens_per_second() ? std::move(mixed) : std::move(*best);
}

/// Expected to be faster than plain decoding by more than what is not known of its costs; that much may also be paid
/// from the savings, for it is by trying that costs become known.
bool adaptive_policy::pays(const step_base& base, const step_plan& plan) {
  const double advantage =
      plan.found.tokens_per_second() * costs_.step_seconds(base.rows) / (kLeastAdvantage * base.tokens) - 1;
  if (advantage <= 0) return false;
  const double doubt = kBenefitOfDoubt * std::hypot(costs_.doubt_at(base.rows), costs_.doubt_at(plan.found.rows));
  if (advantage > doubt) return true;
  const double at_stake = (doubt - advantage) * plan.found.seconds;
  if (at_stake > savings_seconds_) return false;
  savings_seconds_ -= at_stake;
  return true;
}

std::vector<draft_choice> adaptive_policy::choose(const step_question& question) {
  std::vector<draft_choice> choices(question.sequences.size());
  const std::int32_t decoding = count_decoding(question);
  std::vector<outlook> outlooks;
  outlooks.reserve(choices.size());
  const bool some_start = decoding < static_cast<std::int32_t>(choices.size());
  const double saved_per_token = some_start ? model_saves_per_token(question) : 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    outlooks.push_back(outlook_of(question.sequences[i], question, decoding, saved_per_token));
    if (outlooks[i].fixed) choices[i] = *outlooks[i].fixed;
  }
  if (decoding == 0) return choices;
  const step_base base = base_of(question, outlooks);
  const step_plan plan = best_plan(base, outlooks);
  if (pays(base, plan) && !wants_plain_step(base, plan)) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (outlooks[i].fixed) continue;
      const auto& most = plan.found.drafts[i];
      const std::int32_t k = *std::max_element(most.begin(), most.end());
      if (k > 0) choices[i] = {plan.methods[i], k, most};
    }
  }
  probe(question, base, outlooks, plan, choices);
  note_who_was_asked(question, choices);
  return choices;
}

void adaptive_policy::observe(const proposal_seen& seen) {
  statistics_[index_of(seen.method)].observe(seen);
}

void adaptive_policy::observe(const step_seen& seen) {
  costs_.observe(seen);
  savings_seconds_ = std::min(savings_seconds_ + kExplorationShare * seen.seconds, kMostSavedSteps * seen.seconds);
}

}  // namespace tandem
