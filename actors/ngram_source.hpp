#pragma once
/// N-gram indices of all sequences that draft from their own text. Owner: the ngram drafter.

#include <cstdint>
#include <unordered_map>

#include "core/speculation/ngram_index.hpp"
#include "core/step.hpp"

namespace tandem {

class ngram_source {
 public:
  struct options {
    std::int32_t min_ngram = 2;
    std::int32_t max_ngram = 5;
  };
  explicit ngram_source(options opts) : options_(opts) {}

  /// Takes in the new tokens and fills the ticket; the caller seals it. A sequence whose earlier tokens this source
  /// never saw (it was restarted) gets no drafts; the outcome's known_rows says from where it must be told again.
  draft_outcome draft(const draft_work& work);

  std::size_t sequences() const { return slots_.size(); }

 private:
  struct slot_state {
    std::uint32_t incarnation = 0;
    ngram_index index;
  };
  slot_state& state_of(const proposal& wanted);
  draft_outcome::entry take(const proposal& wanted, ticket* drafts);

  options options_;
  std::unordered_map<slot_id, slot_state> slots_;  // at most limits::kMaxSequencesInFlight
};

}  // namespace tandem
