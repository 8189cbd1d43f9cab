#include "tests/core/recorded_answers.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <utility>

#include "core/assert.hpp"
#include "core/speculation/acceptance_statistics.hpp"
#include "core/speculation/ngram_index.hpp"

namespace tandem::recorded {
namespace {

constexpr std::int32_t kShortestNgram = 2;  // as the engine's defaults
constexpr std::int32_t kLongestNgram = 5;
constexpr double kAskingSeconds = 2e-5;
constexpr std::int32_t kRowBudget = 512;

std::vector<token_id> ids_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<token_id> ids;
  for (token_id id = 0; words >> id;) ids.push_back(id);
  return ids;
}

/// Drafts of one step, and how many of them are right.
struct drafts {
  evidence_class evidence = kNothingOffered;
  std::int32_t offered = 0;
  std::int32_t right = 0;
};

drafts look_up(const ngram_index& index, std::span<const token_id> rest, std::int32_t k,
               const drafts_by_evidence& most) {
  const auto found = index.find();
  drafts out;
  out.evidence = evidence_of_match(found.length);
  const auto tokens = index.continue_from(found, std::min<std::int32_t>(k, most[out.evidence]));
  out.offered = static_cast<std::int32_t>(tokens.size());
  const auto end = std::mismatch(tokens.begin(), tokens.end(), rest.begin(), rest.end()).first;
  out.right = static_cast<std::int32_t>(end - tokens.begin());
  return out;
}

/// One answer under way.
class run {
 public:
  run(const answer& of, const device& on, speculation_policy& policy, std::uint64_t seed)
      : of_(of), on_(on), policy_(policy), random_(seed) {
    index_.append(of.prompt);
  }

  double seconds() {
    double sum = prefill();
    while (done_ < total()) sum += step();
    return sum;
  }

 private:
  std::int32_t total() const { return static_cast<std::int32_t>(of_.output.size()); }
  std::int32_t length() const { return static_cast<std::int32_t>(of_.prompt.size()) + done_; }
  double disturbance() { return std::exp(on_.noise * normal_(random_)); }

  /// Seconds the draft model takes over the prompt; the target's own are the same under every policy.
  double prefill() {
    const draft_choice choice = choose(false);
    const auto prompt = static_cast<std::int32_t>(of_.prompt.size());
    policy_.observe(step_seen{.prefill_rows = prompt, .seconds = on_.target(prompt)});
    if (choice.method != draft_method::draft_model) return 0;
    drafts_seen work{draft_method::draft_model, prompt, {}, on_.draft(prompt)};
    policy_.observe(work);
    draft_known_ = prompt;
    return work.seconds;
  }

  draft_choice choose(bool decoding) {
    draft_question asked;
    asked.acceptance = &acceptance_;
    asked.decoding = decoding;
    asked.output_length = done_;
    asked.length = length();
    asked.tokens_left = total() - done_;
    asked.fits.fill(std::min(limits::kMaxDraftTokens, asked.tokens_left - 1));
    asked.unseen[index_of(draft_method::draft_model)] = length() - draft_known_;
    step_question question;
    question.sequences = std::span(&asked, 1);
    question.available[index_of(draft_method::ngram)] = true;
    question.available[index_of(draft_method::draft_model)] = on_.draft != nullptr;
    question.row_budget = kRowBudget;
    return policy_.choose(question).front();
  }

  /// Seconds the draft model takes; the policy hears of them.
  double drafting(std::int32_t k) {
    drafts_seen work;
    work.method = draft_method::draft_model;
    work.first_rows = length() - draft_known_;
    work.sequences_at.assign(static_cast<std::size_t>(k - 1), 1);
    work.seconds = (on_.draft(work.first_rows) + (k - 1) * on_.draft(1)) * disturbance();
    policy_.observe(work);
    return work.seconds;
  }

  drafts foretold(std::int32_t k) const {
    drafts out{kNoOpinion, k, 0};
    while (out.right < k && of_.foretold[static_cast<std::size_t>(done_ + out.right)]) ++out.right;
    return out;
  }

  /// Drafts of one source, and the seconds until they are there.
  drafts ask(draft_method method, std::int32_t k, const drafts_by_evidence& most, double& waited) {
    const bool by_model = method == draft_method::draft_model;
    const std::int32_t known = length() + std::min(by_model ? foretold(k).right : 0, k - 1);
    waited += by_model ? drafting(k) : kAskingSeconds;
    if (by_model) draft_known_ = known;
    const drafts found = by_model ? foretold(k) : look_up(index_, rest(), k, most);
    policy_.observe(proposal_seen{method, &acceptance_, found.evidence, found.offered, found.right});
    return found;
  }

  std::span<const token_id> rest() const { return std::span(of_.output).subspan(static_cast<std::size_t>(done_)); }

