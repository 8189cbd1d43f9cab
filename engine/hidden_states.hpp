#pragma once
/// Hidden states of given tokens, from a device of their own: what training a draft head needs to see of its target.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "config/options.hpp"
#include "core/ids.hpp"
#include "core/result.hpp"
#include "core/step.hpp"
#include "engine/loader.hpp"
#include "gpu/device.hpp"

namespace tandem::engine {

/// Owner of its device. Used by one thread.
class hidden_state_reader {
 public:
  /// `rows` × width() floats, of the next `rows` tokens. Valid during the call.
  using row_consumer = std::function<result<void>(std::span<const float> states, std::int32_t rows)>;

  /// Loads the model anew, without drafts: no runtime on the same model should be alive, or its weights are in memory
  /// twice. Errors: those of load_parts.
  static result<hidden_state_reader> open(const config::engine_options& options, const load_log& log);

  const std::vector<std::int32_t>& layers() const { return layers_; }
  std::int32_t hidden_size() const { return hidden_size_; }
  /// Floats of one row: the states that enter layers(), in that order, then the last one after the final norm.
  std::int32_t width() const { return (static_cast<std::int32_t>(layers_.size()) + 1) * hidden_size_; }

  /// Computes all tokens of one sequence anew, in steps of at most --max-num-batched-tokens, and hands out every row in
  /// order. The values are those of generating: a row depends on its own sequence only. Errors: invalid_argument for a
  /// sequence longer than the device holds, device_failed, the consumer's.
  result<void> read(std::span<const token_id> tokens, const row_consumer& consume);

 private:
  hidden_state_reader() = default;
  std::shared_ptr<step_work> work_for(std::span<const token_id> tokens, std::int32_t first);
  step_outcome run(std::shared_ptr<const step_work> work);

  std::unique_ptr<gpu::device> device_;
  std::unique_ptr<gpu::target_stream> stream_;  // after device_: it goes first
  std::vector<std::int32_t> layers_;
  std::int32_t hidden_size_ = 0;
  std::int32_t rows_per_step_ = 0;
  step_id last_step_ = 0;
  std::uint32_t last_generation_ = 0;
};

}  // namespace tandem::engine
