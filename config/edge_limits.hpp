#pragma once
/// More of limits.hpp: bounds that only the network edge has. A file of its own, so that a change of them builds net/
/// and not the whole tree.

#include <chrono>
#include <cstddef>

namespace tandem::limits {

// --- tools ------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxTools = 1024;  // of one chat
inline constexpr std::size_t kMaxToolNameBytes = 64;
inline constexpr std::size_t kMaxToolCallBytes = 4u << 20;  // of one call that a model writes, as JSON
inline constexpr std::size_t kMaxHeldSpaceBytes = 256;      // white space that may turn out to stand before a call

// --- who may ask ------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxApiKeys = 4096;
inline constexpr std::size_t kMaxRequestsPerKey = 65'536;   // upper bound of --max-requests-per-key
inline constexpr std::size_t kMaxCrossOriginEntries = 256;  // of each of --allowed-origins, -methods, -headers
inline constexpr std::chrono::seconds kPreflightAge{600};   // a browser remembers an answer to OPTIONS for this long

// --- TLS --------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxTlsFileBytes = 1u << 20;     // certificates, key
inline constexpr std::chrono::seconds kHandshakeTimeout{10};  // from the connection to its first request's bytes

// --- live view --------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxShownSequences = 256;  // of a step, by GET /v1/batch

}  // namespace tandem::limits
