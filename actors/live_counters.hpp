#pragma once
/// What any thread may read about the running engine without asking an actor. Each field has one writer.

#include <atomic>
#include <cstdint>

namespace tandem {

struct live_counters {
  // written by the scheduler actor
  std::atomic<std::int32_t> running{0};
  std::atomic<std::int32_t> waiting{0};
  std::atomic<std::int32_t> blocks_used{0};
  std::atomic<std::uint64_t> steps{0};
  std::atomic<std::int64_t> last_progress_ns{0};  ///< actor clock; refreshed while idle work arrives and by each step

  /// Requests submitted and not yet answered with a refusal or a last event: raised by the runtime, lowered by intake.
  std::atomic<std::int64_t> live_requests{0};

  /// Actors of this engine that have not ended yet.
  std::atomic<std::int32_t> living_actors{0};

  std::atomic<bool> draining{false};  ///< set by the runtime
  std::atomic<bool> failed{false};    ///< set by the supervisor: an actor that cannot be replaced died
};

}  // namespace tandem
