#pragma once
/// Every bound of the system, in one place. A queue, loop, buffer or wait without a name here is a bug.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tandem::limits {

// --- core: scheduling -------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxSequencesInFlight = 1024;   // device slots, upper bound of --max-num-seqs
inline constexpr std::size_t kMaxQueuedRequests = 4096;      // default of --max-num-queued-reqs
inline constexpr std::size_t kMaxQueuedTokens = 16'777'216;  // default of --max-num-queued-tokens
inline constexpr std::int32_t kMaxBatchedTokens = 65'536;    // upper bound of --max-num-batched-tokens
inline constexpr std::int32_t kDefaultBatchedTokens = 512;   // default of --max-num-batched-tokens on the host device
inline constexpr std::int32_t kMaxBlockSize = 256;           // tokens, upper bound of --block-size
inline constexpr std::int32_t kMaxKvBlocks = 1 << 24;
inline constexpr std::int32_t kMaxModelLength = 1 << 20;    // tokens
inline constexpr std::int32_t kMaxChoices = 128;            // n of one request
inline constexpr std::int32_t kMinPrefillShareDivisor = 4;  // prefill gets at least 1/4 of a step's budget

// --- core: speculation ------------------------------------------------------------------------------------------
inline constexpr std::int32_t kMaxDraftTokens = 16;          // k of one sequence and step
inline constexpr std::int32_t kMaxNgram = 16;                // upper bound of prompt_lookup_max
inline constexpr std::int32_t kMaxMatchTokens = 32;          // a repetition is measured up to this length
inline constexpr std::int32_t kMaxSuffixContext = 32;        // tokens before one that statistics of outputs look at
inline constexpr std::int32_t kDefaultSuffixMebibytes = 32;  // of statistics of outputs, all salts together
inline constexpr std::int32_t kMaxSuffixMebibytes = 4096;    // upper bound of suffix_memory_mib

// --- core: sampling and stopping --------------------------------------------------------------------------------
inline constexpr std::size_t kMaxStopStrings = 64;
inline constexpr std::size_t kMaxStopStringBytes = 1024;
inline constexpr std::size_t kMaxStopTokens = 256;
inline constexpr std::size_t kMaxLogitBias = 4096;
inline constexpr std::size_t kMaxBadWords = 256;        // of one request
inline constexpr std::size_t kMaxBadWordBytes = 1024;   // of one word
inline constexpr std::size_t kMaxBadWordTokens = 1024;  // of one word; all but one are looked for in the output
inline constexpr std::int32_t kMaxLogprobs = 20;        // alternatives per token

// --- text -------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxVocabulary = 1 << 21;
inline constexpr std::size_t kMaxTokenBytes = 4096;
inline constexpr std::size_t kMaxTemplateBytes = 1 << 20;     // source of a chat template
inline constexpr std::size_t kMaxTemplateSteps = 20'000'000;  // statements and expressions evaluated in one render
inline constexpr std::size_t kMaxTemplateOutputBytes = 64u << 20;
inline constexpr std::size_t kMaxTemplateDepth = 128;               // nesting of the parser and of calls
inline constexpr std::size_t kMaxTemplateMemoryBytes = 256u << 20;  // values alive at once in one render
inline constexpr std::size_t kMaxTemplateCallDepth = 512;           // nested evaluations in one render
inline constexpr std::size_t kMaxTemplateRange = 1'000'000;         // items of range()
inline constexpr std::size_t kMaxTemplateJsonDepth = 96;            // nesting of messages, tools and made values
inline constexpr std::size_t kMaxTokenizerJsonDepth = 64;
inline constexpr std::size_t kMaxCachedWords = 1 << 14;         // word → ids, of one encode call
inline constexpr std::uint32_t kMaxPatternSteps = 200'000'000;  // PCRE2 match limit of one word
inline constexpr std::uint32_t kMaxPatternHeapKiB = 512u << 10;
inline constexpr std::size_t kMaxTokenizerJsonBytes = 256u << 20;
inline constexpr std::size_t kMaxEncodeBytes = 64u << 20;  // one text to encode

