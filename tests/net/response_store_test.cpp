// What is kept of responses, and for how long. No sockets.

#include "net/responses/response_store.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace tandem::net {
namespace {

using std::chrono::milliseconds;
const response_store::time kStart{};

std::shared_ptr<response_record> made(response_store& store, const std::string& id, std::size_t conversation = 10) {
  auto record = std::make_shared<response_record>(id, std::vector<input_item>{});
  EXPECT_TRUE(store.add(record));
  record->append("{\"type\":\"one\"}\n{\"type\":\"two\"}\n");
  record->conclude({}, "{}", std::string(conversation, 'c'));
  return record;
}

struct listener {
  boost::asio::io_context context;
  std::shared_ptr<bridge> door = std::make_shared<bridge>(context);
  int woken = 0;
  std::unique_ptr<response_record::reader> read(const std::shared_ptr<response_record>& record, std::int64_t from) {
    return record->read_from(from, door, [this] { ++woken; });
  }
};

TEST(response_store, the_oldest_go_when_there_are_too_many) {
  response_store store({2, 1 << 20, 1 << 20, milliseconds(1000)});
  for (const std::string id : {"a", "b", "c"}) {
    made(store, id);
    store.settle(id, true, kStart);
  }
  EXPECT_EQ(store.find("a"), nullptr);
  EXPECT_NE(store.find("b"), nullptr);
  EXPECT_EQ(store.size(), 2U);
}

TEST(response_store, the_oldest_go_when_they_are_too_large_and_what_never_fits_is_not_kept) {
  response_store store({100, 10'000, 1 << 20, milliseconds(1000)});
  for (const std::string id : {"a", "b", "c"}) {
    made(store, id, 4000);
    store.settle(id, true, kStart);
  }
  EXPECT_EQ(store.find("a"), nullptr);
  EXPECT_NE(store.find("c"), nullptr);
  made(store, "large", 20'000);
  store.settle("large", true, kStart);
  EXPECT_EQ(store.size(), 0U);
}

TEST(response_store, what_runs_is_found_and_never_pushed_out) {
  response_store store({1, 1 << 20, 1 << 20, milliseconds(1000)});
  EXPECT_TRUE(store.add(std::make_shared<response_record>("running", std::vector<input_item>{})));
  EXPECT_FALSE(store.add(std::make_shared<response_record>("running", std::vector<input_item>{})));
  for (const std::string id : {"a", "b"}) {
    made(store, id);
    store.settle(id, true, kStart);
  }
  EXPECT_NE(store.find("running"), nullptr);
  EXPECT_FALSE(conversation_before(store, "running"));
  store.settle("running", false, kStart);
  EXPECT_EQ(store.find("running"), nullptr);
}

TEST(response_store, events_go_before_the_response_by_time_and_by_bytes) {
  response_store store({100, 1 << 20, 100, milliseconds(1000)});
  const auto first = made(store, "first");
  store.settle("first", true, kStart);
  EXPECT_GT(first->event_bytes(), 50U);
  const auto second = made(store, "second");
  store.settle("second", true, kStart);
  EXPECT_EQ(first->event_bytes(), 0U);
  EXPECT_GT(second->event_bytes(), 0U);
  store.expire(kStart + milliseconds(999));
  EXPECT_GT(second->event_bytes(), 0U);
  store.expire(kStart + milliseconds(1000));
  EXPECT_EQ(second->event_bytes(), 0U);
  EXPECT_NE(store.find("first"), nullptr);
  listener one;
  EXPECT_EQ(one.read(second, 0), nullptr);
}

TEST(response_store, when_all_events_are_too_many_each_response_keeps_a_little) {
  response_store store({100, 1 << 20, 1 << 20, milliseconds(1000), 1 << 20});
  const std::string event = "{\"type\":\"a\",\"delta\":\"" + std::string(10'000, 'x') + "\"}\n";
  std::vector<std::shared_ptr<response_record>> records;
  for (const std::string id : {"a", "b", "c"}) {
    records.push_back(std::make_shared<response_record>(id, std::vector<input_item>{}));
    EXPECT_TRUE(store.add(records.back()));
  }
  const auto fill = [&](response_record& one, int events) {
    for (int i = 0; i < events; ++i) one.append(event);
    return one.event_bytes();
  };
  EXPECT_GT(fill(*records[0], 60), 500'000U);
  EXPECT_GT(fill(*records[1], 40), 300'000U);
  EXPECT_LE(fill(*records[2], 20), limits::kCrowdedEventBytes);
  store.remove("a");
  records.erase(records.begin());  // its bytes are free again
  EXPECT_GT(fill(*records.back(), 20), 200'000U);
}

TEST(response_record, readers_get_numbered_events_from_where_they_ask) {
  const auto record = std::make_shared<response_record>("r", std::vector<input_item>{});
  listener one;
  EXPECT_EQ(one.read(record, 1), nullptr);
  const auto reader = one.read(record, 0);
  record->append("{\"type\":\"a\"}\n");
  record->append("{\"type\":\"b\"}\n");
  one.context.run();
  EXPECT_EQ(one.woken, 1);  // once until it looks
  std::vector<std::string> events;
  EXPECT_EQ(reader->read(events, 1), response_record::reader::state::more);
  EXPECT_EQ(reader->read(events, 1), response_record::reader::state::waiting);
  EXPECT_EQ(events, (std::vector<std::string>{"{\"type\":\"a\",\"sequence_number\":0}",
                                              "{\"type\":\"b\",\"sequence_number\":1}"}));
  EXPECT_EQ(event_type(events[1]), "b");
  record->conclude({}, "{}", {});
  EXPECT_EQ(reader->read(events, 1), response_record::reader::state::ended);
  const auto late = one.read(record, 1);
  events.clear();
  EXPECT_EQ(late->read(events, 100), response_record::reader::state::ended);
  EXPECT_EQ(events.size(), 1U);
}

TEST(response_record, a_reader_that_falls_behind_is_told_and_costs_no_more_memory) {
  const auto record = std::make_shared<response_record>("r", std::vector<input_item>{});
  listener one;
  const auto slow = one.read(record, 0);
  const std::string event = "{\"type\":\"a\",\"delta\":\"" + std::string(1 << 20, 'x') + "\"}\n";
  for (int i = 0; i < 6; ++i) record->append(event);
  EXPECT_LE(record->event_bytes(), limits::kMaxResponseEventBytes);
  std::vector<std::string> events;
  EXPECT_EQ(slow->read(events, 1), response_record::reader::state::behind);
  EXPECT_TRUE(events.empty());
  const auto quick = one.read(record, record->next_number() - 1);
  EXPECT_EQ(quick->read(events, 1), response_record::reader::state::waiting);
  EXPECT_EQ(events.size(), 1U);
}

}  // namespace
}  // namespace tandem::net
