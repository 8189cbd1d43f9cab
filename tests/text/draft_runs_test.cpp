#include "text/draft_runs.hpp"

#include <gtest/gtest.h>

namespace tandem::text {
namespace {

using runs = std::vector<text_run>;

void add(draft_runs& to, std::string_view bytes, std::string_view drafted) {
  for (std::size_t i = 0; i < bytes.size(); ++i) to.add_token(bytes.substr(i, 1), drafted[i] == '1');
}

TEST(draft_runs, runs_cover_the_text_and_alternate) {
  draft_runs tracked;
  add(tracked, "abcde", "01101");
  EXPECT_EQ(tracked.take("abcde"), (runs{{1, 1, false}, {2, 2, true}, {1, 1, false}, {1, 1, true}}));
  EXPECT_EQ(tracked.take(""), runs{});
}

TEST(draft_runs, characters_are_counted_beside_bytes_and_drafted_only_as_a_whole) {
  draft_runs tracked;
  tracked.add_token("x日", true);
  add(tracked, "本", "110");
  EXPECT_EQ(tracked.take("x日本"), (runs{{4, 2, true}, {3, 1, false}}));
}

TEST(draft_runs, text_that_is_held_back_keeps_its_origin) {
  draft_runs tracked;
  add(tracked, "abc", "011");
  EXPECT_EQ(tracked.take("a"), (runs{{1, 1, false}}));
  add(tracked, "d", "0");
  EXPECT_EQ(tracked.take("bcd"), (runs{{2, 2, true}, {1, 1, false}}));
}

TEST(draft_runs, text_of_unknown_origin_is_not_drafted) {
  draft_runs tracked;
  add(tracked, "abc", "111");
  EXPECT_EQ(tracked.take("xyz"), (runs{{3, 3, false}}));
  EXPECT_EQ(tracked.take("more"), (runs{{4, 4, false}}));
}

}  // namespace
}  // namespace tandem::text
