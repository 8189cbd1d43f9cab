#include "engine/client.hpp"

#include <utility>

namespace tandem::engine {

request_handlers with_early_cancel(request_handlers handlers, std::int32_t choices) {
  request_handlers wrapped;
  wrapped.event = handlers.event;
  wrapped.answer = [handlers = std::move(handlers), choices](const submission_answer& answer) {
    const bool early_cancel = answer.refused && answer.refused->code == error_code::cancelled;
    if (handlers.answer) handlers.answer(early_cancel ? submission_answer{answer.id, {}, nullptr} : answer);
    for (std::int32_t choice = 0; early_cancel && handlers.event && choice < choices; ++choice) {
      generation_event end;
      end.id = answer.id;
      end.choice = choice;
      end.end.emplace().reason = finish_reason::cancelled;
      handlers.event(std::move(end));
    }
  };
  return wrapped;
}

}  // namespace tandem::engine
