#pragma once
/// Turns structured_specs into grammars on threads of its own, one after the other, each within a bound of time.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "actors/grammar_cache.hpp"
#include "config/structured_limits.hpp"
#include "core/grammar.hpp"

namespace tandem {

/// Thread-safe. A compiler cannot be interrupted: one that takes too long is left to its own end on its thread, and its
/// requests are refused; with limits::kMaxAbandonedCompiles such threads nothing new is compiled.
class compile_queue {
 public:
  struct options {
    std::shared_ptr<const grammar_compiler> compiler;
    std::chrono::milliseconds patience = limits::kMaxCompileTime;
    std::size_t max_queued = limits::kMaxQueuedCompiles;
    bool in_callers_thread = false;  ///< no threads (tests with a simulated schedule)
  };
  using answer = std::function<void(compiled_grammar)>;

  explicit compile_queue(options opts);
  /// What waits is answered with `unavailable`. Waits for what compiles now, at most options::patience.
  ~compile_queue();

  /// `done` is called once: at once for what the cache knows, else on a thread of the queue. Errors it is given: the
  /// compiler's, invalid_argument after too long a time, overloaded, unavailable.
  void push(const structured_spec& spec, answer done);

 private:
  struct job {
    structured_spec spec;
    answer done;
  };
  struct attempt;
  struct board;

  void work();
  compiled_grammar compile(const structured_spec& spec);

  options options_;
  std::shared_ptr<board> board_;  // outlives the queue where an attempt does
  std::deque<job> queue_;         // under the board's mutex, as the next
  grammar_cache cache_;
  bool closing_ = false;
  std::jthread thread_;
};

}  // namespace tandem
