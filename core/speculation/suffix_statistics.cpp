#include "core/speculation/suffix_statistics.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/assert.hpp"
#include "core/speculation/tail_hash.hpp"

namespace tandem {
namespace {

constexpr std::uint32_t kMostCounted = 64;   // of one context, before its counts are halved
constexpr std::uint16_t kMostCredit = 15;    // newcomers of its bucket that an often seen context outlives
constexpr double kShorterContextWeight = 1;  // in observations: what the next shorter context says

/// Counts are kept for contexts of 2, 4, 8 … tokens.
bool is_counted(std::int32_t length) {
  return length >= 2 && std::has_single_bit(static_cast<std::uint32_t>(length));
}

/// Calls `visit` with the hash of every counted context that ends `before`, shortest first.
template <class Visit>
void for_each_context(std::uint64_t salt, std::span<const token_id> before, std::int32_t longest, Visit visit) {
  tail_hash hash(salt);
  const auto most = static_cast<std::int32_t>(std::min<std::size_t>(before.size(), static_cast<std::size_t>(longest)));
  for (std::int32_t length = 1; length <= most; ++length) {
    hash.prepend(before[before.size() - static_cast<std::size_t>(length)]);
    if (is_counted(length)) visit(hash.value());
  }
}

}  // namespace

std::uint32_t suffix_statistics::context::total() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint32_t{others});
}

std::uint32_t suffix_statistics::context::count_of(token_id token) const {
  for (std::size_t i = 0; i < kFollowers; ++i) {
    if (counts[i] > 0 && tokens[i] == token) return counts[i];
  }
  return 0;
}

void suffix_statistics::context::halve() {
  for (std::uint16_t& count : counts) count = static_cast<std::uint16_t>(count / 2);
  others = static_cast<std::uint16_t>(others / 2);
}

/// A token beyond those told apart takes from the rarest of them and replaces it when nothing is left: one that comes
/// to be frequent gets in, a flood of different ones moves none that is.
void suffix_statistics::context::add(token_id token) {
  if (total() >= kMostCounted) halve();
  std::size_t at = 0;
  while (at < kFollowers && counts[at] > 0 && tokens[at] != token) ++at;
  if (at == kFollowers) {
    at = kFollowers - 1;
    --counts[at];
    ++others;
    if (counts[at] > 0) {
      ++others;
      return;
    }
  }
  tokens[at] = token;
  ++counts[at];
  for (; at > 0 && counts[at - 1] <= counts[at]; --at) {
    std::swap(counts[at - 1], counts[at]);
    std::swap(tokens[at - 1], tokens[at]);
  }
}

suffix_statistics::suffix_statistics(options opts) : options_(opts) {
  TANDEM_ASSERT(options_.longest_context >= 2 && options_.longest_context <= limits::kMaxSuffixContext);
  buckets_.resize(std::bit_floor(std::max<std::size_t>(1, options_.bytes / sizeof(bucket))));
}

const suffix_statistics::context* suffix_statistics::find(std::uint64_t key) const {
  for (const context& each : buckets_[key & (buckets_.size() - 1)]) {
    if (each.key == key && each.total() > 0) return &each;
  }
  return nullptr;
}

/// Place of the context that gives way: least credit first, then the one not learned for longest. The others pay a
/// credit each, so that nothing stays for ever unless it is seen again.
std::size_t suffix_statistics::room_in(bucket& full) {
  std::size_t victim = 0;
  for (std::size_t i = 1; i < full.size(); ++i) {
    if (full[i].credit <= full[victim].credit) victim = i;
  }
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (i != victim && full[i].credit > 0) --full[i].credit;
  }
  return victim;
}

suffix_statistics::context& suffix_statistics::context_of(std::uint64_t key) {
  bucket& home = buckets_[key & (buckets_.size() - 1)];
  std::size_t at = 0;
  while (at < home.size() && home[at].total() > 0 && home[at].key != key) ++at;
  const bool is_full = at == home.size();
  const bool is_known = !is_full && home[at].total() > 0;
  if (is_full) at = room_in(home);
  if (is_known) {
    home[at].credit = std::min<std::uint16_t>(kMostCredit, static_cast<std::uint16_t>(home[at].credit + 1));
  } else {
    home[at] = context{};
    home[at].key = key;
    contexts_ += is_full ? 0 : 1;
  }
  std::rotate(home.begin(), home.begin() + static_cast<std::ptrdiff_t>(at),
              home.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return home.front();
}

void suffix_statistics::learn(std::uint64_t salt, std::span<const token_id> before, token_id next) {
  for_each_context(salt, before, options_.longest_context, [&](std::uint64_t key) { context_of(key).add(next); });
}

/// The favourite of the longest context. Each context, from the shortest on, corrects what the shorter ones say of it
/// by its own counts: few observations of a long context weigh little, unless the shorter ones agree.
suffix_statistics::guess suffix_statistics::best_after(std::uint64_t salt, std::span<const token_id> before) const {
  std::array<const context*, limits::kMaxSuffixContext> known{};
  std::size_t count = 0;
  for_each_context(salt, before, options_.longest_context, [&](std::uint64_t key) {
    if (const context* found = find(key)) known[count++] = found;
  });
  if (count == 0) return {};
  guess best{known[count - 1]->tokens[0], 0};
  if (known[count - 1]->counts[0] == 0) return {};  // halving left only tokens that are not told apart
  for (std::size_t i = 0; i < count; ++i) {
    best.probability = (known[i]->count_of(best.token) + kShorterContextWeight * best.probability) /
                       (known[i]->total() + kShorterContextWeight);
  }
  return best;
}

suffix_statistics::continuation suffix_statistics::propose(std::uint64_t salt, std::span<const token_id> before,
                                                           std::int32_t k) const {
  TANDEM_ASSERT(k <= limits::kMaxDraftTokens);
  continuation proposal;
  const auto tail = std::min<std::size_t>(before.size(), static_cast<std::size_t>(options_.longest_context));
  std::vector<token_id> text(before.end() - static_cast<std::ptrdiff_t>(tail), before.end());
  double so_far = 1;
  for (std::int32_t i = 0; i < k; ++i) {
    const guess next = best_after(salt, text);
    so_far *= next.probability;
    if (next.probability <= 0 || so_far < options_.least_probability) break;
    if (i == 0) proposal.first_probability = next.probability;
    proposal.tokens.push_back(next.token);
    text.push_back(next.token);
  }
  return proposal;
}

}  // namespace tandem
