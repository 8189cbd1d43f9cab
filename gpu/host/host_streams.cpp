#include <exception>
#include <string>
#include <utility>

#include "core/assert.hpp"
#include "gpu/host/host_core.hpp"

namespace tandem::gpu::host {
namespace {

using clock = std::chrono::steady_clock;

constexpr const char* kDropped = "The device's stream was closed before this work began; ask again.";

std::uint64_t nanoseconds(std::chrono::nanoseconds span) {
  return static_cast<std::uint64_t>(span.count());
}

/// Runs `work`; what it throws (no memory, as a rule) becomes a failed outcome and the device goes on.
template <class Outcome, class Work>
Outcome guarded(step_id step, Work work) {
  Outcome outcome;
  try {
    return work();
  } catch (const std::exception& failure) {
    outcome.error_message = "The device could not compute this step (" + std::string(failure.what()) +
                            "); lower the number of requests or the memory they may use.";
  }
  outcome.step = step;
  outcome.ok = false;
  return outcome;
}

template <class Outcome>
Outcome dropped(step_id step) {
  Outcome outcome;
  outcome.step = step;
  outcome.ok = false;
  outcome.error_message = kDropped;
  return outcome;
}

/// Owns one queue of the leader; closing it waits for the running item and drops the rest.
class open_queue {
 public:
  open_queue(std::shared_ptr<host_core> core, leader::urgency kind)
      : core_(std::move(core)), id_(core_->computing.open_queue(kind)) {}
  ~open_queue() { core_->computing.close_queue(id_); }
  open_queue(const open_queue&) = delete;
  open_queue& operator=(const open_queue&) = delete;

  void push(leader_item item) { core_->computing.push(id_, std::move(item)); }
  host_core& core() { return *core_; }

 private:
  std::shared_ptr<host_core> core_;
  leader::queue_id id_;
};

class host_target_stream final : public target_stream {
 public:
  explicit host_target_stream(std::shared_ptr<host_core> core) : queue_(std::move(core), leader::urgency::target) {}

  void launch(std::shared_ptr<const step_work> work, step_completion done) override {
    TANDEM_ASSERT(work != nullptr && done);
    leader_item item;
    item.tickets = work->tickets;
    item.drop = [step = work->step, done] { done(dropped<step_outcome>(step)); };
    item.run = [core = &queue_.core(), work = std::move(work),
                done = std::move(done)](const leader_item::timing& timing) {
      auto outcome = guarded<step_outcome>(work->step, [&] { return core->target_work->run(*work); });
      outcome.ticket_wait_ns = nanoseconds(timing.ticket_wait);
      outcome.device_ns = nanoseconds(clock::now() - timing.taken);
      done(std::move(outcome));
    };
    queue_.push(std::move(item));
  }

 private:
  open_queue queue_;
};

/// Of a draft model or of draft heads, whichever `runner` is.
template <class Runner>
class host_draft_stream final : public draft_stream {
 public:
  host_draft_stream(std::shared_ptr<host_core> core, Runner& runner)
      : queue_(std::move(core), leader::urgency::draft), runner_(runner) {}

  void launch(std::shared_ptr<const draft_work> work, draft_completion done) override {
    TANDEM_ASSERT(work != nullptr && done);
    leader_item item;
    item.tickets = awaited_by(work->proposals);
    item.drop = [work, done] {
      if (work->drafts) work->drafts->cancel();
      done(dropped<draft_outcome>(work->step));
    };
    item.run = [runner = &runner_, work = std::move(work), done = std::move(done)](const leader_item::timing& timing) {
      auto outcome = guarded<draft_outcome>(work->step, [&] { return runner->run(*work); });
      if (!outcome.ok && work->drafts) work->drafts->cancel();
      outcome.device_ns = nanoseconds(clock::now() - timing.taken - timing.ticket_wait);
      done(std::move(outcome));
    };
    queue_.push(std::move(item));
  }

 private:
  open_queue queue_;
  Runner& runner_;
};

}  // namespace

std::unique_ptr<target_stream> make_target_stream(std::shared_ptr<host_core> core) {
  return std::make_unique<host_target_stream>(std::move(core));
}

std::unique_ptr<draft_stream> make_draft_stream(std::shared_ptr<host_core> core) {
  draft_runner& runner = *core->draft_work;
  return std::make_unique<host_draft_stream<draft_runner>>(std::move(core), runner);
}

std::unique_ptr<draft_stream> make_head_stream(std::shared_ptr<host_core> core) {
  head_runner& runner = *core->head_work;
  return std::make_unique<host_draft_stream<head_runner>>(std::move(core), runner);
}

}  // namespace tandem::gpu::host
