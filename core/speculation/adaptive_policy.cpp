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
constexpr double kLeastReturn = 1.6;          // of a prompt's catch-up: neither saving nor price was measured on it
constexpr double kMostStepsOfUse = 256;       // over which a catch-up is spread at most

bool leaves_no_choice(const speculation_params* wanted) {
  return wanted != nullptr && (wanted->method == draft_method::none || !wanted->adaptive);
}

/// In tokens.
struct draft_prices {
  double row = 0;
  double forward = 0;  ///< one sequence's share of a forward of the source that computes
};

/// Tokens gained less their price, with as many drafts as are worth it.
double worth_of(const draft_option& option, const draft_prices& prices, double tokens_per_second) {
  double worth = option.computing() != draft_method::none ? -tokens_per_second * option.once_seconds : 0;
  for (evidence_class evidence = 0; evidence < kEvidenceClasses; ++evidence) {
    const double price = prices.row + (computes(option.source_of(evidence)) ? prices.forward : 0);
    worth += option.offers[evidence] * worth_of_class(option, evidence, price);
  }
  return worth;
}

/// What a step's plan says for one sequence: what its source offers is cut by evidence, and so is the fallback's.
draft_choice choice_of(const draft_option& way, const std::array<std::int8_t, kEvidenceClasses>& drafts) {
  draft_choice choice;
  choice.most = drafts;
  choice.most[kNothingOffered] = 0;
  choice.k = *std::max_element(choice.most.begin(), choice.most.end());
  choice.fallback_k = drafts[kNothingOffered];
  choice.method = choice.k > 0 ? way.method : draft_method::none;
  choice.fallback = choice.fallback_k > 0 ? way.fallback : draft_method::none;
  if (choice.k > 0 || choice.fallback_k == 0) return choice;
  return {way.fallback, choice.fallback_k, same_for_all(choice.fallback_k)};
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

/// A sequence of which nothing is known, as `question` has it: what each available source may do for it.
adaptive_policy::outlook adaptive_policy::unknown_sequence(const step_question& question) const {
  draft_question asked;
  asked.decoding = true;
  asked.tokens_left = kHopedForTokens;
  asked.fits.fill(settings_.k);
  outlook out;
  for (const draft_method method : kDraftSources) {
    if (!question.available[index_of(method)] || !allows(asked, method)) continue;
    out.options[index_of(method)] = option_of(asked, method, settings_.k);
  }
  return out;
}

/// Seconds a token of an answer is expected to save when there is also a draft model, beside so many sequences.
double adaptive_policy::model_saves_per_token(const step_question& question) const {
  constexpr draft_method kModel = draft_method::draft_model;
  if (!question.available[index_of(kModel)] || settings_.k <= 0 || !costs_.knows_steps()) return 0;
  const auto sequences = static_cast<double>(question.sequences.size());
  const step_base base{.tokens = sequences, .rows = sequences, .most_rows = question.row_budget};
  std::vector<outlook> with(question.sequences.size(), unknown_sequence(question));
  std::vector<outlook> without = with;
  for (outlook& each : without) each.options[index_of(kModel)].reset();
  const double most = sequences / best_plan(base, without).found.tokens_per_second();
  return most - sequences / best_plan(base, with).found.tokens_per_second();
}

/// While a prompt is computed, whether a draft model takes it in as well: when what it is expected to save over the
/// answer is clearly more than that costs. Before anything was measured it does not.
draft_choice adaptive_policy::start_of(const draft_question& asked, const step_question& question,
                                       double saved_per_token) const {
  constexpr draft_method kModel = draft_method::draft_model;
  const std::int32_t most = std::min(most_for(asked), asked.tokens_left - 1);
  if (!question.available[index_of(kModel)] || !allows(asked, kModel) || most <= 0) return {};
  const double saved = std::min(asked.tokens_left, kHopedForTokens) * saved_per_token;
  const double price = costs_.forward_seconds(kModel, asked.unseen[index_of(kModel)]);
  return saved > kLeastReturn * price ? draft_choice{kModel, 0} : draft_choice{};
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

adaptive_policy::step_plan adaptive_policy::plan_with(const step_base& base,
                                                      std::vector<const draft_option*> ways) const {
  drafts_found found = search_drafts(costs_, base, ways);
  return {std::move(ways), std::move(found)};
}

/// To each sequence what is worth most to it, a row and a forward at their average prices: one source, or one that
/// costs no forwards with `computing` behind it; nothing where nothing is. Of the sources that compute only one takes
/// part in a step.
adaptive_policy::step_plan adaptive_policy::each_its_own(const step_base& base, std::vector<outlook>& outlooks,
                                                         double tokens_per_second, draft_method computing) const {
  const auto sequences = static_cast<double>(outlooks.size());
  const double rows =
      (costs_.step_seconds(base.rows + 2 * sequences) - costs_.step_seconds(base.rows)) / (2 * sequences);
  draft_prices prices;
  prices.row = tokens_per_second * std::max(rows, base.least_row_seconds);
  prices.forward = tokens_per_second * costs_.forward_seconds(computing, sequences) / sequences;
  std::vector<const draft_option*> ways(outlooks.size(), nullptr);
  for (std::size_t i = 0; i < outlooks.size(); ++i) {
    outlook& of = outlooks[i];
    const auto& behind = of.options[index_of(computing)];
    double best = 0;
    const auto compare = [&](const std::optional<draft_option>& way) {
      const double worth = way ? worth_of(*way, prices, tokens_per_second) : 0;
      if (worth <= best) return;
      best = worth;
      ways[i] = &*way;
    };
    for (const draft_method method : kDraftSources) {
      if (!computes(method) || method == computing) compare(of.options[index_of(method)]);
    }
    for (const draft_method method : kDraftSources) {
      const auto& first = of.options[index_of(method)];
      if (computes(method) || !first || !behind) continue;
      const draft_option both = cascade_of(*first, *behind, prices.row, prices.forward);
      if (worth_of(both, prices, tokens_per_second) <= best) continue;
      of.cascade = both;
      compare(of.cascade);
    }
  }
  return plan_with(base, std::move(ways));
}

/// All sequences with one source, for every source, or each with what suits it best: whichever gives most.
adaptive_policy::step_plan adaptive_policy::best_plan(const step_base& base, std::vector<outlook>& outlooks) const {
  std::optional<step_plan> best;
  bool several = false;
  draft_method computing = draft_method::none;  // the best of those that compute
  double computing_speed = 0;
  for (const draft_method method : kDraftSources) {
    std::vector<const draft_option*> ways(outlooks.size(), nullptr);
    bool offered = false;
    for (std::size_t i = 0; i < outlooks.size(); ++i) {
      const auto& option = outlooks[i].options[index_of(method)];
      if (!option) continue;
      ways[i] = &*option;
      offered = true;
    }
    if (!offered) continue;
    step_plan plan = plan_with(base, std::move(ways));
    several = best.has_value();
    if (computes(method) && plan.found.tokens_per_second() > computing_speed) {
      computing = method;
      computing_speed = plan.found.tokens_per_second();
    }
    if (!best || plan.found.tokens_per_second() > best->found.tokens_per_second()) best = std::move(plan);
  }
  if (!best) return plan_with(base, std::vector<const draft_option*>(outlooks.size(), nullptr));
  if (!several) return std::move(*best);
  step_plan mixed = each_its_own(base, outlooks, best->found.tokens_per_second(), computing);
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
      if (!outlooks[i].fixed && plan.ways[i] != nullptr) choices[i] = choice_of(*plan.ways[i], plan.found.drafts[i]);
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
