#pragma once
/// A draft source that takes in tokens and needs no device: what it keeps of every sequence, and how the scheduler's
/// work becomes drafts in a ticket. Owner: the drafter actor of its method.

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/messages.hpp"
#include "core/step.hpp"
#include "core/ticket.hpp"

namespace tandem {

/// Which slots live, as told since some moment; applied in this order. One entry of each per slot at most.
struct slot_changes {
  std::vector<slot_id> closed;
  std::vector<slot_opening> opened;  ///< without `known` and `sampling`

  /// What the work tells, behind what was told before.
  void add(const draft_work& work);
};

/// One sequence as such a source sees it.
class drafting_text {
 public:
  virtual ~drafting_text() = default;
  /// The next known tokens. The last `unlearned` of them were generated, and no source of this method was told before.
  virtual void append(std::span<const token_id> tokens, std::int32_t unlearned) = 0;
  /// At most k tokens, and no more than `most` allows for their evidence.
  virtual ticket::row propose(std::int32_t k, const drafts_by_evidence& most) = 0;
};

class text_source {
 public:
  text_source() = default;
  virtual ~text_source() = default;
  text_source(const text_source&) = delete;
  text_source& operator=(const text_source&) = delete;

  /// Takes in the new tokens and fills the ticket; the caller seals it. A sequence whose earlier tokens this source
  /// never saw (it was restarted) gets no drafts; the outcome's known_rows says from where it must be told again.
  draft_outcome draft(const draft_work& work);
  /// What earlier work told, of which only this is to be taken in.
  void change_slots(const slot_changes& changes);
  /// What was generated and not told in proposals. A source that learns nothing from others' outputs ignores it.
  virtual void learn(const outputs_closed&) {}

  std::size_t sequences() const { return slots_.size(); }

 protected:
  /// A sequence of which nothing is known yet but how its slot was opened (without `known` and `sampling`).
  virtual std::unique_ptr<drafting_text> begin(const slot_opening& opening) = 0;

 private:
  struct slot_state {
    slot_opening opening;
    std::int32_t length = 0;              // tokens in `text`
    std::unique_ptr<drafting_text> text;  // null until the first proposal
  };
  slot_state& state_of(const proposal& wanted);
  void close(std::span<const slot_id> slots);
  void open(std::span<const slot_opening> openings);
  draft_outcome::entry take(const proposal& wanted, ticket* drafts);

  std::unordered_map<slot_id, slot_state> slots_;  // at most limits::kMaxSequencesInFlight
};

}  // namespace tandem
