#pragma once
/// What one stream of the device keeps per sequence. Owner: the stream's runner (target and draft have one each).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/grammar.hpp"
#include "core/ids.hpp"
#include "core/sampling/token_counts.hpp"
#include "core/step.hpp"

namespace tandem::gpu::host {

/// One life of a slot.
struct slot_state {
  bool open = false;
  std::uint32_t slot_gen = 0;
  std::shared_ptr<const sampling_params> sampling;
  std::uint64_t noise_key = 0;
  acceptance_rule rule = acceptance_rule::coupled;
  std::int32_t prompt_length = 0;
  std::int32_t top_logprobs = -1;
  std::int32_t prompt_logprobs = -1;
  bool keeps_counts = false;  ///< only with penalties that look at earlier tokens
  token_counts counts;        ///< of positions [0, counted)
  std::int32_t counted = 0;
  /// Draft stream: what it proposed last, from position `counted` on. Accepted drafts come back as a later
  /// first_position only.
  std::vector<token_id> last_drafts;
  std::vector<block_id> table;
  /// Target stream, of a sequence with a grammar: stands behind the last known token. Null there: it lost its way.
  std::unique_ptr<grammar_matcher> matcher;
  stuck_reason matcher_lost = stuck_reason::broken;  ///< why it is null
  std::size_t output_kept = 0;          ///< how many output tokens the bad words look back at
  std::vector<token_id> recent_output;  ///< the last of them; target stream only

  /// Output that was just drawn.
  void note_output(std::span<const token_id> tokens);
  /// Adds known tokens to the counts, those not yet counted; `first_position` is the position of tokens[0]. Positions
  /// before it that were not counted yet hold the last drafts.
  void count_known(std::int32_t first_position, std::span<const token_id> tokens);
  /// Whether a grammar says what may follow.
  bool constrained() const { return sampling->structure != nullptr; }
  std::int32_t capacity(std::int32_t block_size) const { return static_cast<std::int32_t>(table.size()) * block_size; }

 private:
  void count(token_id token);
};

class slot_table {
 public:
  slot_table(std::int32_t slots, std::int32_t num_blocks);

  /// Closings, then openings, then table entries. Ids out of range are bugs.
  void apply(std::span<const slot_id> closed, std::span<const slot_opening> opened,
             std::span<const table_delta> deltas);
  /// An open slot.
  slot_state& at(slot_id slot);
  /// Null unless the slot is open in that life.
  slot_state* find(slot_id slot, std::uint32_t slot_gen);

 private:
  slot_state& any(slot_id slot);
  void open(const slot_opening& opening);
  void set_table(const table_delta& delta);

  std::vector<slot_state> slots_;
  std::int32_t num_blocks_;
};

}  // namespace tandem::gpu::host
