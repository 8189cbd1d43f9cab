#pragma once
/// Who may ask, and how much at once.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "net/http_message.hpp"

namespace tandem::net {

/// One request of one key, for the time of its life. Owner: who runs the request.
class key_lease {
 public:
  key_lease() = default;  ///< of nobody: counts nothing
  explicit key_lease(std::atomic<std::size_t>& running) : running_(&running) {}
  key_lease(key_lease&& other) noexcept : running_(std::exchange(other.running_, nullptr)) {}
  key_lease& operator=(key_lease&& other) noexcept {
    std::swap(running_, other.running_);
    return *this;
  }
  ~key_lease() {
    if (running_ != nullptr) --*running_;
  }

 private:
  std::atomic<std::size_t>* running_ = nullptr;
};

/// Immutable but for its counters; every method may be called from any thread. Keys are kept and compared as SHA-256
/// digests, all of them each time: the time taken tells nothing about a key. Owner: edge_state.
class api_keys {
 public:
  using index = std::size_t;

  /// `max_requests`: of each key at once; 0: no bound.
  api_keys(const std::vector<std::string>& keys, std::size_t max_requests);

  /// No key is wanted.
  bool open() const { return digests_.empty(); }
  /// The key that `Authorization: Bearer KEY` carries, or a subprotocol of a WebSocket.
  std::optional<index> find(const http_request& head) const;
  /// Absent: the key has as many requests as it may.
  std::optional<key_lease> lease(std::optional<index> key);
  /// The refusal then.
  error too_many() const;

 private:
  using digest = std::array<std::uint8_t, 32>;
  static digest digest_of(std::string_view text);

  std::vector<digest> digests_;
  std::unique_ptr<std::atomic<std::size_t>[]> running_;  // by index
  std::size_t max_requests_;
};

}  // namespace tandem::net
