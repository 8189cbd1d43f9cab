#include "tests/support/lab/fake_device.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::lab {
namespace {

/// Work items of one stream, run in order, by its own thread or by run_one().
template <class Work, class Outcome>
class work_queue {
 public:
  using completion = std::function<void(Outcome)>;
  using computation = std::function<Outcome(const Work&)>;

  work_queue(computation compute, bool threaded) : compute_(std::move(compute)) {
    if (threaded) thread_ = std::jthread([this] { work(); });
  }
  ~work_queue() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    for (auto& [work, done] : items_) done(Outcome{.step = work->step, .ok = false, .error_message = "stream closed"});
  }
  void launch(std::shared_ptr<const Work> work, completion done) {
    {
      std::lock_guard lock(mutex_);
      items_.emplace_back(std::move(work), std::move(done));
      TANDEM_ASSERT(items_.size() <= limits::kMaxQueuedLaunches);
    }
    changed_.notify_one();
  }
  const Work* front() const { return items_.empty() ? nullptr : items_.front().first.get(); }
  void run_one() {
    TANDEM_ASSERT(!items_.empty());
    auto [work, done] = std::move(items_.front());
    items_.pop_front();
    done(compute_(*work));
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !items_.empty(); });
      if (closing_) return;
      auto [work, done] = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      done(compute_(*work));
    }
  }

  computation compute_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::shared_ptr<const Work>, completion>> items_;
  bool closing_ = false;
  std::jthread thread_;
};

using target_queue = work_queue<step_work, step_outcome>;
using draft_queue = work_queue<draft_work, draft_outcome>;

}  // namespace

/// What the device holds whoever has its streams open. Target and draft pages are touched by one stream each.
struct fake_device::shared {
  explicit shared(const fake_device_options& opts)
      : options(opts), target_kv(opts.num_blocks, opts.block_size), draft_kv(opts.num_blocks, opts.block_size) {
    info.name = "fake";
    info.block_size = opts.block_size;
    info.num_kv_blocks = opts.num_blocks;
    info.draft_context_limit = opts.draft_context_limit;
    info.vocabulary_size = sim::kVocabulary;
  }

  step_outcome run_target(const step_work& work) {
    if (options.threaded) {
      for (const auto& drafts : work.tickets) drafts->wait(limits::kTicketExpiry);
    }
    target_kv.take_facts(work);
    step_outcome outcome{.step = work.step};
    if (lose_next_step.exchange(false)) {
      outcome.ok = false;
      outcome.error_message = "the fake device lost the step";
      return outcome;
    }
    for (const auto& rows : work.rows) outcome.slots.push_back(sim::run_rows(target_kv, rows, work));
    outcome.device_ns = 1000;
    return outcome;
  }

  draft_outcome run_draft(const draft_work& work) {
    draft_kv.take_facts(work);
    return sim::run_drafts(draft_kv, work, options.draft_wrong_every);
  }

  fake_device_options options;
  gpu::device_info info;
  sim::shadow_kv target_kv;
  sim::shadow_kv draft_kv;
  target_queue* target = nullptr;  // of the open stream, manual mode
  draft_queue* draft = nullptr;
  std::atomic<bool> lose_next_step{false};
};

namespace {

class fake_target_stream final : public gpu::target_stream {
 public:
  explicit fake_target_stream(std::shared_ptr<fake_device::shared> shared)
      : shared_(std::move(shared)),
        queue_([device = shared_.get()](const step_work& work) { return device->run_target(work); },
               shared_->options.threaded) {
    TANDEM_ASSERT(shared_->target == nullptr);
    shared_->target = &queue_;
  }
  ~fake_target_stream() override { shared_->target = nullptr; }
  void launch(std::shared_ptr<const step_work> work, gpu::step_completion done) override {
    queue_.launch(std::move(work), std::move(done));
  }

 private:
  std::shared_ptr<fake_device::shared> shared_;
  target_queue queue_;
};

class fake_draft_stream final : public gpu::draft_stream {
 public:
  explicit fake_draft_stream(std::shared_ptr<fake_device::shared> shared)
      : shared_(std::move(shared)),
        queue_([device = shared_.get()](const draft_work& work) { return device->run_draft(work); },
               shared_->options.threaded) {
    TANDEM_ASSERT(shared_->draft == nullptr);
    shared_->draft = &queue_;
  }
  ~fake_draft_stream() override { shared_->draft = nullptr; }
  void launch(std::shared_ptr<const draft_work> work, gpu::draft_completion done) override {
    // Sealed behind the completion: the target's stream has a thread of its own and could overtake it.
    auto drafts = work->drafts;
    queue_.launch(std::move(work), [drafts = std::move(drafts), done = std::move(done)](draft_outcome outcome) {
      const bool ok = outcome.ok;
      done(std::move(outcome));
      if (drafts) ok ? drafts->seal() : drafts->cancel();
    });
  }

 private:
  std::shared_ptr<fake_device::shared> shared_;
  draft_queue queue_;
};

bool any_open(const step_work& work) {
  for (const auto& drafts : work.tickets) {
    if (drafts->current() == ticket::state::open) return true;
  }
  return false;
}

}  // namespace

fake_device::fake_device(fake_device_options options) : shared_(std::make_shared<shared>(options)) {}
fake_device::~fake_device() = default;

const gpu::device_info& fake_device::info() const {
  return shared_->info;
}
std::unique_ptr<gpu::target_stream> fake_device::open_target_stream() {
  return std::make_unique<fake_target_stream>(shared_);
}
std::unique_ptr<gpu::draft_stream> fake_device::open_draft_stream() {
  if (shared_->options.draft_context_limit == 0) return nullptr;
  return std::make_unique<fake_draft_stream>(shared_);
}

bool fake_device::target_ready() const {
  const auto* work = shared_->target ? shared_->target->front() : nullptr;
  return work && !any_open(*work);
}
bool fake_device::target_waiting() const {
  const auto* work = shared_->target ? shared_->target->front() : nullptr;
  return work && any_open(*work);
}
bool fake_device::draft_ready() const {
  return shared_->draft && shared_->draft->front();
}
void fake_device::run_target() {
  shared_->target->run_one();
}
void fake_device::run_draft() {
  shared_->draft->run_one();
}
void fake_device::expire_tickets() {
  for (const auto& drafts : shared_->target->front()->tickets) drafts->expire();
}
void fake_device::fail_next_step() {
  shared_->lose_next_step = true;
}

}  // namespace tandem::lab
