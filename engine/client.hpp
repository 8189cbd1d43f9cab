#pragma once
/// A runtime with one delivery thread: what the offline commands and the library talk to.

#include <memory>

#include "actors/runtime.hpp"
#include "engine/delivery.hpp"

namespace tandem::engine {

/// The same handlers, to which a request that was cancelled before it started is one that ended: cancelled, not
/// refused.
request_handlers with_early_cancel(request_handlers handlers, std::int32_t choices);

/// Thread-safe. The runtime must outlive every call but flush().
class client {
 public:
  explicit client(runtime& engine) : runtime_(engine), delivery_(std::make_shared<delivery>()) {}

  request_id submit(generation_request request, request_handlers handlers) {
    const std::int32_t choices = request.n;
    const request_id id = runtime_.submit(std::move(request), delivery_);
    delivery_->attach(id, choices, with_early_cancel(std::move(handlers), choices));
    return id;
  }
  void cancel(request_id id) { runtime_.cancel(id); }
  runtime& engine() { return runtime_; }
  /// Returns when everything that arrived was delivered. The only call allowed when the runtime is gone.
  void flush() { delivery_->flush(); }

 private:
  runtime& runtime_;
  std::shared_ptr<delivery> delivery_;
};

}  // namespace tandem::engine
