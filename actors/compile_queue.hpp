#pragma once
/// Turns structured_specs into grammars on threads of its own, each within a bound of time.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/grammar_cache.hpp"
#include "config/structured_limits.hpp"
#include "core/grammar.hpp"

namespace tandem {

struct compile_status {
  std::size_t waiting = 0;    ///< requests
  std::size_t running = 0;    ///< grammars that are compiled, those left alone among them
  std::size_t abandoned = 0;  ///< of them, that took too long: nobody waits for them
  bool stuck = false;         ///< nothing new can be compiled until one of these ends
};

/// Thread-safe. Who asks for the same spec waits for one compilation. A few begin beside each other, and one that takes
/// longer than options::quick makes room for the next, so that what is cheap does not wait behind what is not. A
/// compiler cannot be interrupted: one that takes too long is left to its own end on its thread, and its requests are
/// refused; when limits::kMaxCompiles threads are such, nothing new is compiled.
class compile_queue {
 public:
  struct options {
    std::shared_ptr<const grammar_compiler> compiler;
    std::chrono::milliseconds patience = limits::kMaxCompileTime;
    std::chrono::milliseconds quick = limits::kQuickCompile;
    std::size_t max_queued = limits::kMaxQueuedCompiles;
    bool in_callers_thread = false;  ///< no threads (tests with a simulated schedule)
  };
  using answer = std::function<void(compiled_grammar)>;

  explicit compile_queue(options opts);
  /// What waits is answered with `unavailable`. Waits for what compiles now, at most limits::kCompileShutdown.
  ~compile_queue();

  /// `done` is called once: at once for what the cache knows and what is refused, else on a thread of the queue; not
  /// after withdraw(). Errors it is given: the compiler's, invalid_argument after too long a time, overloaded,
  /// unavailable, device_failed.
  void push(request_id who, const structured_spec& spec, answer done);
  /// The request waits no more, and its place is free. A call of its `done` may be under way.
  void withdraw(request_id who);
  compile_status status() const;

 private:
  using clock = std::chrono::steady_clock;
  struct attempt;
  struct board;
  struct waiter {
    request_id who;
    std::string field;
    answer done;
  };
  struct job {
    structured_spec spec;
    std::vector<waiter> waiters;  // none: all of them withdrew
    std::shared_ptr<attempt> tried;
    clock::time_point started{};
  };
  struct reply {
    answer done;
    compiled_grammar outcome;
  };
  using replies = std::vector<reply>;

  void work();
  void wait(std::unique_lock<std::mutex>& lock);
  replies settle();
  replies start_next();
  void begin(job& next);
  bool may_begin() const;
  bool stuck() const;
  job* find(const structured_spec& spec);
  static replies close(job& ended, const compiled_grammar& outcome);
  std::optional<compiled_grammar> answer_now(const structured_spec& spec);

  options options_;
  std::shared_ptr<board> board_;  // outlives the queue where an attempt does; its mutex guards the rest
  std::deque<job> queue_;         // not begun
  std::list<job> running_;        // that are not given up yet
  std::list<job> abandoned_;
  std::size_t waiting_ = 0;  // requests
  grammar_cache cache_;
  bool closing_ = false;
  bool left_alone_ = false;  // some attempt was
  std::jthread thread_;
};

}  // namespace tandem
