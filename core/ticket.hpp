#pragma once
/// A ticket carries the drafts of one step from a draft source to the target's stream.
///
/// The scheduler opens it, hands it to both sides at once, and never waits. The source fills its rows and seals it; the
/// target's *stream* (never an actor) waits until it is sealed, expired or cancelled; the first of the three wins, by
/// compare-and-swap. A ticket that was not filled counts as "no drafts": its rows become padding.
///
/// Thread-safety: rows are written by the one source before seal(), read by the one stream after the state left `open`
/// as `filled`. State changes are atomic.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/speculation/evidence.hpp"

namespace tandem {

class ticket {
 public:
  enum class state : std::uint8_t { open, filled, expired, cancelled };

  /// One sequence's drafts. `q` is empty for a deterministic source (each draft had probability 1) and under the
  /// coupled rule; otherwise q[i] is the distribution draft i was drawn from, dense over the target's vocabulary.
  struct row {
    std::vector<token_id> tokens;
    std::vector<std::vector<float>> q;
    evidence_class evidence = kNoOpinion;  ///< the source's own word on `tokens`
  };

  static constexpr std::size_t kMostListeners = kDraftMethods;

  explicit ticket(std::size_t rows) : rows_(rows) {}

  std::size_t size() const { return rows_.size(); }
  row& fill(std::size_t index) {
    TANDEM_ASSERT(index < rows_.size());
    return rows_[index];
  }
  /// Valid only when the state is `filled`.
  const row& drafts(std::size_t index) const {
    TANDEM_ASSERT(index < rows_.size());
    return rows_[index];
  }

  state current() const { return state_.load(std::memory_order_acquire); }
  bool seal() { return leave_open(state::filled); }
  bool expire() { return leave_open(state::expired); }
  bool cancel() { return leave_open(state::cancelled); }

  /// Calls `listener` once when the ticket leaves `open`, on the thread that moved it; at once when it has left
  /// already. At most kMostListeners: the target's stream, and those of sources that draft only where this one does
  /// not. It must not block or throw.
  void when_settled(std::function<void()> listener) {
    {
      std::lock_guard lock(mutex_);
      if (current() == state::open) {
        TANDEM_ASSERT(listeners_.size() < kMostListeners);
        listeners_.push_back(std::move(listener));
        return;
      }
    }
    listener();
  }

  /// Blocks the calling device thread until the ticket leaves `open`, or expires it after `bound`.
  state wait(std::chrono::nanoseconds bound) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, bound, [this] { return current() != state::open; })) {
      lock.unlock();
      expire();
    }
    return current();
  }

 private:
  bool leave_open(state next) {
    state expected = state::open;
    std::vector<std::function<void()>> listeners;
    {
      std::lock_guard lock(mutex_);
      if (!state_.compare_exchange_strong(expected, next, std::memory_order_acq_rel)) return false;
      listeners = std::exchange(listeners_, {});
    }
    changed_.notify_all();
    for (const auto& listener : listeners) listener();
    return true;
  }

  std::vector<row> rows_;
  std::atomic<state> state_{state::open};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> listeners_;
};

}  // namespace tandem
