#pragma once
/// Every message between the actors, in order of travel. Plain data without actor library types, so that the pure core
/// can produce and consume them; actors/protocol.hpp says who may send which to whom.
///
/// Each: from → to; when; who owns the payload; the answer.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/result.hpp"
#include "core/step.hpp"

namespace tandem {

class outlet;  // actors/outlet.hpp: where a client's events are posted, one call per step

using time_point = std::chrono::steady_clock::time_point;

/// bridge → intake. A client wants text. Payload shared, immutable.
/// Answer: `submission_answer` through the outlet (accepted with the prompt's ids, or refused), then events.
struct submit_generation {
  request_id id;
  std::shared_ptr<const generation_request> request;
  std::shared_ptr<outlet> client;
  time_point submitted{};
};

/// intake → encoder (own threads, not actors). A prompt is to become ids. Answer: prompt_encoded, from the encoder's
/// thread, in any order between requests.
struct encode_prompt {
  request_id id;
  std::shared_ptr<const generation_request> request;
};
struct prompt_encoded {
  request_id id;
  result<std::vector<token_id>> tokens;
  std::vector<std::vector<token_id>> bad_words;  ///< of the request's, as sampling_params has them
};
/// intake → compile_queue (own threads, not actors), when the prompt is encoded. A structured_spec is to become a grammar.
/// Answer: grammar_compiled, from any thread.
struct grammar_compiled {
  request_id id;
  result<std::shared_ptr<const grammar>> structure;
};

/// bridge → intake → scheduler (one mailbox each, so a cancel never overtakes its request). The client is gone or said
/// so. Answer: the request's one terminal event with finish_reason::cancelled. Unknown or ended ids are ignored.
struct cancel_generation {
  request_id id;
};

/// intake → scheduler. One choice of an encoded, validated request. Parameters resolved: seed drawn, max_tokens set.
/// Answer: request_retired when it has ended.
struct admit_sequence {
  sequence_id id;
  std::shared_ptr<const generation_request> request;
  std::shared_ptr<const std::vector<token_id>> prompt;
  std::shared_ptr<const sampling_params> sampling;  ///< resolved
  std::uint64_t noise_key = 0;
  std::int32_t max_tokens = 0;  ///< resolved, ≥ 1; 0 only to score a prompt
  std::uint64_t arrival = 0;    ///< order of admission
  time_point submitted{};
  std::optional<time_point> deadline;
  std::vector<token_id> resumed_output;  ///< output committed before a scheduler crash; normally empty
};

/// scheduler → kv_allocator. A sequence is about to start or resume. Answer: prefix_matched.
struct match_prefix {
  sequence_id id;
  std::uint32_t incarnation = 0;
  std::shared_ptr<const std::vector<token_id>> tokens;  ///< known tokens
  std::uint64_t salt = 0;
  std::int32_t max_tokens = 0;  ///< match at most this many (known - 1)
  std::uint32_t pool_gen = 1;   ///< of another pool: nothing is pinned, the answer is void
};
/// kv_allocator → scheduler. The blocks are pinned for the sequence; it must release them.
struct prefix_matched {
  sequence_id id;
  std::uint32_t incarnation = 0;
  std::uint32_t pool_gen = 0;
  std::vector<block_id> blocks;    ///< whole blocks, in order
  std::int32_t cached_target = 0;  ///< tokens whose target KV is valid; a multiple of the block size
  std::int32_t cached_draft = 0;   ///< tokens whose draft KV is valid, ≤ cached_target
};

/// scheduler → kv_allocator. The lease runs low: ahead of need, never inside a step. Answer: blocks_leased, always,
/// with as many as there are (possibly none).
struct lease_blocks {
  std::int32_t want = 0;
  std::uint32_t pool_gen = 1;  ///< of another pool: nothing is leased, the answer is void
};
struct blocks_leased {
  std::uint32_t pool_gen = 0;
  std::vector<block_id> blocks;
  std::int32_t still_free = 0;  ///< free + cached blocks left in the pool
};

/// scheduler → kv_allocator. Full blocks of committed tokens become findable. Batched: one message per step. No answer.
struct publish_blocks {
  struct entry {
    block_id block = kNoBlock;
    block_id parent = kNoBlock;  ///< the block before it in the sequence; kNoBlock = first
    std::uint64_t salt = 0;
    std::shared_ptr<const std::vector<token_id>> tokens;  ///< exactly block_size of them
    bool draft_valid = false;                             ///< the draft page holds KV of these tokens too
  };
  std::uint32_t pool_gen = 0;
  std::vector<entry> entries;
};
/// scheduler → kv_allocator. One more hold on each of these blocks, for another choice of the same request: some
/// sequence of the scheduler's holds them when this is sent, so they are there when it arrives. No answer.
struct share_blocks {
  std::uint32_t pool_gen = 0;
  std::vector<block_id> blocks;
};
/// scheduler → kv_allocator. The sequence's hold on these blocks ends; every stream has passed its work on them. No
/// answer.
struct release_blocks {
  std::uint32_t pool_gen = 0;
  std::vector<block_id> blocks;
};

/// scheduler → drafter, together with run_step. Answer: the ticket is sealed, then draft_finished.
struct propose {
  std::shared_ptr<const draft_work> work;
};
/// scheduler → the drafter that learns from outputs. Slots were closed, their sequences ended or preempted: what these
/// generated and their proposals did not say. Batched: one message per step. No answer.
struct outputs_closed {
  struct entry {
    std::uint64_t salt = 0;
    std::vector<token_id> tokens;  ///< up to limits::kMaxSuffixContext earlier ones, then the unlearned
    std::int32_t unlearned = 0;
  };
  std::vector<entry> entries;
};
/// scheduler → verifier. Answer: step_finished.
struct run_step {
  std::shared_ptr<const step_work> work;
};
/// device thread → scheduler (high priority). Fence of the target's stream up to this step.
struct step_finished {
  std::shared_ptr<const step_outcome> outcome;
};
/// device thread or drafter → scheduler. Fence of the source's stream up to this step.
struct draft_finished {
  draft_method method = draft_method::none;
  std::shared_ptr<const draft_outcome> outcome;
};
/// supervisor → scheduler. A drafter died (its stream is gone, its open tickets are cancelled) or is back.
struct drafter_changed {
  draft_method method = draft_method::none;
  bool alive = false;
};
/// supervisor → scheduler. The allocator was restarted with an empty index: rebuild it from the scheduler's tables.
struct allocator_restarted {
  std::uint32_t pool_gen = 0;
};
/// scheduler → kv_allocator, after allocator_restarted: every block some sequence still holds, and the lease.
struct adopt_blocks {
  std::uint32_t pool_gen = 0;
  std::vector<block_id> held;  ///< one entry per hold; the rest of the pool is free
};

/// scheduler → streamer. What one step committed, for all requests: one message per step.
struct tokens_committed {
  struct entry {
    sequence_id id;
    std::int32_t first_index = 0;  ///< output index of tokens[0]; contiguous per sequence
    std::vector<token_id> tokens;
    std::vector<std::uint8_t> accepted;  ///< per token: 1 = it was a draft
    std::vector<token_logprobs> logprobs;
    std::vector<token_logprobs> prompt_logprobs;  ///< next part, in order, for prompt positions 1, 2, …
    std::size_t held_bytes = 0;                   ///< trailing visible bytes that may yet become a stop string
    std::optional<finish> end;                    ///< set in the last entry of the sequence
    sequence_stats stats;                         ///< complete when `end` is set
  };
  step_id step = 0;
  std::vector<entry> entries;
};
/// intake → streamer, before the sequence is admitted: where its events go.
struct open_stream {
  sequence_id id;
  std::shared_ptr<const generation_request> request;
  std::shared_ptr<outlet> client;
  std::shared_ptr<const std::vector<token_id>> prompt;
  time_point submitted{};
};

/// scheduler → intake. A sequence has ended and given back what it held: returns admission credit.
struct request_retired {
  sequence_id id;
  finish_reason reason = finish_reason::stop;
};

/// scheduler → metrics. One per step.
struct step_measured {
  std::int32_t rows = 0;
  std::int32_t prompt_tokens = 0;  ///< prefill rows done in this step
  std::int32_t generated_tokens = 0;
  std::int32_t preemptions = 0;
  std::int32_t prefix_queried_tokens = 0;
  std::int32_t prefix_hit_tokens = 0;
  double step_seconds = 0;  ///< launch to launch, or launch to commit when idle after
  double device_seconds = 0;
  struct speculation {
    draft_method method = draft_method::none;
    std::int32_t k = 0;        ///< asked for
    std::int32_t drafted = 0;  ///< offered and verified; 0 where the source had nothing
    std::int32_t accepted = 0;
  };
  std::vector<speculation> speculations;  ///< one per sequence for which drafts were asked
  std::int32_t undrafted = 0;             ///< sequences that decoded with k = 0
};
/// streamer → metrics. One per ended sequence and one per delivered burst.
struct sequence_measured {
  std::shared_ptr<const sequence_stats> stats;
  finish_reason reason = finish_reason::stop;
  double ttft_seconds = 0;
  double e2e_seconds = 0;
};
struct burst_measured {
  std::int32_t tokens = 0;
  double gap_seconds = 0;  ///< since the previous burst of the same sequence
};

}  // namespace tandem
