#include "tests/support/lab/event_recorder.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"

namespace tandem::lab {

void event_recorder::answer(submission_answer answer) {
  std::lock_guard lock(mutex_);
  auto& record = requests_[answer.id];
  TANDEM_ASSERT(!record.answered);
  record.answered = true;
  record.refused = std::move(answer.refused);
  if (answer.prompt) record.prompt = *answer.prompt;
  changed_.notify_all();
}

void event_recorder::post(std::vector<generation_event> events) {
  std::lock_guard lock(mutex_);
  ++posts_;
  for (auto& event : events) {
    auto& record = requests_[event.id];
    TANDEM_ASSERT(record.answered && !record.refused);
    auto& choice = record.choices[event.choice];
    TANDEM_ASSERT(!choice.end);
    ++choice.events;
    choice.text += event.text;
    choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
    choice.accepted.insert(choice.accepted.end(), event.accepted.begin(), event.accepted.end());
    choice.end = std::move(event.end);
    choice.stats = event.stats;
  }
  changed_.notify_all();
}

request_record event_recorder::of(request_id id) const {
  std::lock_guard lock(mutex_);
  const auto found = requests_.find(id);
  return found == requests_.end() ? request_record{} : found->second;
}

choice_record event_recorder::choice(request_id id, std::int32_t index) const {
  const auto record = of(id);
  const auto found = record.choices.find(index);
  return found == record.choices.end() ? choice_record{} : found->second;
}

bool event_recorder::finished_locked(request_id id, std::int32_t choices) const {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  if (found->second.refused) return true;
  const auto& seen = found->second.choices;
  return std::count_if(seen.begin(), seen.end(), [](const auto& entry) { return entry.second.end.has_value(); }) ==
         choices;
}

bool event_recorder::finished(request_id id, std::int32_t choices) const {
  std::lock_guard lock(mutex_);
  return finished_locked(id, choices);
}

bool event_recorder::wait(request_id id, std::int32_t choices, std::chrono::milliseconds bound) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, bound, [&] { return finished_locked(id, choices); });
}

int event_recorder::posts() const {
  std::lock_guard lock(mutex_);
  return posts_;
}

}  // namespace tandem::lab
