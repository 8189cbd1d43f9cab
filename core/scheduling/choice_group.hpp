#pragma once
/// What the choices of one request have in common. Owner: scheduler; there from the first choice's admission to the
/// last one's end.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/ids.hpp"
#include "core/messages.hpp"
#include "core/scheduling/beam_lanes.hpp"

namespace tandem {

struct sequence;

/// Leading blocks of a block table, all of them full and computed, as another sequence can hold them too.
struct leading_blocks {
  std::vector<block_id> blocks;
  std::int32_t published = 0;        ///< of them findable
  std::int32_t published_draft = 0;  ///< of them findable with a valid draft page
  std::int32_t draft_known = 0;      ///< tokens with draft KV; a multiple of the block size
};

struct choice_group {
  std::int32_t unstarted = 0;      ///< choices that never had a slot; those not admitted yet are among them
  std::vector<sequence*> members;  ///< admitted and not ended, by choice
  /// Of the prompt's tokens from position 1 on, as far as any choice was told; while somebody is unstarted.
  std::vector<token_logprobs> prompt_scores;
  /// The prompt's blocks, held for those that have not started when the last choice that held them ended.
  leading_blocks kept;
  /// With best_of, what each choice has said, by choice; told when all have ended.
  std::vector<tokens_committed::entry> ballot;
  std::unique_ptr<beam_lanes> beams;  ///< null: the choices are sampled
};

}  // namespace tandem
