#include "actors/compile_queue.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "core/assert.hpp"

namespace tandem {
namespace {

const error kClosing{error_code::unavailable, "The server is shutting down; try again later.", {}};
constexpr int kCompileNiceness = 5;  // streams that run go first

compiled_grammar compile_now(const grammar_compiler& compiler, const structured_spec& spec) {
  try {
    return compiler.compile(spec);
  } catch (const std::exception& problem) {
    return fail(error_code::invalid_argument,
                fmt::format("'{}' could not be compiled: {}.", spec.field, problem.what()), spec.field);
  }
}

}  // namespace

/// One compilation. Under the board's mutex.
struct compile_queue::attempt {
  std::optional<compiled_grammar> outcome;
  bool abandoned = false;
};

/// What the queue shares with the threads that compile.
struct compile_queue::board {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = 0;
  std::size_t abandoned = 0;
};

compile_queue::compile_queue(options opts) : options_(std::move(opts)), board_(std::make_shared<board>()) {
  TANDEM_ASSERT(options_.compiler);
  if (!options_.in_callers_thread) thread_ = std::jthread([this] { work(); });
}

compile_queue::~compile_queue() {
  std::deque<job> dropped;
  {
    std::unique_lock lock(board_->mutex);
    closing_ = true;
    dropped.swap(queue_);
    board_->changed.notify_all();
    board_->changed.wait_for(lock, options_.patience, [this] { return board_->running == 0; });
  }
  if (thread_.joinable()) thread_.join();
  for (job& left : dropped) left.done(tl::unexpected(kClosing));
}

void compile_queue::push(const structured_spec& spec, answer done) {
  std::unique_lock lock(board_->mutex);
  std::optional<compiled_grammar> known = cache_.find(spec);
  if (!known && options_.in_callers_thread) {
    known = compile_now(*options_.compiler, spec);
    cache_.keep(spec, *known);
  }
  if (!known && closing_) known = tl::unexpected(kClosing);
  if (!known && queue_.size() >= options_.max_queued)
    known = fail(error_code::overloaded,
                 fmt::format("{} requests wait for their grammar; try again later.", queue_.size()), spec.field);
  if (!known) {
    queue_.push_back({spec, std::move(done)});
    board_->changed.notify_all();
    return;
  }
  lock.unlock();
  done(std::move(*known));
}

/// On a thread of its own, so that it can be left alone.
compiled_grammar compile_queue::compile(const structured_spec& spec) {
  const auto tried = std::make_shared<attempt>();
  std::unique_lock lock(board_->mutex);
  if (board_->abandoned >= limits::kMaxAbandonedCompiles)
    return fail(error_code::overloaded,
                fmt::format("'{}' cannot be compiled now: other grammars take too long; try again later.", spec.field),
                spec.field);
  ++board_->running;
  const auto attempt_now = [tried, spec, compiler = options_.compiler, shared = board_] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kCompileNiceness);
    compiled_grammar outcome = compile_now(*compiler, spec);
    const std::lock_guard guard(shared->mutex);
    tried->outcome = std::move(outcome);
    --shared->running;
    if (tried->abandoned) --shared->abandoned;
    shared->changed.notify_all();
  };
  try {
    std::thread(attempt_now).detach();
  } catch (const std::system_error& problem) {
    --board_->running;
    return fail(error_code::overloaded,
                fmt::format("'{}' cannot be compiled now ({}); try again later.", spec.field, problem.what()), spec.field);
  }
  board_->changed.wait_for(lock, options_.patience, [&] { return tried->outcome || closing_; });
  if (tried->outcome) return std::move(*tried->outcome);
  if (closing_) return tl::unexpected(kClosing);
  tried->abandoned = true;
  ++board_->abandoned;
  return fail(error_code::invalid_argument,
              fmt::format("'{}' takes longer than {} s to compile; make it simpler: fewer optional properties, choices "
                          "and repetitions.",
                          spec.field, std::chrono::duration<double>(options_.patience).count()),
              spec.field);
}

void compile_queue::work() {
  for (;;) {
    std::unique_lock lock(board_->mutex);
    board_->changed.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    job next = std::move(queue_.front());
    queue_.pop_front();
    std::optional<compiled_grammar> outcome = cache_.find(next.spec);
    lock.unlock();
    if (!outcome) {
      outcome = compile(next.spec);
      const bool lasting = *outcome || outcome->error().code == error_code::invalid_argument;
      lock.lock();
      if (lasting) cache_.keep(next.spec, *outcome);
      lock.unlock();
    }
    next.done(std::move(*outcome));
  }
}

}  // namespace tandem
