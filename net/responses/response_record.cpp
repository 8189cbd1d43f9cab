#include "net/responses/response_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/edge_limits.hpp"
#include "core/assert.hpp"

namespace tandem::net {

response_record::response_record(std::string id, std::vector<input_item> input_items)
    : id_(std::move(id)), input_items_(std::move(input_items)) {}

response_record::~response_record() {
  drop_events();
}

void response_record::count_in(std::shared_ptr<event_budget> budget) {
  std::lock_guard lock(mutex_);
  TANDEM_ASSERT(event_bytes_ == 0);
  budget_ = std::move(budget);
}

void response_record::add_bytes(std::size_t bytes) {
  event_bytes_ += bytes;
  if (budget_) budget_->used += bytes;
}

void response_record::drop_oldest() {
  const std::size_t bytes = events_.front().size();
  event_bytes_ -= bytes;
  if (budget_) budget_->used -= bytes;
  events_.pop_front();
  ++first_;
}

void response_record::append(std::string_view lines) {
  std::lock_guard lock(mutex_);
  keep(lines);
  wake_all();
}

void response_record::keep(std::string_view lines) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    TANDEM_ASSERT(end != std::string_view::npos && end > 1 && lines[end - 1] == '}');
    const std::int64_t number = first_ + static_cast<std::int64_t>(events_.size());
    events_.push_back(fmt::format("{},\"sequence_number\":{}}}", lines.substr(0, end - 1), number));
    add_bytes(events_.back().size());
    lines.remove_prefix(end + 1);
  }
  shed();
}

// The oldest go first: those that all have read, then those that a slow reader has not.
void response_record::shed() {
  const bool crowded = budget_ && budget_->used > budget_->most;
  const std::size_t most = crowded ? limits::kCrowdedEventBytes : limits::kMaxResponseEventBytes;
  while (event_bytes_ > most) drop_oldest();
  for (const auto& one : readers_) one->behind = one->behind || one->next < first_;
}

void response_record::wake_all() {
  for (const auto& one : readers_) {
    if (std::exchange(one->woken, true)) continue;
    one->door->run([weak = std::weak_ptr<attached>(one)] {
      if (const auto place = weak.lock()) place->wake();
    });
  }
}

void response_record::set_object(std::string json) {
  std::lock_guard lock(mutex_);
  object_json_ = std::move(json);
}

void response_record::conclude(std::string_view last_events, std::string object_json, std::string conversation) {
  std::lock_guard lock(mutex_);
  keep(last_events);
  object_json_ = std::move(object_json);
  conversation_ = std::move(conversation);
  ended_ = true;
  wake_all();
}

std::int64_t response_record::next_number() const {
  std::lock_guard lock(mutex_);
  return first_ + static_cast<std::int64_t>(events_.size());
}

std::unique_ptr<response_record::reader> response_record::read_from(std::int64_t from, std::shared_ptr<bridge> door,
                                                                    std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  if (from < first_ || from > first_ + static_cast<std::int64_t>(events_.size())) return nullptr;
  auto place = std::make_shared<attached>();
  place->door = std::move(door);
  place->wake = std::move(wake);
  place->next = from;
  readers_.push_back(place);
  return std::make_unique<reader>(shared_from_this(), std::move(place));
}

bool response_record::has_readers() const {
  std::lock_guard lock(mutex_);
  return !readers_.empty();
}

void response_record::detach(const attached* one) {
  std::lock_guard lock(mutex_);
  std::erase_if(readers_, [one](const auto& each) { return each.get() == one; });
}

bool response_record::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

std::string response_record::object_json() const {
  std::lock_guard lock(mutex_);
  return object_json_;
}

std::string response_record::conversation() const {
  std::lock_guard lock(mutex_);
  return conversation_;
}

std::size_t response_record::event_bytes() const {
  std::lock_guard lock(mutex_);
  return event_bytes_;
}

std::size_t response_record::kept_bytes() const {
  std::size_t bytes = sizeof *this + id_.size();
  for (const input_item& item : input_items_) bytes += item.id.size() + item.json.size();
  std::lock_guard lock(mutex_);
  return bytes + object_json_.size() + conversation_.size();
}

void response_record::drop_events() {
  std::lock_guard lock(mutex_);
  while (!events_.empty()) drop_oldest();
  for (const auto& one : readers_) one->behind = one->behind || one->next < first_;
  wake_all();
}

response_record::reader::~reader() {
  record_->detach(place_.get());
}

response_record::reader::state response_record::reader::read(std::vector<std::string>& out, std::size_t max_bytes) {
  std::lock_guard lock(record_->mutex_);
  place_->woken = false;
  if (place_->behind) return state::behind;
  const auto end = record_->first_ + static_cast<std::int64_t>(record_->events_.size());
  for (std::size_t bytes = 0; place_->next < end && bytes < max_bytes; ++place_->next) {
    out.push_back(record_->events_[static_cast<std::size_t>(place_->next - record_->first_)]);
    bytes += out.back().size();
  }
  if (place_->next < end) return state::more;
  return record_->ended_ ? state::ended : state::waiting;
}

std::int64_t response_record::reader::next_number() const {
  std::lock_guard lock(record_->mutex_);
  return place_->next;
}

std::string_view event_type(std::string_view json) {
  constexpr std::string_view kBefore = R"({"type":")";
  TANDEM_ASSERT(json.starts_with(kBefore));
  json.remove_prefix(kBefore.size());
  return json.substr(0, json.find('"'));
}

}  // namespace tandem::net
