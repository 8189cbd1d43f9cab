#pragma once
/// What a finished step means for one sequence: which tokens are committed, and whether they end it.

#include "core/scheduling/beam_search.hpp"
#include "core/scheduling/scheduler.hpp"
#include "core/scheduling/sequence.hpp"
#include "core/step.hpp"

namespace tandem {

/// Appends the outcome's tokens to `seq.known` up to and including the one that ends it, moves `computed`, and updates
/// its statistics. The returned entry has `end` set when the sequence is over. A stop at or before the cap wins.
tokens_committed::entry commit_outcome(sequence& seq, const slot_outcome& outcome, const scheduler_options& options);

/// The last entry of a sequence that ends without new tokens (cancelled, timed out, device error).
tokens_committed::entry end_entry(const sequence& seq, finish end);

/// All that is told of a lane's hypothesis, when its beam search is over. `wanted`: why it ended early, which is the
/// end of those that are not complete.
tokens_committed::entry beam_entry(const sequence& lane, const beam_hypothesis& hypothesis,
                                   const std::optional<finish>& wanted, const scheduler_options& options);

/// Feeds output committed in an earlier life of the scheduler to the stop rules.
void replay_output(sequence& seq, const scheduler_options& options);

}  // namespace tandem
