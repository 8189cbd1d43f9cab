#pragma once
/// What one render may still spend: steps (time) and bytes of values alive (memory).

#include <cstddef>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "text/jinja/failure.hpp"

namespace tandem::text::jinja {

class budget {
 public:
  void spend(std::size_t steps) {
    if (steps > limits::kMaxTemplateSteps - steps_) fail_bound("it takes too many steps");
    steps_ += steps;
  }
  /// Work on text costs steps by its length.
  void spend_bytes(std::size_t bytes) { spend(bytes / kBytesPerStep); }
  void hold(std::size_t bytes) {
    if (bytes > limits::kMaxTemplateMemoryBytes - bytes_) fail_bound("its values take too much memory");
    bytes_ += bytes;
    spend_bytes(bytes);
  }
  void release(std::size_t bytes) {
    TANDEM_ASSERT(bytes <= bytes_);
    bytes_ -= bytes;
  }

 private:
  static constexpr std::size_t kBytesPerStep = 64;
  std::size_t steps_ = 0;
  std::size_t bytes_ = 0;
};

/// Bytes held by one value; given back when it dies. Without an owner (literals of the template) nothing is counted.
class held_bytes {
 public:
  held_bytes(budget* owner, std::size_t bytes) : owner_(owner), bytes_(bytes) {
    if (owner_) owner_->hold(bytes_);
  }
  ~held_bytes() {
    if (owner_) owner_->release(bytes_);
  }
  held_bytes(const held_bytes&) = delete;
  held_bytes& operator=(const held_bytes&) = delete;

 private:
  budget* owner_;
  std::size_t bytes_;
};

}  // namespace tandem::text::jinja
