#pragma once
/// The compute-device layer as actors see it: ordered streams of work, completions posted from the device's own thread.
///
/// Contract
/// * launch() returns at once; work items of one stream run in the order of launch. At most limits::kMaxQueuedLaunches
///   wait in a stream (the scheduler's depth is far below; more is a bug).
/// * A completion runs on a thread of the device, must not block or throw, and comes exactly once per launch, also when
///   the work failed (`ok` false).
/// * A target item whose tickets are still open does not keep draft work from running; its completion comes after those
///   of the draft items that sealed its tickets.
/// * Destroying a stream waits for its running item and drops queued ones (each still gets its completion, !ok).
/// * Block ids index the KV pages of every model the device holds; slots index its per-sequence state, separately for
///   the target's stream and each draft stream.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "core/step.hpp"

namespace tandem::gpu {

using step_completion = std::function<void(step_outcome)>;
using draft_completion = std::function<void(draft_outcome)>;

/// The target's stream. Owned by the verifier.
class target_stream {
 public:
  virtual ~target_stream() = default;
  virtual void launch(std::shared_ptr<const step_work> work, step_completion done) = 0;
};

/// The stream of a draft model or of draft heads. Owned by its drafter. KV and slots survive the drafter that opened
/// the stream: a new stream on the same device continues where the old one stopped.
class draft_stream {
 public:
  virtual ~draft_stream() = default;
  virtual void launch(std::shared_ptr<const draft_work> work, draft_completion done) = 0;
};

/// What a device can do and holds, fixed after it was made.
struct device_info {
  std::string name;  ///< e.g. "cpu (avx512-vnni, 2 threads)"
  std::int32_t threads = 1;
  std::int32_t block_size = 16;
  std::int32_t num_kv_blocks = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::int32_t max_steps_in_flight = 1;
  std::int32_t draft_context_limit = 0;           ///< positions the draft model can hold; 0 = no draft model
  std::int32_t vocabulary_size = 0;               ///< rows of the target's output
  draft_method head_method = draft_method::none;  ///< of the draft heads it holds; none: it holds none
  std::int32_t head_draft_limit = 0;              ///< drafts of one run that they can make
};

class device {
 public:
  virtual ~device() = default;
  virtual const device_info& info() const = 0;
  virtual std::unique_ptr<target_stream> open_target_stream() = 0;
  /// Null when the device holds no draft model.
  virtual std::unique_ptr<draft_stream> open_draft_stream() = 0;
  /// Null when the device holds no draft heads. They take in what the target computes: a proposal names the last known
  /// token only, and is not filled when the device does not have that row's hidden state.
  virtual std::unique_ptr<draft_stream> open_head_stream() { return nullptr; }
};

}  // namespace tandem::gpu
