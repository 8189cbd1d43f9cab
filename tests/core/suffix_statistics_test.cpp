#include "core/speculation/suffix_statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tandem {
namespace {

using tokens_t = std::vector<token_id>;
constexpr std::size_t kBucketBytes = 128;  // four contexts
constexpr std::size_t kRoomy = std::size_t{1} << 22;

/// Every token of `text` from `from` on, after all before it.
void learn_text(suffix_statistics& statistics, const tokens_t& text, std::size_t from = 1, std::uint64_t salt = 0) {
  for (std::size_t i = from; i < text.size(); ++i) statistics.learn(salt, std::span(text).first(i), text[i]);
}

tokens_t random_text(std::size_t length, std::uint32_t alphabet, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  tokens_t text(length);
  for (token_id& token : text) token = static_cast<token_id>(random() % alphabet);
  return text;
}

/// The same counts by whole contexts instead of hashes, without any bound: for alphabets of at most three tokens.
class naive_statistics {
 public:
  void learn(std::span<const token_id> before, token_id next) {
    for (std::size_t length = 2; length <= std::min<std::size_t>(32, before.size()); length *= 2) {
      seen& here = contexts_[tokens_t(before.end() - static_cast<std::ptrdiff_t>(length), before.end())];
      int total = 0;
      for (const auto& [token, each] : here.counts) total += each;
      if (total >= 64) {
        for (auto& [token, each] : here.counts) each /= 2;
      }
      ++here.counts[next];
      here.last_rise[next] = ++here.time;
    }
  }
  suffix_statistics::continuation propose(tokens_t text, std::int32_t k) const {
    suffix_statistics::continuation out;
    double so_far = 1;
    for (std::int32_t i = 0; i < k; ++i) {
      const auto [token, probability] = best(text);
      so_far *= probability;
      if (probability <= 0 || so_far < kUsualLeastProbability) break;
      if (i == 0) out.first_probability = probability;
      out.tokens.push_back(token);
      text.push_back(token);
    }
    return out;
  }

