#pragma once
/// The persistent threads of the host device. Owner: the device's leader thread, which takes part in every job.

#include <cstdint>
#include <functional>
#include <memory>

namespace tandem::gpu::host {

/// Helpers spin for limits::kTeamSpin after a job, then sleep; the leader parks in its own queue between steps, so an
/// idle device uses no processor. Work is claimed dynamically: a preempted thread costs one chunk, not a barrier.
class compute_team {
 public:
  explicit compute_team(std::int32_t threads);
  ~compute_team();
  std::int32_t threads() const;

  /// Calls body(begin, end, thread) for chunks that together cover [0, count); returns when all are done. Only the
  /// leader may call it, never from inside a body. `grain`: smallest chunk worth claiming.
  void parallel_for(std::int64_t count, std::int64_t grain,
                    const std::function<void(std::int64_t begin, std::int64_t end, std::int32_t thread)>& body);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace tandem::gpu::host
