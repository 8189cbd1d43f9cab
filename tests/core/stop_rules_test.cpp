#include "core/stop_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tandem {
namespace {

using stops_t = std::vector<std::string>;

TEST(stop_automaton, finds_a_stop_inside_one_push_and_leaves_the_cursor_behind_it) {
  const stop_automaton automaton(stops_t{"END"});
  stop_automaton::cursor at;
  const auto found = automaton.push(at, "abENDxyz");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->end, 5u);
  EXPECT_EQ(found->length, 3u);
  EXPECT_EQ(at.bytes, 5u);
}

TEST(stop_automaton, A1_finds_a_stop_across_any_split_of_the_text) {
  const stop_automaton automaton(stops_t{"aab", "\n\n", "xyz"});
  const std::string text = "aaaxy\naab tail";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      stop_automaton::cursor at;
      auto found = automaton.push(at, text.substr(0, first));
      if (!found) found = automaton.push(at, text.substr(first, second - first));
      if (!found) found = automaton.push(at, text.substr(second));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->stop_index, 0u);
      EXPECT_EQ(found->end, 9u) << "counts all bytes read, over all pushes";
    }
  }
}

TEST(stop_automaton, of_stops_that_end_together_takes_the_longest) {
  const stop_automaton automaton(stops_t{"c", "abc", "bc"});
  stop_automaton::cursor at;
  const auto found = automaton.push(at, "zabc");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stop_index, 1u);
  EXPECT_EQ(found->length, 3u);
}

TEST(stop_automaton, of_nested_stops_takes_the_one_that_completes_first) {
  const stop_automaton automaton(stops_t{"abcd", "bc"});
  stop_automaton::cursor at;
  const auto found = automaton.push(at, "abcd");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stop_index, 1u);
  EXPECT_EQ(found->end, 3u);
}

TEST(stop_automaton, without_stops_is_empty_and_holds_nothing) {
  const stop_automaton automaton(stops_t{});
  EXPECT_TRUE(automaton.empty());
  stop_automaton::cursor at;
  EXPECT_FALSE(automaton.push(at, "anything"));
  EXPECT_EQ(automaton.held(at), 0u);
  EXPECT_EQ(at.bytes, 8u);
}

TEST(stop_automaton, takes_every_byte_value_and_repeated_stops) {
  const std::string zeros(2, '\0');
  const stop_automaton automaton(stops_t{zeros, "\xff\xfe", zeros});
  stop_automaton::cursor at;
  EXPECT_FALSE(automaton.push(at, std::string_view("\xff\0", 2)));
  EXPECT_EQ(automaton.held(at), 1u);
  const auto found = automaton.push(at, std::string_view("\0", 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stop_index, 0u);
}

std::size_t naive_held(const stops_t& stops, const std::string& text) {
  std::size_t best = 0;
  for (const std::string& stop : stops) {
    for (std::size_t length = 1; length < stop.size() && length <= text.size(); ++length) {
      if (text.ends_with(stop.substr(0, length))) best = std::max(best, length);
    }
  }
  return best;
}

TEST(stop_automaton, C3_equals_a_naive_search_and_holds_exactly_what_may_become_a_stop) {
  std::mt19937 random(1);
  const auto word = [&](std::size_t longest) {
    std::string out(1 + random() % longest, 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int round = 0; round < 3000; ++round) {
    stops_t stops(1 + random() % 4);
    for (std::string& stop : stops) stop = word(6);
    const stop_automaton automaton(stops);
    const std::string text = word(40);
    stop_automaton::cursor at;
    for (std::size_t end = 1; end <= text.size(); ++end) {
      const auto found = automaton.push(at, text.substr(end - 1, 1));
      const std::string read = text.substr(0, end);
      std::size_t longest = 0;
      for (const std::string& stop : stops) longest = read.ends_with(stop) ? std::max(longest, stop.size()) : longest;
      ASSERT_EQ(found.has_value(), longest > 0);
      ASSERT_EQ(automaton.held(at), naive_held(stops, read));
      if (!found) continue;
      EXPECT_EQ(found->length, longest);
      EXPECT_EQ(stops[found->stop_index].size(), longest);
      break;
    }
  }
}

}  // namespace
}  // namespace tandem
