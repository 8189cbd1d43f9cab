#include "actors/custom_caller.hpp"

#include <utility>

namespace tandem {

custom_caller::custom_caller(custom_source::options options, std::shared_ptr<call_thread> thread)
    : source_(std::make_shared<custom_source>(std::move(options))), thread_(std::move(thread)) {}

void custom_caller::ask(std::shared_ptr<const draft_work> work, answer done) {
  const bool queued = thread_->push([work, done, source = source_, missed = missed_] {
    source->change_slots(missed);
    done(*work, source->draft(*work));
  });
  if (queued) {
    missed_ = {};
    return;
  }
  missed_.add(*work);
  done(*work, {.step = work->step});
}

}  // namespace tandem
