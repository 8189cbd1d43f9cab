#pragma once
/// Turns step_work into step_outcome: forward, verify, log-probabilities. Owner: the device; leader thread only.

#include <cstdint>
#include <span>
#include <vector>

#include "core/sampling/acceptance.hpp"
#include "core/step.hpp"
#include "core/ticket.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/draft_head.hpp"
#include "gpu/host/model_executor.hpp"
#include "gpu/host/slot_table.hpp"

namespace tandem::gpu::host {

class target_runner {
 public:
  /// `head` (may be null) takes in every step.
  /// `features`: layers whose entering states are handed out to rows that want them.
  target_runner(model_executor& executor, compute_team& team, std::int32_t slots, draft_head* head,
                std::span<const std::int32_t> features);

  /// For a source that drafts with the target's own counts.
  slot_table& slots() { return slots_; }

  /// No ticket of the step is open any more. `device_ns` and `ticket_wait_ns` are left to the caller.
  step_outcome run(const step_work& work);

 private:
  /// One sequence's rows of the step in hand.
  struct planned {
    const step_rows* rows = nullptr;
    slot_state* slot = nullptr;
    const ticket::row* source = nullptr;  ///< of the drafts; null without
    std::vector<token_id> tokens;         ///< known, then drafts
    std::int32_t offer = -1;              ///< of rows->offers, where `source` is
    std::int32_t drafts = 0;              ///< to be verified
    bool last_impossible = false;         ///< the last draft is one that the target cannot draw: it has no row
    std::int32_t first_row = 0;           ///< of the forward
    slot_outcome* out = nullptr;

    std::int32_t known() const { return static_cast<std::int32_t>(rows->tokens.size()); }
    std::int32_t draft_rows() const { return drafts - (last_impossible ? 1 : 0); }
    std::int32_t logit_rows() const { return rows->yields_token ? draft_rows() + 1 : 0; }
    std::span<const token_id> row_tokens() const {
      return std::span(tokens).first(static_cast<std::size_t>(known() + draft_rows()));
    }
  };
  struct prompt_row {
    planned* part = nullptr;
    std::int32_t row = 0;  ///< of the forward
    token_id token = kNoToken;
    token_logprobs* out = nullptr;
  };

  /// What a thread needs to judge a row.
  struct row_scratch {
    std::vector<float> logits;        ///< to spoil when the raw ones are needed later
    std::vector<std::uint32_t> mask;  ///< of a grammar
  };

  void open_matchers(std::span<const slot_opening> opened);
  planned plan(const step_rows& rows, const step_work& work);
  void choose_offer(planned& part, const step_work& work) const;
  void take_drafts(planned& part, const step_work& work) const;
  void cut_drafts(planned& part) const;
  void run_forward();
  void hand_out_features();
  void verify_all();
  void verify_batch(std::span<planned> parts);
  void verify(planned& part, std::span<float> logits, std::int32_t thread);
  acceptance_input input_of(const planned& part, row_scratch& scratch) const;
  void score_prompts();
  std::vector<committed_rows> committed() const;
  void tell_head();
  std::vector<prompt_row> prompt_rows();
  static void reserve_prompt_logprobs(planned& part);

  model_executor& executor_;
  compute_team& team_;
  slot_table slots_;
  draft_head* head_;
  std::size_t feature_layers_;
  std::size_t first_feature_;  // in the executor's captured states
  std::vector<planned> parts_;
  std::vector<row_scratch> scratch_;  // per thread
};

}  // namespace tandem::gpu::host
