#pragma once
/// Brings events from actor threads to a program's callbacks, on a thread of its own, so that a callback may be slow or
/// call the engine again.

#include <cstddef>
#include <functional>
#include <memory>

#include "actors/outlet.hpp"

namespace tandem::engine {

/// What a caller wants to hear about one request. Called on the delivery thread, in order; the answer first.
struct request_handlers {
  std::function<void(const submission_answer&)> answer;
  std::function<void(generation_event)> event;
};

/// Thread-safe. Beyond limits::kMaxUndeliveredEvents, new pieces of a choice are joined to its last undelivered one, so
/// what waits is bounded by that and the choices in flight.
class delivery final : public outlet {
 public:
  delivery();
  /// Drops what was not delivered.
  ~delivery() override;
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;

  void answer(submission_answer answer) override;
  void post(std::vector<generation_event> events) override;

  /// `choices`: how many ends the request has. Events that came before wait for this call.
  void attach(request_id id, std::int32_t choices, request_handlers handlers);
  /// Returns when everything that arrived before was delivered. Not from a handler.
  void flush();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Joins `next` to `piece`, which came right before it for the same choice.
void join_events(generation_event& piece, generation_event next);

}  // namespace tandem::engine
