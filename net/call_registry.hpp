#pragma once
/// Public ids of running calls, for POST /v1/cancel/{id} from any connection.

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ids.hpp"

namespace tandem::net {

/// Thread-safe: io threads share it. Bounded by the connections, each of which has one call.
class call_registry {
 public:
  /// False when the id is taken by a running call.
  bool add(const std::string& public_id, std::vector<request_id> requests) {
    std::lock_guard lock(mutex_);
    return calls_.emplace(public_id, std::move(requests)).second;
  }
  void remove(const std::string& public_id) {
    std::lock_guard lock(mutex_);
    calls_.erase(public_id);
  }
  bool contains(const std::string& public_id) const {
    std::lock_guard lock(mutex_);
    return calls_.contains(public_id);
  }
  /// The requests behind an id; empty when there is no such call.
  std::vector<request_id> find(const std::string& public_id) const {
    std::lock_guard lock(mutex_);
    const auto found = calls_.find(public_id);
    return found == calls_.end() ? std::vector<request_id>{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<request_id>> calls_;
};

}  // namespace tandem::net
