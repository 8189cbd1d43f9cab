#include "gpu/host/leader.hpp"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "config/limits.hpp"

namespace tandem::gpu::host {
namespace {

/// Items that write down in which order they ran.
class diary {
 public:
  leader_item item(std::string name, std::vector<std::shared_ptr<ticket>> tickets = {}) {
    return {[this, name](const leader_item::timing&) { note(name); }, [this, name] { note("dropped " + name); },
            std::move(tickets)};
  }
  void note(std::string what) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(what));
  }
  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// An item that keeps the leader busy until it is let go.
struct gate {
  std::promise<void> opened;
  std::promise<void> reached;
  leader_item item() {
    return {[this](const leader_item::timing&) {
              reached.set_value();
              opened.get_future().wait();
            },
            [] {},
            {}};
  }
};

TEST(leader, runs_items_of_a_stream_in_order_and_waits_for_them_when_it_closes) {
  diary notes;
  leader one;
  const auto queue = one.open_queue(leader::urgency::target);
  std::promise<void> done;
  for (const char* name : {"1", "2", "3"}) one.push(queue, notes.item(name));
  one.push(queue, {[&](const leader_item::timing&) { done.set_value(); }, [] {}, {}});
  done.get_future().wait();
  one.close_queue(queue);
  EXPECT_EQ(notes.lines(), (std::vector<std::string>{"1", "2", "3"}));
}

TEST(leader, lets_draft_work_run_while_a_target_step_waits_for_its_ticket) {
  diary notes;
  leader one;
  const auto target = one.open_queue(leader::urgency::target);
  const auto draft = one.open_queue(leader::urgency::draft);
  auto drafts = std::make_shared<ticket>(1);
  std::promise<void> done;
  one.push(target, {[&](const leader_item::timing&) {
                      notes.note("target");
                      done.set_value();
                    },
                    [] {},
                    {drafts}});
  one.push(draft, {[&](const leader_item::timing&) {
                     notes.note("draft");
                     drafts->seal();
                   },
                   [] {},
                   {}});
  done.get_future().wait();
  EXPECT_EQ(notes.lines(), (std::vector<std::string>{"draft", "target"}));
  one.close_queue(target);
  one.close_queue(draft);
}

TEST(leader, expires_a_ticket_that_nobody_fills) {
  leader one;
  const auto target = one.open_queue(leader::urgency::target);
  auto drafts = std::make_shared<ticket>(1);
  std::promise<std::chrono::nanoseconds> waited;
  one.push(target, {[&](const leader_item::timing& timing) { waited.set_value(timing.ticket_wait); }, [] {}, {drafts}});
  EXPECT_GE(waited.get_future().get(), limits::kTicketExpiry);
  EXPECT_EQ(drafts->current(), ticket::state::expired);
  one.close_queue(target);
}

TEST(leader, closing_a_stream_drops_what_waits_and_each_item_hears_of_it) {
  diary notes;
  gate busy;
  leader one;
  const auto target = one.open_queue(leader::urgency::target);
  const auto draft = one.open_queue(leader::urgency::draft);
  one.push(draft, busy.item());
  busy.reached.get_future().wait();
  one.push(target, notes.item("a"));
  one.push(target, notes.item("b", {std::make_shared<ticket>(1)}));
  std::thread closer([&] { one.close_queue(target); });
  busy.opened.set_value();
  closer.join();
  EXPECT_EQ(notes.lines().back(), "dropped b");  // its ticket is never filled: only a drop ends it
  EXPECT_EQ(notes.lines().size(), 2U);
  one.close_queue(draft);
}

}  // namespace
}  // namespace tandem::gpu::host
