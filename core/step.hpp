#pragma once
/// What the scheduler asks of a device and what comes back: one step of many sequences. Plain data.
///
/// There is no prefill and no decode. A sequence has `known` tokens (prompt and committed output) and `computed` tokens
/// (KV present). A step gives it rows at positions computed, computed+1, … ; the row of the last known token yields the
/// next token. Draft rows follow it: draft i sits at position known+i, and its row yields the token after it.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/speculation/evidence.hpp"
#include "core/stuck_reason.hpp"

namespace tandem {

class ticket;  // core/ticket.hpp: drafts of one step, filled by a draft source, awaited by the target's stream

/// Which acceptance rule verifies drafts (core/sampling/acceptance.hpp).
enum class acceptance_rule : std::uint8_t { coupled, rejection };

/// A slot starts a life: the device forgets what was there. Sent in the first work item that names the slot.
/// The device keeps: sampling parameters, token counts for penalties, the block table, the number of known tokens.
struct slot_opening {
  slot_id slot = kNoSlot;
  std::uint32_t slot_gen = 0;  ///< tags every answer; results of an older life are discarded
  std::shared_ptr<const sampling_params> sampling;
  std::uint64_t noise_key = 0;  ///< hash(seed, choice): with the absolute position and token id it keys all noise
  acceptance_rule rule = acceptance_rule::coupled;
  std::uint64_t salt = 0;                              ///< hash of the request's cache_salt; 0: it has none
  std::int32_t prompt_length = 0;                      ///< output index = position - prompt_length
  std::shared_ptr<const std::vector<token_id>> known;  ///< prompt and output committed so far (resume)
  std::int32_t top_logprobs = -1;
  std::int32_t prompt_logprobs = -1;
};

/// Entries of a slot's block table from `first_index` on. The device never allocates.
struct table_delta {
  slot_id slot = kNoSlot;
  std::int32_t first_index = 0;
  std::vector<block_id> blocks;
};

/// What a block holds is written into another one, for a sequence that goes on where a second one does, too.
struct block_copy {
  block_id from = kNoBlock;
  block_id to = kNoBlock;
};

/// One sequence's row of a ticket.
struct draft_offer {
  std::int32_t ticket = -1;  ///< index into step_work::tickets; -1: there is no offer
  std::int32_t row = -1;
};
inline constexpr std::size_t kDraftOffers = 2;  ///< of one sequence in a step

/// One sequence's rows in a target step.
struct step_rows {
  slot_id slot = kNoSlot;
  std::uint32_t slot_gen = 0;
  std::int32_t first_position = 0;      ///< = computed
  std::vector<token_id> tokens;         ///< known tokens at first_position, first_position+1, …
  bool yields_token = false;            ///< the last of `tokens` is the last known one
  token_id following_token = kNoToken;  ///< the known token after the last of `tokens`, for prompt log-probabilities
  std::int32_t draft_rows = 0;          ///< k: rows reserved for drafts (only with yields_token)
  bool wants_features = false;          ///< hidden states of `tokens` come back (a device made with feature layers)
  /// Drafts come from the first that is filled and not empty.
  std::array<draft_offer, kDraftOffers> offers;
};

/// `run_step`: one forward of the target over many sequences.
struct step_work {
  step_id step = 0;
  std::vector<slot_opening> opened;
  std::vector<slot_id> closed;  ///< lives that ended; applied before `opened`
  std::vector<table_delta> table_deltas;
  std::vector<block_copy> copies;  ///< of the target's pages, before any row
  std::vector<step_rows> rows;
  std::vector<std::shared_ptr<ticket>> tickets;  ///< one per draft source that takes part
};

/// One sequence's part of a finished step.
struct slot_outcome {
  slot_id slot = kNoSlot;
  std::uint32_t slot_gen = 0;
  std::int32_t rows_done = 0;            ///< known rows whose KV is now present (drafts not counted)
  std::vector<token_id> tokens;          ///< accepted drafts, then the target's own; empty when nothing was yielded
  std::int32_t drafted = 0;              ///< drafts verified
  std::int32_t offer = -1;               ///< of step_rows::offers, the one they came from; -1: none
  std::int32_t accepted = 0;             ///< all of `tokens` but the last; when stuck, all
  std::vector<token_logprobs> logprobs;  ///< one per token, when asked for
  /// No token can follow: it must end. `tokens` are accepted drafts only, possibly none.
  std::optional<stuck_reason> stuck;
  std::vector<token_logprobs> prompt_logprobs;  ///< of the tokens at first_position+1 …, when asked for
  /// When asked for, of every known row: the hidden states that enter the device's feature layers, in their order, then
  /// the last one after the final norm. rows_done × (feature layers + 1) × hidden.
  std::vector<float> features;
};

/// `step_finished`, posted by the device's own thread.
struct step_outcome {
  step_id step = 0;
  bool ok = true;
  std::string error_message;    ///< when !ok: everything on this step is lost
  std::uint64_t device_ns = 0;  ///< from launch taken up to completion
  std::uint64_t ticket_wait_ns = 0;
  std::vector<slot_outcome> slots;  ///< in the order of step_work::rows
};

/// One sequence's part of a draft work item: catch up, then propose k tokens.
struct proposal {
  slot_id slot = kNoSlot;
  std::uint32_t incarnation = 0;     ///< +1 at preempt, cancel, drafter restart
  std::int32_t first_position = 0;   ///< tokens known to the source before this item (draft KV computed)
  std::vector<token_id> new_tokens;  ///< known tokens from first_position on; ids a draft model lacks are 0
  std::int32_t unlearned = 0;        ///< of new_tokens, the last so many are output that the source was never told
  std::int32_t k = 0;                ///< 0: catch up only. k > 0: new_tokens reaches the last known token
  std::int32_t ticket_row = -1;
  /// Fewer than k where the source itself is not sure enough; rows it leaves empty cost the target nothing.
  drafts_by_evidence most = same_for_all(limits::kMaxDraftTokens);
  /// When another source has filled that row of its ticket, nothing is done for the sequence, not even catching up.
  std::shared_ptr<ticket> unless;
  std::int32_t unless_row = -1;
};

/// Another source has drafts for the sequence. The ticket it waits for has left `open`.
bool is_called_off(const proposal& wanted);

/// The tickets that must have left `open` before a work item with these proposals begins.
std::vector<std::shared_ptr<ticket>> awaited_by(const std::vector<proposal>& proposals);

/// `propose`: what one draft source does for one step. The slot openings, closings and table deltas are the same facts
/// the target gets; a source without device state ignores the tables.
struct draft_work {
  step_id step = 0;
  std::vector<slot_opening> opened;
  std::vector<slot_id> closed;
  std::vector<table_delta> table_deltas;
  std::vector<proposal> proposals;
  std::shared_ptr<ticket> drafts;  ///< one row per proposal with k > 0
};

/// `draft_finished`, posted by the source when its work item has left its stream (the fence for the blocks it used).
struct draft_outcome {
  step_id step = 0;
  bool ok = true;
  std::string error_message;
  std::uint64_t device_ns = 0;
  struct entry {
    slot_id slot = kNoSlot;
    std::uint32_t incarnation = 0;
    /// Known tokens the source has now taken in: first_position + new_tokens.size(), or just first_position when the
    /// proposal was called off.
    std::int32_t known_rows = 0;
    std::int32_t draft_rows = 0;  ///< drafts beyond them whose KV is present (k-1 after a full proposal)
  };
  std::vector<entry> entries;
};

}  // namespace tandem
