#pragma once
/// More of limits.hpp: bounds that only the network edge has. A file of its own, so that a change of them builds net/
/// and not the whole tree.

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "config/limits.hpp"

namespace tandem::limits {

// --- tools ------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxTools = 1024;  // of one chat
inline constexpr std::size_t kMaxToolNameBytes = 64;
inline constexpr std::size_t kMaxToolCallBytes = 4u << 20;  // of one call that a model writes, as JSON
inline constexpr std::size_t kMaxHeldSpaceBytes = 256;      // white space that may turn out to stand before a call

// --- bodies -----------------------------------------------------------------------------------------------------
inline constexpr std::int32_t kMaxBodyMebibytes = 1024;  // upper bound of --max-body-mib
static_assert(static_cast<std::size_t>(kMaxBodyMebibytes) << 20 <= kMaxUnfinishedBodyBytes);

// --- who may ask ------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxApiKeys = 4096;
inline constexpr std::size_t kMaxRequestsPerKey = 65'536;   // upper bound of --max-requests-per-key
inline constexpr std::size_t kMaxCrossOriginEntries = 256;  // of each of --allowed-origins, -methods, -headers, -hosts
inline constexpr std::chrono::seconds kPreflightAge{600};   // a browser remembers an answer to OPTIONS for this long

// --- TLS --------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxTlsFileBytes = 1u << 20;     // certificates, key
inline constexpr std::chrono::seconds kHandshakeTimeout{10};  // from the connection to its first request's bytes

// --- live view --------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxShownSequences = 256;  // of a step, by GET /v1/batch

// --- WebSocket -------------------------------------------------------------------------------------------------
inline constexpr std::size_t kSocketReadBytes = 4u << 10;     // buffer of a socket, also of an idle one
inline constexpr std::size_t kInflateChunkBytes = 16u << 10;  // inflated at once
inline constexpr std::size_t kMinDeflateBytes = 512;          // shorter messages are sent as they are
inline constexpr std::size_t kMaxListedOffers = 32;           // extensions, subprotocols and their parameters looked at
inline constexpr std::size_t kSocketPullBytes = 64u << 10;    // of events handed to a socket before it has sent them
inline constexpr std::size_t kMaxStreamIdBytes = 64;          // a lane's name in the Responses protocol
inline constexpr std::size_t kMaxPendingSteers = 16;          // of one response
inline constexpr std::chrono::seconds kDetachedResponse{10};  // a response goes on so long after its socket was lost

// --- responses -------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxStoredResponses = 4096;
inline constexpr std::size_t kMaxStoredResponseBytes = 64u << 20;  // with their conversations
inline constexpr std::size_t kMaxResponseEventBytes = 4u << 20;    // of one response, read or not
inline constexpr std::size_t kMaxAllEventBytes = 256u << 20;       // of all responses; beyond it each keeps only
inline constexpr std::size_t kCrowdedEventBytes = 64u << 10;       // this much
inline constexpr std::size_t kMaxEndedEventBytes = 32u << 20;      // of all responses that have ended
inline constexpr std::chrono::seconds kEndedEventsKept{60};
inline constexpr std::size_t kMaxResponseMetadata = 16;  // pairs; OpenAI's bounds
inline constexpr std::size_t kMaxResponseMetadataKey = 64;
inline constexpr std::size_t kMaxResponseMetadataValue = 512;
inline constexpr std::int64_t kMaxListedItems = 100;  // of one page of input items
inline constexpr std::int64_t kDefaultListedItems = 20;

}  // namespace tandem::limits
