#include "core/ticket.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace tandem {
namespace {

TEST(ticket, the_first_to_close_it_wins) {
  ticket one(1);
  EXPECT_TRUE(one.seal());
  EXPECT_FALSE(one.expire());
  EXPECT_FALSE(one.cancel());
  EXPECT_EQ(one.current(), ticket::state::filled);
}

TEST(ticket, a_waiter_sees_what_was_filled_in_before_the_seal) {
  ticket one(2);
  std::thread source([&] {
    one.fill(1).tokens = {4, 5};
    one.seal();
  });
  EXPECT_EQ(one.wait(std::chrono::seconds(60)), ticket::state::filled);
  EXPECT_EQ(one.drafts(1).tokens, (std::vector<token_id>{4, 5}));
  source.join();
}

TEST(ticket, expires_when_nobody_seals_it_in_time) {
  ticket one(1);
  EXPECT_EQ(one.wait(std::chrono::milliseconds(1)), ticket::state::expired);
  EXPECT_FALSE(one.seal());
}

TEST(ticket, tells_its_listener_once_when_it_settles_or_at_once_when_it_has) {
  int heard = 0;
  ticket early(1);
  early.when_settled([&] { ++heard; });
  EXPECT_EQ(heard, 0);
  early.cancel();
  early.seal();
  EXPECT_EQ(heard, 1);
  ticket late(1);
  late.seal();
  late.when_settled([&] { ++heard; });
  EXPECT_EQ(heard, 2);
}

}  // namespace
}  // namespace tandem
