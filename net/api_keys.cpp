#include "net/api_keys.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "core/assert.hpp"
#include "net/websocket/handshake.hpp"

namespace tandem::net {

api_keys::api_keys(const std::vector<std::string>& keys, std::size_t max_requests)
    : running_(std::make_unique<std::atomic<std::size_t>[]>(keys.size())), max_requests_(max_requests) {
  for (const std::string& key : keys) digests_.push_back(digest_of(key));
}

api_keys::digest api_keys::digest_of(std::string_view text) {
  digest out{};
  unsigned int size = 0;
  const int done = EVP_Digest(text.data(), text.size(), out.data(), &size, EVP_sha256(), nullptr);
  TANDEM_ASSERT(done == 1 && size == out.size());
  return out;
}

namespace {

// Browsers can set no header when they open a WebSocket.
std::optional<std::string> key_in(const http_request& head) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = head.header("Authorization");
  if (given.empty() && head.upgrades_to_websocket) return key_of_subprotocols(head.header("Sec-WebSocket-Protocol"));
  if (!equal_ignoring_case(given.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return std::string(given.substr(kScheme.size()));
}

}  // namespace

std::optional<api_keys::index> api_keys::find(const http_request& head) const {
  if (open()) return std::nullopt;
  const auto given = key_in(head);
  if (!given) return std::nullopt;
  const digest wanted = digest_of(*given);
  std::optional<index> found;
  for (index i = 0; i < digests_.size(); ++i)
    if (CRYPTO_memcmp(digests_[i].data(), wanted.data(), wanted.size()) == 0) found = i;
  return found;
}

error api_keys::too_many() const {
  return {
      error_code::overloaded,
      fmt::format("This API key has {} requests running, as many as it may (--max-requests-per-key); wait for one to "
                  "end.",
                  max_requests_),
      {}};
}

std::optional<key_lease> api_keys::lease(std::optional<index> key) {
  if (!key || max_requests_ == 0) return key_lease();
  TANDEM_ASSERT(*key < digests_.size());
  std::atomic<std::size_t>& running = running_[*key];
  if (++running > max_requests_) {
    --running;
    return std::nullopt;
  }
  return key_lease(running);
}

}  // namespace tandem::net
