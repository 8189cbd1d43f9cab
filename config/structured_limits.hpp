#pragma once
/// The bounds of structured output: a part of config/limits.hpp, which nearly every file includes and few need these.

#include <chrono>
#include <cstddef>

namespace tandem::limits {

inline constexpr std::size_t kMaxStructuredBytes = 64u << 10;  // of a schema, a grammar, all choices together
inline constexpr std::size_t kMaxStructuredChoices = 1024;     // of `choice`
inline constexpr std::size_t kMaxSchemaDepth = 64;             // nesting of a JSON schema
inline constexpr int kMaxJsonWhitespace = 16;                  // characters of it between two parts of a JSON text
inline constexpr std::chrono::seconds kMaxCompileTime{10};     // of one grammar, then its requests are refused
inline constexpr std::size_t kMaxQueuedCompiles = 1024;        // requests that wait for their grammar
inline constexpr std::size_t kCompileLanes = 2;                // grammars that begin to compile beside each other
inline constexpr std::chrono::milliseconds kQuickCompile{500};  // one that takes longer gives its lane to the next
inline constexpr std::size_t kMaxCompiles = 4;  // that run, also those which took too long and are waited for no more
inline constexpr std::chrono::seconds kCompileShutdown{2};  // what still compiles is waited for when a server ends
inline constexpr std::size_t kMaxGrammarBytes = 64u << 20;  // of one, compiled
inline constexpr std::size_t kMaxCachedGrammars = 128;      // compiled, for requests to come
inline constexpr std::size_t kMaxCachedGrammarBytes = 256u << 20;
inline constexpr std::chrono::milliseconds kMaxMatcherTime{250};  // computing, of one row; a sequence beyond it ends

static_assert(kMaxGrammarBytes < kMaxCachedGrammarBytes && kCompileLanes < kMaxCompiles);

}  // namespace tandem::limits