  double step() {
    const draft_choice choice = choose(true);
    double waited = 0;
    drafts found;
    if (choice.k > 0) found = ask(choice.method, choice.k, choice.most, waited);
    const bool falls_back = found.offered == 0 && choice.fallback_k > 0;
    if (falls_back) found = ask(choice.fallback, choice.fallback_k, same_for_all(choice.fallback_k), waited);
    const double computing = on_.target(found.offered + 1) * disturbance();
    policy_.observe(step_seen{.decode_rows = found.offered + 1,
                              .context = std::int64_t{length()} * (found.offered + 1),
                              .seconds = computing,
                              .ticket_wait_seconds = waited,
                              .only_source = choice.k > 0 && !falls_back ? choice.method : draft_method::none});
    index_.append(rest().first(static_cast<std::size_t>(found.right + 1)));
    done_ += found.right + 1;
    return computing + waited;
  }

  const answer& of_;
  const device& on_;
  speculation_policy& policy_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1};
  sequence_acceptance acceptance_;
  ngram_index index_{kShortestNgram, kLongestNgram};
  std::int32_t done_ = 0;
  std::int32_t draft_known_ = 0;
};

/// Step seconds by rows, in units of one row's step, straight between the points and beyond the last.
synthetic::row_seconds through(std::vector<std::pair<double, double>> points) {
  return [points = std::move(points)](double rows) {
    std::size_t i = 1;
    while (i + 1 < points.size() && rows > points[i].first) ++i;
    const auto [r0, s0] = points[i - 1];
    const auto [r1, s1] = points[i];
    return s0 + (s1 - s0) * (rows - r0) / (r1 - r0);
  };
}

}  // namespace

std::vector<named_device> devices() {
  constexpr double kNoise = 0.05;
  constexpr double kDraftShare = 0.38;  // of the target's forward
  // Qwen2.5-Coder-1.5B on two cores with AVX-512 and with AVX2; the last is made.
  const std::vector<std::pair<std::string, synthetic::row_seconds>> targets{
      {"avx512", through({{1, 1}, {2, 1.0}, {4, 1.08}, {8, 1.7}, {16, 3.3}})},
      {"avx2", through({{1, 1}, {2, 1.12}, {3, 1.38}, {4, 1.7}, {8, 3.4}})},
      {"wide", through({{1, 1}, {16, 1.15}, {32, 1.5}})}};
  std::vector<named_device> all;
  for (const auto& [name, target] : targets) all.push_back({name, {target, nullptr, kNoise}});
  for (const auto& [name, target] : targets) {
    const auto draft = [target = target](double rows) { return kDraftShare * target(rows); };
    all.push_back({name + "+d", {target, draft, kNoise}});
  }
  return all;
}

speculation_settings automatic() {
  return {draft_method::ngram, limits::kMaxDraftTokens, std::nullopt, true, true};
}

std::vector<answer> answers() {
  std::ifstream file(TANDEM_RECORDED_ANSWERS);
  TANDEM_ASSERT(file);
  std::vector<answer> all;
  std::string name;
  std::string prompt;
  std::string output;
  std::string foretold;
  while (std::getline(file, name)) {
    if (name.starts_with('#')) continue;
    std::getline(file, prompt);
    std::getline(file, output);
    std::getline(file, foretold);
    all.push_back({name, ids_of(prompt), ids_of(output), {}});
    for (const char same : foretold) all.back().foretold.push_back(same == '1');
    TANDEM_ASSERT(all.back().foretold.size() == all.back().output.size());
  }
  return all;
}

double replay(const answer& of, const device& on, speculation_policy& policy, std::uint64_t seed) {
  return run(of, on, policy, seed).seconds();
}

double plain(const answer& of, const device& on) {
  return static_cast<double>(of.output.size()) * on.target(1);
}

double foreknown(const answer& of, const device& on) {
  const std::size_t total = of.output.size();
  std::vector<std::int32_t> right(total);
  ngram_index index(kShortestNgram, kLongestNgram);
  index.append(of.prompt);
  for (std::size_t i = 0; i < total; ++i) {
    const std::span<const token_id> rest = std::span(of.output).subspan(i);
    right[i] = look_up(index, rest, limits::kMaxDraftTokens, same_for_all(limits::kMaxDraftTokens)).right;
    index.append(rest.first(1));
  }
  std::vector<double> left(total + 1, 0.0);  // seconds from there on
  for (std::size_t i = total; i-- > 0;) {
    left[i] = on.target(1) + left[i + 1];
    for (std::int32_t k = 1; k <= right[i]; ++k) {
      const std::size_t next = std::min(total, i + 1 + static_cast<std::size_t>(k));
      left[i] = std::min(left[i], on.target(k + 1) + left[next]);
    }
  }
  return left[0];
}

}  // namespace tandem::recorded
