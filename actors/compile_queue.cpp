#include "actors/compile_queue.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "actors/unstoppable_thread.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

const error kClosing{error_code::unavailable, "The server is shutting down; try again later.", {}};
constexpr int kCompileNiceness = 5;     // streams that run go first
constexpr int kAbandonedNiceness = 19;  // and everybody, when nobody waits for it

compiled_grammar compile_now(const grammar_compiler& compiler, const structured_spec& spec) {
  try {
    compiled_grammar compiled = compiler.compile(spec);
    if (!compiled || (*compiled)->bytes() <= limits::kMaxGrammarBytes) return compiled;
    return fail(error_code::invalid_argument,
                fmt::format("'{}' takes {} MiB when it is compiled, and at most {} are taken; make it simpler.", spec.field,
                            (*compiled)->bytes() >> 20, limits::kMaxGrammarBytes >> 20),
                spec.field);
  } catch (const std::exception& problem) {
    return fail(error_code::device_failed,
                fmt::format("'{}' could not be compiled because of a fault of this server: {}.", spec.field,
                            problem.what()),
                spec.field);
  }
}

compiled_grammar too_slow(const structured_spec& spec, std::chrono::duration<double> patience) {
  return fail(error_code::invalid_argument,
              fmt::format("'{}' takes longer than {} s to compile; make it simpler: fewer optional properties, choices "
                          "and repetitions.",
                          spec.field, patience.count()),
              spec.field);
}

compiled_grammar no_thread(const structured_spec& spec, const char* why) {
  return fail(error_code::unavailable, fmt::format("'{}' cannot be compiled now: {}; try again later.", spec.field, why),
              spec.field);
}

}  // namespace

/// One compilation. Under the board's mutex.
struct compile_queue::attempt {
  std::optional<compiled_grammar> outcome;
  std::atomic<id_t> thread{0};
};

/// What the queue shares with the threads that compile.
struct compile_queue::board {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = 0;
};

compile_queue::compile_queue(options opts) : options_(std::move(opts)), board_(std::make_shared<board>()) {
  TANDEM_ASSERT(options_.compiler);
  if (!options_.in_callers_thread) thread_ = std::jthread([this] { work(); });
}

