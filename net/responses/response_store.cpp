#include "net/responses/response_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tandem::net {

bool response_store::add(const std::shared_ptr<response_record>& record) {
  std::lock_guard lock(mutex_);
  const auto [at, added] = records_.emplace(record->id(), record);
  if (added) record->count_in(budget_);
  return added;
}

std::shared_ptr<response_record> response_store::find(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : found->second;
}

void response_store::settle(const std::string& id, bool keep, time now) {
  std::lock_guard lock(mutex_);
  const auto found = records_.find(id);
  if (found == records_.end()) return;  // deleted while it ran
  drop_old_events(now);
  if (!keep) {
    records_.erase(found);
    return;
  }
  ended_.push_back({found->second, now, found->second->kept_bytes(), found->second->event_bytes()});
  bytes_ += ended_.back().bytes;
  event_bytes_ += ended_.back().event_bytes;
  evict();
}

// A response larger than the bound is not kept either.
void response_store::evict() {
  while (!ended_.empty() && (ended_.size() > bounds_.responses || bytes_ > bounds_.bytes)) forget(ended_.begin());
  for (auto& one : ended_) {
    if (event_bytes_ <= bounds_.event_bytes) return;
    event_bytes_ -= std::exchange(one.event_bytes, 0);
    one.record->drop_events();
  }
}

void response_store::drop_old_events(time now) {
  for (auto& one : ended_) {
    if (one.at + bounds_.events_kept > now) return;
    if (one.event_bytes == 0) continue;
    event_bytes_ -= std::exchange(one.event_bytes, 0);
    one.record->drop_events();
  }
}

void response_store::forget(std::deque<ended>::iterator one) {
  bytes_ -= one->bytes;
  event_bytes_ -= one->event_bytes;
  records_.erase(one->record->id());
  ended_.erase(one);
}

bool response_store::remove(const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto one =
      std::find_if(ended_.begin(), ended_.end(), [&](const ended& each) { return each.record->id() == id; });
  if (one == ended_.end()) return records_.erase(id) > 0;
  forget(one);
  return true;
}

void response_store::expire(time now) {
  std::lock_guard lock(mutex_);
  drop_old_events(now);
}

std::size_t response_store::size() const {
  std::lock_guard lock(mutex_);
  return records_.size();
}

error unknown_response(std::string_view id) {
  return {error_code::not_found,
          fmt::format("There is no response '{}' here; it was not stored, deleted, or pushed out by newer ones.",
                      id.substr(0, 256)),
          "response_id"};
}

result<std::string> conversation_before(const response_store& store, const std::string& previous_id) {
  if (previous_id.empty()) return std::string();
  const auto record = store.find(previous_id);
  if (!record) return fail(error_code::not_found, unknown_response(previous_id).message, "previous_response_id");
  if (record->ended()) return record->conversation();
  return fail(error_code::invalid_argument, "The previous response is still being made; wait for its end.",
              "previous_response_id");
}

}  // namespace tandem::net
