#pragma once
/// Every response that runs, and those that ended and are kept: bounded in number, bytes and, for events, time.

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/edge_limits.hpp"
#include "core/result.hpp"
#include "net/responses/response_record.hpp"

namespace tandem::net {

struct response_store_bounds {
  std::size_t responses = limits::kMaxStoredResponses;
  std::size_t bytes = limits::kMaxStoredResponseBytes;
  std::size_t event_bytes = limits::kMaxEndedEventBytes;
  std::chrono::milliseconds events_kept = limits::kEndedEventsKept;
  std::size_t all_event_bytes = limits::kMaxAllEventBytes;  ///< also of what runs
};

/// Thread-safe: io threads share it. What runs is bounded by the requests in flight.
class response_store {
 public:
  using time = std::chrono::steady_clock::time_point;
  explicit response_store(response_store_bounds bounds = {}) : bounds_(bounds) {
    budget_->most = bounds.all_event_bytes;
  }

  /// False when the id is taken.
  bool add(const std::shared_ptr<response_record>& record);
  /// Null when there is none.
  std::shared_ptr<response_record> find(const std::string& id) const;
  /// The record has concluded. Kept: it counts from now on, and the oldest ones go when there are too many.
  void settle(const std::string& id, bool keep, time now);
  bool remove(const std::string& id);
  /// Lets go of events that are too old.
  void expire(time now);
  std::size_t size() const;

 private:
  struct ended {
    std::shared_ptr<response_record> record;
    time at;
    std::size_t bytes = 0;
    std::size_t event_bytes = 0;  // 0 once they are dropped
  };
  void evict();
  void drop_old_events(time now);
  void forget(std::deque<ended>::iterator one);

  const response_store_bounds bounds_;
  const std::shared_ptr<event_budget> budget_ = std::make_shared<event_budget>();
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<std::string, std::shared_ptr<response_record>> records_;
  std::deque<ended> ended_;  // oldest first
  std::size_t bytes_ = 0;
  std::size_t event_bytes_ = 0;
};

error unknown_response(std::string_view id);
/// What was said up to and including a response; empty for no id. Errors: not_found; invalid_argument while it runs.
result<std::string> conversation_before(const response_store& store, const std::string& previous_id);

}  // namespace tandem::net