compile_queue::~compile_queue() {
  replies left;
  {
    const std::lock_guard lock(board_->mutex);
    closing_ = true;
    for (auto* jobs : {&running_, &abandoned_}) std::move(jobs->begin(), jobs->end(), std::back_inserter(queue_));
    for (job& each : queue_) std::ranges::move(close(each, tl::unexpected(kClosing)), std::back_inserter(left));
    board_->changed.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (reply& each : left) each.done(std::move(each.outcome));
  std::unique_lock lock(board_->mutex);
  const auto ended = [this] { return board_->running == 0; };
  if (!board_->changed.wait_for(lock, limits::kCompileShutdown, ended)) leave_unstoppable();
}

/// What can be said without waiting.
std::optional<compiled_grammar> compile_queue::answer_now(const structured_spec& spec) {
  if (std::optional<compiled_grammar> known = cache_.find(spec)) return known;
  if (options_.in_callers_thread) {
    compiled_grammar made = compile_now(*options_.compiler, spec);
    cache_.keep(spec, made);
    return made;
  }
  if (closing_) return tl::unexpected(kClosing);
  if (stuck()) return no_thread(spec, "other grammars take too long");
  if (waiting_ < options_.max_queued) return std::nullopt;
  return fail(error_code::overloaded,
              fmt::format("{} requests wait for their grammar; try again later.", waiting_), spec.field);
}

void compile_queue::push(request_id who, const structured_spec& spec, answer done) {
  std::unique_lock lock(board_->mutex);
  if (std::optional<compiled_grammar> known = answer_now(spec)) {
    lock.unlock();
    done(std::move(*known));
    return;
  }
  job* same = find(spec);
  if (same == nullptr) same = &queue_.emplace_back(job{.spec = spec, .waiters = {}, .tried = nullptr});
  same->waiters.push_back({who, spec.field, std::move(done)});
  ++waiting_;
  board_->changed.notify_all();
}

void compile_queue::withdraw(request_id who) {
  const std::lock_guard lock(board_->mutex);
  const auto leave = [&](job& from) {
    waiting_ -= std::erase_if(from.waiters, [&](const waiter& each) { return each.who == who; });
  };
  std::ranges::for_each(queue_, leave);
  std::ranges::for_each(running_, leave);  // goes on: it may be asked for again
  std::erase_if(queue_, [](const job& each) { return each.waiters.empty(); });
}

compile_status compile_queue::status() const {
  const std::lock_guard lock(board_->mutex);
  return {waiting_, running_.size() + abandoned_.size(), abandoned_.size(), stuck()};
}

bool compile_queue::stuck() const {
  return abandoned_.size() >= limits::kMaxCompiles;
}

compile_queue::job* compile_queue::find(const structured_spec& spec) {
  const auto same = [&](const job& each) { return each.spec.same_as(spec); };
  if (const auto at = std::ranges::find_if(running_, same); at != running_.end()) return &*at;
  const auto at = std::ranges::find_if(queue_, same);
  return at != queue_.end() ? &*at : nullptr;
}

compile_queue::replies compile_queue::close(job& ended, const compiled_grammar& outcome) {
  replies out;
  for (waiter& each : std::exchange(ended.waiters, {})) {
    out.push_back({std::move(each.done), outcome});
    if (!outcome && !outcome.error().param.empty()) out.back().outcome.error().param = each.field;
  }
  return out;
}

bool compile_queue::may_begin() const {
  const auto now = clock::now();
  const auto is_young = [&](const job& each) { return now - each.started < options_.quick; };
  const auto young = static_cast<std::size_t>(std::ranges::count_if(running_, is_young));
  return young < limits::kCompileLanes && running_.size() + abandoned_.size() < limits::kMaxCompiles;
}

/// On a thread of its own, so that it can be left alone.
void compile_queue::begin(job& next) {
  next.tried = std::make_shared<attempt>();
  next.started = clock::now();
  run_unstoppable(
      [tried = next.tried, spec = next.spec, compiler = options_.compiler, shared = board_] {
        tried->thread = static_cast<id_t>(syscall(SYS_gettid));
        compiled_grammar outcome = compile_now(*compiler, spec);
        const std::lock_guard guard(shared->mutex);
        tried->outcome = std::move(outcome);
        --shared->running;
        shared->changed.notify_all();
      },
      kCompileNiceness);
  ++board_->running;
}

compile_queue::replies compile_queue::start_next() {
  if (queue_.empty() || !may_begin()) return {};
  running_.push_back(std::move(queue_.front()));
  queue_.pop_front();
  try {
    begin(running_.back());
    return {};
  } catch (const std::system_error& problem) {
    job failed = std::move(running_.back());
    running_.pop_back();
    return close(failed, no_thread(failed.spec, problem.what()));
  }
}

/// What ended, and what is to end as far as those who wait are concerned.
compile_queue::replies compile_queue::settle() {
  replies out;
  const auto say = [&](job& to, const compiled_grammar& outcome) {
    const bool lasting = outcome || outcome.error().code == error_code::invalid_argument;
    if (lasting) cache_.keep(to.spec, outcome);
    std::ranges::move(close(to, outcome), std::back_inserter(out));
  };
  for (auto* jobs : {&running_, &abandoned_})
    jobs->remove_if([&](job& each) {
      if (each.tried->outcome) say(each, *each.tried->outcome);
      return each.tried->outcome.has_value();
    });
  for (auto at = running_.begin(); at != running_.end();) {
    const auto each = at++;
    if (clock::now() - each->started < options_.patience) continue;
    say(*each, too_slow(each->spec, options_.patience));
    if (const id_t thread = each->tried->thread; thread != 0) setpriority(PRIO_PROCESS, thread, kAbandonedNiceness);
    if (!std::exchange(left_alone_, true)) leave_unstoppable();
    abandoned_.splice(abandoned_.end(), running_, each);
  }
  if (!stuck()) return out;
  for (job& each : std::exchange(queue_, {}))
    std::ranges::move(close(each, no_thread(each.spec, "other grammars take too long")), std::back_inserter(out));
  return out;
}

/// Until something ends, comes, or is due.
void compile_queue::wait(std::unique_lock<std::mutex>& lock) {
  auto until = clock::time_point::max();
  const auto now = clock::now();
  for (const job& each : running_) {
    until = std::min(until, each.started + options_.patience);
    const auto aged = each.started + options_.quick;
    if (!queue_.empty() && aged > now) until = std::min(until, aged);
  }
  if (until == clock::time_point::max())
    board_->changed.wait(lock);
  else
    board_->changed.wait_until(lock, until);
}

void compile_queue::work() {
  std::unique_lock lock(board_->mutex);
  while (!closing_) {
    replies out = settle();
    std::ranges::move(start_next(), std::back_inserter(out));
    waiting_ -= out.size();
    if (out.empty() && (queue_.empty() || !may_begin())) wait(lock);
    if (out.empty()) continue;
    lock.unlock();
    for (reply& each : out) each.done(std::move(each.outcome));
    lock.lock();
  }
}

}  // namespace tandem
