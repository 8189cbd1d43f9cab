#include "gpu/host/leader.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/host_resources.hpp"

namespace tandem::gpu::host {
namespace {

using clock = std::chrono::steady_clock;

bool settled(const leader_item& item) {
  return std::all_of(item.tickets.begin(), item.tickets.end(),
                     [](const auto& each) { return each->current() != ticket::state::open; });
}

struct queue {
  leader::queue_id id = 0;
  leader::urgency kind = leader::urgency::target;
  std::deque<leader_item> items;
  std::optional<clock::time_point> taken;  // since when the first item is first
  bool running = false;
  bool closing = false;
};

}  // namespace

struct leader::state {
  std::mutex mutex;
  std::condition_variable changed;     // something to do for the leader
  std::condition_variable passed;      // an item left
  std::atomic<std::uint64_t> news{0};  // counts what `changed` tells, for a leader that has not parked yet
  std::list<queue> queues;
  queue_id last_id = 0;
  bool stopping = false;

  /// What to do next; run == nullptr: nothing until `wake`.
  struct choice {
    queue* from = nullptr;
    std::vector<std::shared_ptr<ticket>> to_expire;
    std::optional<clock::time_point> wake;
  };

  void tell() {
    news.fetch_add(1, std::memory_order_release);
    changed.notify_all();
  }

  queue* find(queue_id id) {
    const auto found = std::find_if(queues.begin(), queues.end(), [id](const queue& each) { return each.id == id; });
    return found == queues.end() ? nullptr : &*found;
  }

  void loop();
  choice choose(clock::time_point now);
  void run_first(std::unique_lock<std::mutex>& lock, queue& from);
  void await_news(std::unique_lock<std::mutex>& lock);
};

/// Closing queues first (their items are dropped), then drafts, then targets; items whose tickets have settled, or have
/// waited too long.
leader::state::choice leader::state::choose(clock::time_point now) {
  choice made;
  for (queue& each : queues)
    if (!each.items.empty() && each.closing) return {&each, {}, {}};
  for (queue& each : queues)
    if (!each.items.empty() && each.kind == urgency::draft && settled(each.items.front())) return {&each, {}, {}};
  for (queue& each : queues) {
    if (each.items.empty()) continue;
    if (!each.taken) each.taken = now;
    if (settled(each.items.front())) return {&each, {}, {}};
    const auto expiry = *each.taken + limits::kTicketExpiry;
    if (now >= expiry) return {nullptr, each.items.front().tickets, {}};
    made.wake = made.wake ? std::min(*made.wake, expiry) : expiry;
  }
  return made;
}

void leader::state::run_first(std::unique_lock<std::mutex>& lock, queue& from) {
  const clock::time_point now = clock::now();
  leader_item item = std::move(from.items.front());
  from.items.pop_front();
  const leader_item::timing timing{from.taken.value_or(now), from.taken ? now - *from.taken : clock::duration{0}};
  from.taken.reset();
  from.running = true;
  const bool dropped = from.closing;
  lock.unlock();
  if (dropped) {
    item.drop();
  } else {
    item.run(timing);
  }
  item = {};  // what it owned goes before anybody learns that it has passed
  lock.lock();
  from.running = false;
  passed.notify_all();
}

/// Right after an item the next one is a few messages away: waking a parked thread would cost more than yielding to the
/// threads that bring it.
void leader::state::await_news(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t seen = news.load(std::memory_order_acquire);
  const auto until = clock::now() + limits::kLeaderSpin;
  lock.unlock();
  bool changed_meanwhile = false;
  while (!changed_meanwhile && clock::now() < until) {
    std::this_thread::yield();
    changed_meanwhile = news.load(std::memory_order_acquire) != seen;
  }
  lock.lock();
}

void leader::state::loop() {
  const denormals_off same_rounding_everywhere;
  std::unique_lock lock(mutex);
  bool just_ran = false;
  while (true) {
    choice next = choose(clock::now());
    if (next.from != nullptr) {
      run_first(lock, *next.from);
      just_ran = true;
    } else if (!next.to_expire.empty()) {
      lock.unlock();  // the tickets' listener takes the lock
      for (const auto& each : next.to_expire) each->expire();
      lock.lock();
    } else if (stopping) {
      return;
    } else if (std::exchange(just_ran, false)) {
      await_news(lock);
    } else if (next.wake) {
      changed.wait_until(lock, *next.wake);
    } else {
      changed.wait(lock);
    }
  }
}

leader::leader() : state_(std::make_shared<state>()), thread_([shared = state_] { shared->loop(); }) {}

leader::~leader() {
  {
    std::lock_guard lock(state_->mutex);
    TANDEM_ASSERT(state_->queues.empty());
    state_->stopping = true;
  }
  state_->tell();
  thread_.join();
}

leader::queue_id leader::open_queue(urgency kind) {
  std::lock_guard lock(state_->mutex);
  queue& opened = state_->queues.emplace_back();
  opened.id = ++state_->last_id;
  opened.kind = kind;
  return opened.id;
}

void leader::push(queue_id id, leader_item item) {
  const auto tickets = item.tickets;
  {
    std::lock_guard lock(state_->mutex);
    queue* to = state_->find(id);
    TANDEM_ASSERT(to != nullptr && !to->closing && to->items.size() < limits::kMaxQueuedLaunches);
    to->items.push_back(std::move(item));
  }
  state_->tell();
  for (const auto& each : tickets) {
    each->when_settled([shared = state_] {
      { std::lock_guard lock(shared->mutex); }
      shared->tell();
    });
  }
}

void leader::close_queue(queue_id id) {
  TANDEM_ASSERT(std::this_thread::get_id() != thread_.get_id());
  std::unique_lock lock(state_->mutex);
  queue* closing = state_->find(id);
  TANDEM_ASSERT(closing != nullptr);
  closing->closing = true;
  state_->tell();
  state_->passed.wait(lock, [closing] { return closing->items.empty() && !closing->running; });
  std::erase_if(state_->queues, [id](const queue& each) { return each.id == id; });
}

}  // namespace tandem::gpu::host