// --- model ------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxTensors = 65'536;
inline constexpr std::size_t kMaxMetadataEntries = 65'536;
inline constexpr std::size_t kMaxMetadataStringBytes = 16u << 20;
inline constexpr std::size_t kMaxTensorDimensions = 4;
inline constexpr std::size_t kMaxSafetensorsHeaderBytes = 100u << 20;
inline constexpr std::int32_t kMaxLayers = 1024;
inline constexpr std::int32_t kMaxHidden = 1 << 16;
inline constexpr std::int32_t kMaxIntermediate = 1 << 20;
inline constexpr std::int32_t kMaxHeads = 1024;
inline constexpr std::int32_t kMaxHeadDim = 1024;
inline constexpr std::size_t kMaxMetadataKeyBytes = 65'535;  // the GGUF specification's own bound
inline constexpr std::size_t kMaxTensorNameBytes = 1024;
inline constexpr int kMaxMetadataArrayDepth = 4;
inline constexpr std::uint32_t kMaxTensorAlignment = 1 << 16;  // bytes
inline constexpr std::size_t kMaxConfigJsonBytes = 16u << 20;  // config.json and its like
inline constexpr std::size_t kMaxShardIndexBytes = 64u << 20;  // model.safetensors.index.json
inline constexpr std::size_t kMaxShards = 4096;
inline constexpr std::int32_t kMaxMedusaHeads = 64;   // of one checkpoint
inline constexpr std::int32_t kMaxMedusaLayers = 64;  // blocks of one head

// --- config, engine and app -------------------------------------------------------------------------------------
inline constexpr std::int32_t kDefaultDraftTokens = 5;  // default of --num-speculative-tokens
inline constexpr std::int32_t kDraftTokensHeld = 8;     // drafts a request may ask for, at least
inline constexpr std::size_t kMaxConfigFileBytes = 1u << 20;
inline constexpr std::size_t kMaxConfigValues = 1u << 16;       // of one file, aliases written out
inline constexpr std::size_t kMaxUndeliveredEvents = 1u << 16;  // beyond it pieces of one choice are joined
inline constexpr std::size_t kMaxPromptsFileBytes = 1u << 30;   // --prompts
inline constexpr std::size_t kMaxPromptsPerFile = 1u << 20;
inline constexpr std::size_t kMaxGenerateInFlight = 512;        // requests `generate` has submitted and not printed
inline constexpr std::uint64_t kHiddenShardBytes = 512u << 20;  // of one file of `generate --dump-hidden`, about
inline constexpr std::size_t kMaxChatLineBytes = 1u << 20;
inline constexpr std::int32_t kMaxBenchRepeats = 100'000;
inline constexpr std::int32_t kDefaultPerplexityTokens = 10'000;  // default of `perplexity --max-tokens`
inline constexpr std::int32_t kMaxPerplexityTokens = 1 << 26;     // a text has at most as many tokens as bytes
inline constexpr std::int32_t kDefaultPerplexityContext = 512;    // tokens of a chunk, default of --context
inline constexpr std::size_t kPerplexityChunksInFlight = 8;

static_assert(kDefaultDraftTokens <= kDraftTokensHeld && kDraftTokensHeld <= kMaxDraftTokens);
static_assert(kMaxGenerateInFlight <= kMaxQueuedRequests);
static_assert(kMaxPerplexityTokens >= static_cast<std::int64_t>(kMaxEncodeBytes));

// --- gpu --------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxComputeThreads = 256;
inline constexpr std::size_t kMaxQueuedLaunches = 8;            // per stream
inline constexpr std::chrono::microseconds kTeamSpin{50};       // a helper thread spins this long, then sleeps
inline constexpr std::chrono::microseconds kLeaderSpin{100};    // between steps the leader yields this long, then parks
inline constexpr std::chrono::milliseconds kTicketExpiry{200};  // a verify step waits this long for its drafts
inline constexpr std::size_t kWeightChunkBytes = 16u << 20;     // small matrices share huge pages of this many bytes
inline constexpr std::int64_t kMaxMatrixColumns = 1 << 18;      // inputs of one weight matrix
inline constexpr std::int32_t kAttentionPartition = 256;        // positions; fixed, never a function of the batch
inline constexpr std::int64_t kAttentionPartialFloats = 4 << 20;  // partial results of sequences cut over threads
inline constexpr std::int32_t kPreciseBelowHidden = 768;          // narrower models: int8 activations in two terms
inline constexpr std::int32_t kMaxPutOffRows = 16;            // rows of a sequence that an EAGLE head takes in later
inline constexpr std::int32_t kMaxLogitRows = 64;             // rows of logits held at once; a run of drafts fits
inline constexpr std::size_t kMaxFeatureLayers = 8;           // hidden states handed out of a row
inline constexpr std::uint64_t kDefaultKvBytes = 4ull << 30;  // for target and draft together, at most
inline constexpr std::uint64_t kKvPercentOfAvailable = 40;    // of the memory that is left after loading

