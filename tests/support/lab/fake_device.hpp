#pragma once
/// A device whose next token is a hash of all earlier tokens, read from a shadow KV through the block tables: a wrong,
/// stale or shifted block changes the answer. The model is tests/sim/shadow_model.hpp; its oracle() is the answer.
///
/// Manual mode: nothing runs until the test pumps it; no threads. Threaded mode: one thread per stream.

#include <cstdint>
#include <memory>

#include "gpu/device.hpp"
#include "tests/sim/shadow_model.hpp"

namespace tandem::lab {

struct fake_device_options {
  std::int32_t num_blocks = 64;
  std::int32_t block_size = 4;
  std::int32_t draft_context_limit = 128;  ///< 0: no draft model
  std::uint64_t draft_wrong_every = 5;     ///< one draft in so many is wrong; 0: none is
  bool threaded = false;
};

class fake_device final : public gpu::device {
 public:
  explicit fake_device(fake_device_options options);
  ~fake_device() override;

  const gpu::device_info& info() const override;
  std::unique_ptr<gpu::target_stream> open_target_stream() override;
  std::unique_ptr<gpu::draft_stream> open_draft_stream() override;

  // Manual mode: what could happen next, and making it happen.
  bool target_ready() const;    ///< a step is queued and none of its tickets is open
  bool target_waiting() const;  ///< a step is queued and waits for drafts
  bool draft_ready() const;
  void run_target();
  void run_draft();
  void expire_tickets();
  /// The next step of the target is lost with this message.
  void fail_next_step();

  struct shared;

 private:
  std::shared_ptr<shared> shared_;
};

}  // namespace tandem::lab