 private:
  struct seen {
    std::map<token_id, int> counts;
    std::map<token_id, int> last_rise;
    int time = 0;
  };
  std::pair<token_id, double> best(const tokens_t& text) const {
    std::vector<const seen*> known;
    for (std::size_t length = 2; length <= std::min<std::size_t>(32, text.size()); length *= 2) {
      const auto found = contexts_.find(tokens_t(text.end() - static_cast<std::ptrdiff_t>(length), text.end()));
      if (found != contexts_.end()) known.push_back(&found->second);
    }
    if (known.empty()) return {kNoToken, 0};
    token_id token = kNoToken;
    int most = 0;
    int latest = -1;
    for (const auto& [each, count] : known.back()->counts) {
      const int rise = known.back()->last_rise.at(each);
      if (count < most || (count == most && rise < latest) || count == 0) continue;
      token = each;
      most = count;
      latest = rise;
    }
    double probability = 0;
    for (const seen* each : known) {
      int total = 0;
      for (const auto& [other, count] : each->counts) total += count;
      const auto found = each->counts.find(token);
      const int count = found == each->counts.end() ? 0 : found->second;
      probability = (count + probability) / (total + 1);
    }
    return {token, probability};
  }
  std::map<tokens_t, seen> contexts_;
};

TEST(suffix_statistics, says_nothing_before_it_has_learned_anything) {
  const suffix_statistics statistics({.bytes = kRoomy});
  EXPECT_TRUE(statistics.propose(0, tokens_t{1, 2, 3}, 8).tokens.empty());
  EXPECT_TRUE(statistics.propose(0, {}, 8).tokens.empty());
}

TEST(suffix_statistics, a_text_seen_once_is_proposed_behind_its_beginning) {
  suffix_statistics statistics({.bytes = kRoomy});
  const tokens_t text = random_text(100, 50'000, 1);
  learn_text(statistics, text);
  for (std::size_t begin = 2; begin + 16 <= text.size(); ++begin) {
    // Two tokens seen once: 1/2; each longer context that agrees halves the doubt.
    const auto found = statistics.propose(0, std::span(text).first(begin), 16);
    const double doubt = 1.0 / (begin < 4 ? 2 : begin < 8 ? 4 : begin < 16 ? 8 : begin < 32 ? 16 : 32);
    EXPECT_DOUBLE_EQ(found.first_probability, 1 - doubt);
    const auto offset = static_cast<std::ptrdiff_t>(begin);
    if (begin >= 16) {
      EXPECT_EQ(found.tokens, tokens_t(text.begin() + offset, text.begin() + offset + 16));
    } else {
      EXPECT_FALSE(found.tokens.empty());
    }
  }
  EXPECT_TRUE(statistics.propose(0, text, 8).tokens.empty());  // nothing ever followed its end
  EXPECT_TRUE(statistics.propose(0, std::span(text).first(40), 0).tokens.empty());
}

TEST(suffix_statistics, prefers_what_followed_the_longest_context_and_of_those_the_most_frequent) {
  suffix_statistics statistics({.bytes = kRoomy});
  for (int i = 0; i < 5; ++i) learn_text(statistics, {7, 1, 2, 30}, 3);
  for (int i = 0; i < 3; ++i) learn_text(statistics, {8, 9, 1, 2, 40}, 4);
  EXPECT_EQ(statistics.propose(0, tokens_t{5, 5, 1, 2}, 1).tokens, (tokens_t{30}));
  EXPECT_EQ(statistics.propose(0, tokens_t{8, 9, 1, 2}, 1).tokens, (tokens_t{40}));
  EXPECT_DOUBLE_EQ(statistics.propose(0, tokens_t{5, 5, 1, 2}, 1).first_probability, 5.0 / 9);
  EXPECT_DOUBLE_EQ(statistics.propose(0, tokens_t{8, 9, 1, 2}, 1).first_probability, (3 + 3.0 / 9) / 4);
}

TEST(suffix_statistics, stops_where_the_whole_proposal_is_too_improbable) {
  for (const double least : {0.0, 0.1, 0.3, 0.6, 1.0}) {
    suffix_statistics statistics({.bytes = kRoomy, .least_probability = least});
    learn_text(statistics, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    const auto found = statistics.propose(0, tokens_t{1, 2}, 7);
    // 1/2 for the first, then 1/2 (context 2, 3), then 3/4 each while contexts of four are known.
    double product = 1;
    std::size_t expected = 0;
    for (const double each : {0.5, 0.5, 0.75, 0.75, 0.75, 0.75, 0.875}) {
      product *= each;
      if (product < least) break;
      ++expected;
    }
    EXPECT_EQ(found.tokens.size(), expected) << least;
  }
}

TEST(suffix_statistics, equals_whole_contexts_without_hashes_on_random_text) {
  for (const std::uint32_t alphabet : {1U, 2U, 3U}) {
    suffix_statistics statistics({.bytes = std::size_t{16} << 20});
    naive_statistics naive;
    const tokens_t text = random_text(2'000, alphabet, alphabet);
    for (std::size_t i = 1; i < text.size(); ++i) {
      const auto before = std::span(text).first(i);
      const auto expected = naive.propose(tokens_t(before.begin(), before.end()), 6);
      const auto found = statistics.propose(0, before, 6);
      ASSERT_EQ(found.tokens, expected.tokens) << alphabet << " at " << i;
      ASSERT_DOUBLE_EQ(found.first_probability, expected.first_probability);
      statistics.learn(0, before, text[i]);
      naive.learn(before, text[i]);
    }
  }
}

TEST(suffix_statistics, a_salt_learns_and_reads_only_its_own) {
  suffix_statistics statistics({.bytes = kRoomy});
  const tokens_t text = random_text(60, 50'000, 2);
  learn_text(statistics, text, 1, 77);
  const auto before = std::span(text).first(40);
  EXPECT_EQ(statistics.propose(77, before, 8).tokens.size(), 8u);
  for (const std::uint64_t salt : {0ULL, 1ULL, 76ULL, 78ULL, ~0ULL})
    EXPECT_TRUE(statistics.propose(salt, before, 8).tokens.empty());
  learn_text(statistics, random_text(60, 50'000, 3));
  EXPECT_TRUE(statistics.propose(77, random_text(60, 50'000, 3), 8).tokens.empty());
}

TEST(suffix_statistics, new_habits_replace_old_ones_however_often_those_were_seen) {
  suffix_statistics statistics({.bytes = kRoomy});
  for (int i = 0; i < 100'000; ++i) statistics.learn(0, tokens_t{1, 2}, 10);
  int until_changed = 0;
  while (statistics.propose(0, tokens_t{1, 2}, 1).tokens != tokens_t{20}) {
    statistics.learn(0, tokens_t{1, 2}, 20);
    ASSERT_LT(++until_changed, 100);
  }
  EXPECT_GT(until_changed, 20);
}

TEST(suffix_statistics, a_flood_of_different_followers_moves_none_that_is_frequent) {
  suffix_statistics statistics({.bytes = kRoomy, .least_probability = 0});
  for (int i = 0; i < 3'000; ++i) {
    statistics.learn(0, tokens_t{1, 2}, 10);
    statistics.learn(0, tokens_t{1, 2}, 1'000 + i);
  }
  const auto found = statistics.propose(0, tokens_t{1, 2}, 1);
  EXPECT_EQ(found.tokens, (tokens_t{10}));
  EXPECT_NEAR(found.first_probability, 0.5, 0.05);
  for (int i = 0; i < 3'000; ++i) statistics.learn(0, tokens_t{3, 4}, 1'000 + i);
  EXPECT_LT(statistics.propose(0, tokens_t{3, 4}, 1).first_probability, 0.05);
}

// One bucket of four contexts of two tokens: who goes is known.
class one_bucket : public ::testing::Test {
 protected:
  void see(token_id name) { statistics_.learn(0, tokens_t{name, name}, name + 100); }
  bool holds(token_id name) const { return !statistics_.propose(0, tokens_t{name, name}, 1).tokens.empty(); }
  std::string held() const {
    std::string names;
    for (token_id name = 0; name < 26; ++name) {
      if (holds(name)) names += static_cast<char>('a' + name);
    }
    return names;
  }
  void see_all(const std::string& names) {
    for (const char name : names) see(name - 'a');
  }
  suffix_statistics statistics_{{.bytes = kBucketBytes, .longest_context = 2}};
};

TEST_F(one_bucket, drops_the_one_not_learned_for_longest) {
  EXPECT_EQ(statistics_.bytes(), kBucketBytes);
  see_all("abcd");
  EXPECT_EQ(held(), "abcd");
  see_all("e");
  EXPECT_EQ(held(), "bcde");
  see_all("fg");
  EXPECT_EQ(held(), "defg");
  EXPECT_EQ(statistics_.contexts(), 4u);
}

TEST_F(one_bucket, keeps_what_is_seen_again_for_as_many_newcomers_as_it_was_seen) {
  see_all("aaabcd");  // a: credit 2
  see_all("e");       // b goes, a: 1
  EXPECT_EQ(held(), "acde");
  see_all("f");  // c goes, a: 0
  EXPECT_EQ(held(), "adef");
  see_all("g");  // now a is the one not learned for longest
  EXPECT_EQ(held(), "defg");
}

TEST_F(one_bucket, proposals_are_not_learning) {
  see_all("abcd");
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(holds(0));
  see_all("e");
  EXPECT_EQ(held(), "bcde");
}

TEST_F(one_bucket, forgets_even_the_most_popular_when_it_is_never_seen_again) {
  for (int i = 0; i < 1'000; ++i) see(0);
  int newcomers = 0;
  while (holds(0)) {
    see(1 + newcomers % 20);
    ASSERT_LT(++newcomers, 25);
  }
  EXPECT_GT(newcomers, 15);
}

TEST(suffix_statistics, memory_stays_what_it_is_under_floods_and_what_is_in_use_survives) {
  suffix_statistics statistics({.bytes = std::size_t{1} << 16});
  const std::size_t bytes = statistics.bytes();
  const tokens_t popular = random_text(40, 1'000, 4);
  tokens_t flood = random_text(30'000, 1'000'000, 5);
  for (std::size_t i = 1; i < flood.size(); ++i) {
    const auto begin = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(i) - 40));
    statistics.learn(0, std::span(flood).subspan(begin, i - begin), flood[i]);
    if (i % 50 == 0) learn_text(statistics, popular);
  }
  EXPECT_EQ(statistics.bytes(), bytes);
  EXPECT_LE(statistics.contexts() * 32, bytes);
  EXPECT_EQ(statistics.propose(0, std::span(popular).first(20), 8).tokens,
            tokens_t(popular.begin() + 20, popular.begin() + 28));
}

TEST(suffix_statistics, takes_very_short_very_long_and_very_repetitive_text) {
  suffix_statistics statistics({.bytes = kRoomy});
  learn_text(statistics, {1});
  learn_text(statistics, {1, 2});  // a context of one token is none
  EXPECT_EQ(statistics.contexts(), 0u);
  learn_text(statistics, tokens_t(100'000, 4));
  EXPECT_EQ(statistics.contexts(), 5u);
  EXPECT_EQ(statistics.propose(0, tokens_t(50, 4), 16).tokens, tokens_t(16, 4));
}

TEST(suffix_statistics, the_same_calls_give_the_same_answers) {
  const tokens_t text = random_text(20'000, 30, 6);
  suffix_statistics first({.bytes = 1 << 14});
  suffix_statistics second({.bytes = 1 << 14});
  learn_text(first, tokens_t(text.begin(), text.begin() + 3'000));
  learn_text(second, tokens_t(text.begin(), text.begin() + 3'000));
  for (std::size_t i = 40; i < 2'000; i += 7) {
    const auto before = std::span(text).subspan(i - 40, 40);
    EXPECT_EQ(first.propose(0, before, 8).tokens, second.propose(0, before, 8).tokens);
  }
}

}  // namespace
}  // namespace tandem