// --- actors -----------------------------------------------------------------------------------------------------
inline constexpr std::size_t kEncoderThreads = 1;
inline constexpr std::size_t kMaxQueuedEncodes = 8192;
inline constexpr std::size_t kSmallTextBytes = 256u << 10;        // encoded in any case: its refusal names its tokens
inline constexpr std::size_t kMaxQueuedEncodeBytes = 256u << 20;  // of prompts that wait to be encoded
inline constexpr std::size_t kMaxQueuedDraftCalls = 2;            // work items for a program's own draft source
inline constexpr std::chrono::milliseconds kTick{20};             // deadlines are checked this often
inline constexpr std::chrono::seconds kStuckDevice{30};           // /health turns 503 when no step ends for this long
inline constexpr int kMaxActorRestarts = 1000;
inline constexpr std::size_t kMaxActorThroughput = 32;     // messages an actor takes before others get their turn
inline constexpr std::chrono::seconds kCancelGrace{5};     // cancelled work ends within this, or is given up
inline constexpr std::chrono::seconds kActorShutdown{10};  // all actors of a runtime end within this
inline constexpr std::chrono::milliseconds kDrainPoll{2};  // drain() looks this often

// --- net --------------------------------------------------------------------------------------------------------
inline constexpr std::size_t kMaxBodyBytes = 64u << 20;
inline constexpr std::size_t kMaxUnfinishedBodyBytes = 1u << 30;  // of all requests that are being received
inline constexpr std::size_t kSmallBodyBytes = 64u << 10;         // always received, however many others are under way
inline constexpr std::size_t kMaxHeaderBytes = 32u << 10;
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxConnections = 16'384;
inline constexpr std::size_t kMaxWebSocketMessageBytes = 16u << 20;
inline constexpr std::size_t kMaxRequestsPerSocket = 256;
inline constexpr std::size_t kMaxOutboxBytes = 4u << 20;  // unsent bytes of one connection before it is cut
inline constexpr std::size_t kMaxPromptsPerRequest = 1024;
inline constexpr std::chrono::seconds kHeaderTimeout{30};
inline constexpr std::chrono::seconds kBodyTimeout{60};
inline constexpr std::chrono::seconds kIdleTimeout{120};  // keep-alive and WebSocket
inline constexpr std::chrono::seconds kWriteTimeout{60};
inline constexpr std::chrono::seconds kStreamPing{5};         // an SSE comment when nothing else was sent
inline constexpr std::chrono::seconds kLingerTimeout{2};      // a refused body is read and dropped for this long
inline constexpr std::size_t kMaxReadAheadBytes = 64u << 10;  // pipelined bytes kept while an answer is under way
inline constexpr std::size_t kReadChunkBytes = 16u << 10;
inline constexpr std::size_t kMaxIoThreads = 64;
inline constexpr int kListenBacklog = 1024;
inline constexpr std::size_t kMaxExternalIdBytes = 64;  // X-Request-Id and ids of WebSocket requests
inline constexpr std::size_t kMaxCacheSaltBytes = 256;
inline constexpr std::size_t kMaxMessages = 8192;  // of one chat
inline constexpr std::chrono::milliseconds kMaxRequestTimeout{86'400'000};
inline constexpr std::chrono::seconds kRetryAfter{1};     // what 429 and 503 advise
inline constexpr std::chrono::seconds kShutdownGrace{1};  // close handshakes after the bound of stop()

static_assert(kMaxNgram <= 64 && kMaxDraftTokens <= 64);
static_assert(kMaxBatchedTokens >= kMaxDraftTokens + 1);
static_assert(kMaxLogitRows >= kMaxDraftTokens + 1);

}  // namespace tandem::limits
