#pragma once
/// A client that remembers what it was told and complains when the order of events breaks the contract of outlet.hpp.

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/outlet.hpp"

namespace tandem::lab {

/// What a client saw of one choice.
struct choice_record {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<std::uint8_t> accepted;
  std::optional<finish> end;
  sequence_stats stats;
  int events = 0;
};
struct request_record {
  bool answered = false;
  std::optional<error> refused;
  std::vector<token_id> prompt;
  std::map<std::int32_t, choice_record> choices;
};

/// Thread-safe.
class event_recorder final : public outlet {
 public:
  void answer(submission_answer answer) override;
  void post(std::vector<generation_event> events) override;

  request_record of(request_id id) const;
  choice_record choice(request_id id, std::int32_t index = 0) const;
  /// Refused, or `choices` last events came.
  bool finished(request_id id, std::int32_t choices = 1) const;
  bool wait(request_id id, std::int32_t choices, std::chrono::milliseconds bound) const;
  int posts() const;

 private:
  bool finished_locked(request_id id, std::int32_t choices) const;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<request_id, request_record> requests_;
  int posts_ = 0;
};

}  // namespace tandem::lab
