#pragma once
/// Beam search over one prompt: which hypotheses go on, which are complete, and when it is over. Pure: candidates in,
/// decisions out. Hypotheses live in lanes 0 … width - 1; the scheduler gives each lane a sequence.
///
/// In each step every hypothesis offers its 2 · width most probable next tokens. An end token among them completes it;
/// of the others the `width` best sums of log-probabilities go on. Ties: the better parent, then the smaller id.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"

namespace tandem {

struct beam_settings {
  std::int32_t width = 1;
  std::int32_t prompt_length = 0;
  std::int32_t max_tokens = 1;
  beam_params params;
  std::vector<token_id> end_tokens;  ///< sorted
  bool ignore_eos = false;           ///< end tokens are tokens like any other
  std::int32_t top_logprobs = -1;    ///< alternatives kept per token; -1: none, and no log-probabilities either
};

struct beam_hypothesis {
  std::vector<token_id> tokens;
  std::vector<token_logprobs> logprobs;  ///< one per token, when asked for
  double logprob = 0;                    ///< sum over the tokens
  bool complete = false;                 ///< its last token is an end token
  std::int32_t lane = 0;                 ///< while it is not complete
};

/// A lane goes on where `parent` stands, with `token`. Every parent is also the lane of one of its children.
struct beam_step {
  std::int32_t lane = 0;
  std::int32_t parent = 0;
  token_id token = kNoToken;
};

/// Tokens by descending log-probability, ties by ascending id.
using beam_candidates = std::vector<std::pair<token_id, float>>;

class beam_search {
 public:
  explicit beam_search(beam_settings settings);

  /// One step. `candidates[lane]`: of its next position, at least 2 · width or all there are; those of idle lanes are
  /// not looked at. Not after over().
  std::vector<beam_step> advance(std::span<const beam_candidates> candidates);
  /// Nothing that goes on could still change best().
  bool over() const;

  /// Hypotheses that go on, best first.
  const std::vector<beam_hypothesis>& live() const { return live_; }
  /// Null for an idle lane.
  const beam_hypothesis* in_lane(std::int32_t lane) const;
  /// The `width` hypotheses with the highest scores, or all there are: best first; ties: the one that was complete
  /// first, then the order of live().
  std::vector<beam_hypothesis> best() const;
  double score(const beam_hypothesis& hypothesis) const;

 private:
  struct extension {
    std::size_t parent = 0;  // in live_
    token_id token = kNoToken;
    double logprob = 0;
    std::int32_t rank = 0;  // among the parent's candidates
  };
  std::vector<extension> extend(std::span<const beam_candidates> candidates);
  beam_hypothesis child_of(const beam_hypothesis& parent, const extension& by, const beam_candidates& candidates) const;
  void keep_complete(beam_hypothesis hypothesis);
  std::vector<std::int32_t> place(const std::vector<extension>& chosen) const;
  bool ends(token_id token) const;
  double highest_reachable(const beam_hypothesis& hypothesis) const;

  beam_settings settings_;
  std::vector<beam_hypothesis> live_;
  std::vector<beam_hypothesis> complete_;  // at most `width`, best first
};

}  // namespace tandem
