#include "core/scheduling/best_of.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Failed or not, then the mean: the smaller pair is the better choice.
std::pair<bool, double> rank_of(const tokens_committed::entry& choice) {
  const bool failed = choice.end && choice.end->reason == finish_reason::error;
  if (choice.logprobs.empty()) return {failed, std::numeric_limits<double>::infinity()};
  double sum = 0;
  for (const token_logprobs& token : choice.logprobs) sum += static_cast<double>(token.logprob);
  return {failed, -sum / static_cast<double>(choice.logprobs.size())};
}

}  // namespace

void append_entry(tokens_committed::entry& all, tokens_committed::entry next) {
  append(all.tokens, std::move(next.tokens));
  append(all.accepted, std::move(next.accepted));
  append(all.logprobs, std::move(next.logprobs));
  append(all.prompt_logprobs, std::move(next.prompt_logprobs));
  all.end = std::move(next.end);
  all.stats = next.stats;
}

std::vector<std::size_t> best_choices(std::span<const tokens_committed::entry> choices, std::size_t count) {
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank_of(choices[a]) < rank_of(choices[b]); });
  order.resize(std::min(count, order.size()));
  return order;
}

/// To the client; with best_of not before every choice has ended.
void scheduler::impl::tell(const sequence& seq, tokens_committed::entry entry) {
  if (seq.request->best_of <= seq.request->n) {
    if (!out.committed) out.committed.emplace();
    out.committed->entries.push_back(std::move(entry));
    return;
  }
  TANDEM_ASSERT(seq.group != nullptr);
  auto& ballot = seq.group->ballot;
  ballot.resize(static_cast<std::size_t>(seq.request->sequences()));
  append_entry(ballot[static_cast<std::size_t>(seq.id.choice)], std::move(entry));
  const bool all_ended =
      std::all_of(ballot.begin(), ballot.end(), [](const auto& each) { return each.end.has_value(); });
  if (all_ended) tell_best(seq);
}

/// What the other choices cost goes to the best one, so that sums over what is shown are those of all that was made.
void add_unshown(std::span<tokens_committed::entry> choices, std::span<const std::size_t> shown) {
  sequence_stats& best = choices[shown.front()].stats;
  for (std::size_t place = 0; place < choices.size(); ++place) {
    if (std::find(shown.begin(), shown.end(), place) != shown.end()) continue;
    best.unshown_tokens += choices[place].stats.completion_tokens;
    best.add_work(choices[place].stats);
  }
}

void scheduler::impl::tell_best(const sequence& seq) {
  const generation_request& request = *seq.request;
  std::vector<tokens_committed::entry> ballot = std::exchange(seq.group->ballot, {});
  const auto shown = best_choices(ballot, static_cast<std::size_t>(request.n));
  add_unshown(ballot, shown);
  if (!out.committed) out.committed.emplace();
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    tokens_committed::entry entry = std::move(ballot[shown[rank]]);
    entry.id = {seq.id.request, static_cast<std::int32_t>(rank)};
    if (request.logprobs.top < 0) entry.logprobs.clear();
    out.committed->entries.push_back(std::move(entry));
  }
}

}  // namespace tandem
