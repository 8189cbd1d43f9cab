#pragma once
/// Your own source of drafts: tokens you think the model will say next. tandem checks them in the same forward pass
/// that computes the next token anyway, so right ones make an answer faster and wrong ones change nothing in it.
///
///   class KnownAnswers : public tandem::DraftSource { … };
///   options.draft_source = std::make_shared<KnownAnswers>();
///
/// It is asked for every request that does not say otherwise (SamplingParams::speculative_method), for up to
/// num_speculative_tokens tokens a step. examples/custom_drafts has a whole one.

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

/// Where a sequence stands.
struct DraftQuestion {
  std::uint64_t sequence = 0;            ///< equal in two questions: the same sequence, which has only grown
  std::span<const std::int32_t> tokens;  ///< ids of the prompt and of the answer so far; valid during the call only
  std::int32_t prompt_length = 0;        ///< of them the prompt's
  std::int32_t k = 0;                    ///< tokens wanted, at least 1
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  /// At most k ids that may follow; more are cut off, none is a good answer. An id outside the model's vocabulary is
  /// dropped with all behind it.
  ///
  /// Threads: all calls come from one thread of the engine, one at a time; what other threads of yours change needs a
  /// lock. Do not call the engine and wait for it from here.
  /// Time: each step waits for the answers of its sequences, at most 200 ms in all; then it goes on without drafts, and
  /// nothing is asked until the late call has returned. Be much quicker than a step of the model (milliseconds). The
  /// engine's destructor waits for a call under way.
  /// Exceptions: caught; no drafts. /metrics counts them, late answers and unknown ids in
  /// tandem:draft_source_faults_total.
  virtual std::vector<std::int32_t> propose(const DraftQuestion& question) = 0;
};

}  // namespace tandem
