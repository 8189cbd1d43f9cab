#pragma once
/// The scheduler's state and its parts; included only by core/scheduling/*.cpp.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/scheduling/block_holds.hpp"
#include "core/scheduling/block_lease.hpp"
#include "core/scheduling/choice_group.hpp"
#include "core/scheduling/scheduler.hpp"
#include "core/scheduling/sequence.hpp"
#include "core/scheduling/step_builder.hpp"

namespace tandem {

struct scheduler::impl {
  impl(scheduler_options opts, std::unique_ptr<speculation_policy> choice);

  // scheduler.cpp: messages
  void admit(const admit_sequence& message, time_point now);
  void cancel(request_id request);
  void matched(const prefix_matched& message);
  void finish_step(const step_finished& message, time_point now);
  void settle_row(const step_work& work, std::size_t row, const planned_rows& part, const slot_outcome& slot,
                  time_point now);
  void stamp_times(sequence& seq, time_point now, bool yielded) const;
  void settle_drafts(const step_work& work, std::size_t row, const planned_rows& part, const slot_outcome& slot,
                     std::int32_t accepted);
  void finish_drafts(const draft_finished& message);
  void change_drafter(const drafter_changed& message);
  void restart_allocator(const allocator_restarted& message);
  void expire(time_point now);
  /// After every message: starts what can start and asks for what will be needed.
  scheduler_commands pump(time_point now);

  // lifecycle.cpp: how sequences start, pause and end
  void start_waiting();
  void begin(sequence& seq);
  void run(sequence& seq);
  void stop_running(sequence& seq);
  void preempt(sequence& seq);
  void end_now(sequence& seq, finish end);
  void end_soon(sequence& seq, finish_reason reason);
  void retire(sequence& seq, finish_reason reason);
  void tell_output(const sequence& seq);
  void release(sequence& seq);
  void hold_pinned(const std::vector<block_id>& blocks);
  block_id take_block();
  void let_go(const std::vector<block_id>& blocks);
  block_holds count_holds() const;
  void release_fenced(draft_method method, step_id step_done);
  void publish(sequence& seq);

  // prompt_sharing.cpp: choices of one request compute its prompt once
  void join_group(sequence& seq);
  void leave_group(sequence& seq);
  void note_started(sequence& seq);
  std::int32_t shareable_blocks(const sequence& seq) const;
  bool holds_prompt(const sequence& seq) const;
  bool waits_for_prompt(const sequence& seq) const;
  bool prompt_is_computed(const sequence& seq) const;
  leading_blocks prompt_blocks_of(const sequence& seq) const;
  leading_blocks computed_prompt(const sequence& seq) const;
  void hold_again(const std::vector<block_id>& blocks);
  void take_prompt(sequence& seq);
  void run_behind_prompt(sequence& seq);
  void repeat_prompt_scores(sequence& seq);
  void remember_prompt_scores(const sequence& seq, const std::vector<token_logprobs>& scores);
  void keep_prompt(const sequence& seq);
  bool drop_kept(choice_group& group);

  // beam_lanes.cpp: the sequences of a beam search
  static bool is_lane(const sequence& seq) { return seq.group != nullptr && seq.group->beams != nullptr; }
  void join_beams(sequence& seq, const admit_sequence& message);
  bool beams_are_complete(const choice_group& group) const;
  std::vector<sequence*> live_lanes(const choice_group& group) const;
  bool beams_have_started(const choice_group& group) const;
  bool beams_may_start(const choice_group& group, std::int32_t busy) const;
  void start_beams(choice_group& group);
  void wake_lanes(choice_group& group);
  void settle_lane(const planned_rows& part, slot_outcome slot, time_point now);
  void settle_beams(choice_group& group);
  std::int32_t blocks_due(const choice_group& group) const;
  void take_due_steps(choice_group& group);
  void fork(sequence& lane, const sequence& parent);
  void idle(sequence& lane);
  void rewind_beams(choice_group& group);
  void preempt_beams(choice_group& group);
  void end_beams_soon(choice_group& group, finish end);
  void finish_beams(choice_group& group);

  // best_of.cpp: what clients are told
  void tell(const sequence& seq, tokens_committed::entry entry);
  void tell_best(const sequence& seq);

  // planning.cpp: the next step
  void plan_step(time_point now);
  std::vector<planned_rows> plan_rows();
  void fit_to_blocks(planned_rows& part);
  void launch(std::vector<planned_rows> plan, time_point now);
  std::vector<sequence*> secure_blocks();
  bool cover(sequence& seq, std::int32_t tokens);
  void make_room(const sequence& needy);
  std::vector<draft_choice> draft_wishes(const std::vector<sequence*>& ready);
  draft_question question_of(sequence& seq) const;
  std::int32_t drafts_that_fit(const sequence& seq, draft_method method) const;
  planned_drafts drafts_from(draft_method method, std::int32_t k, const drafts_by_evidence& most,
                             const sequence& seq) const;
  planned_rows wish_of(sequence& seq, const draft_choice& choice) const;
  void plan_catch_up(planned_drafts& part, const planned_rows& of, std::int32_t& draft_budget);
  void resolve_drafts(sequence& seq);
  std::int32_t lease_target() const;

  sequence* find(sequence_id id);
  bool source_ready(draft_method method) const;
  std::int32_t blocks_for(std::int32_t tokens) const { return (tokens + options.block_size - 1) / options.block_size; }

  scheduler_options options;
  std::unique_ptr<speculation_policy> policy;
  std::map<sequence_id, std::unique_ptr<sequence>> sequences;  // every live one
  std::map<request_id, choice_group> groups;                   // of requests with several choices
  std::set<std::pair<service_rank, sequence*>> waiting;
  std::set<std::pair<service_rank, sequence*>> running;  // with a slot
  std::vector<slot_id> free_slots;
  std::vector<std::uint32_t> slot_gens;
  closed_slots closed;
  block_lease lease;
  block_holds holds;  // of running sequences, kept prompts and fenced blocks
  std::uint32_t pool_gen;

  struct source_state {
    bool exists = false;
    bool alive = false;
    step_id in_flight = 0;                   // its work item under way
    std::shared_ptr<const draft_work> work;  // that item
  };
  std::array<source_state, kDraftMethods> sources;

  struct fenced_blocks {
    std::array<step_id, kDraftMethods> until{};  // items the draft streams must pass first; 0: none
    std::vector<block_id> blocks;
    bool waits() const {
      return std::any_of(until.begin(), until.end(), [](step_id step) { return step != 0; });
    }
  };
  std::vector<fenced_blocks> fenced;

  step_id last_step = 0;
  std::shared_ptr<const step_work> in_flight;
  std::vector<planned_rows> in_flight_plan;  // parallel to in_flight->rows
  time_point launched{};

  std::int32_t matching = 0;
  step_measured totals;    // gathered until the next step is measured
  scheduler_commands out;  // what the message being handled made us say
};

}  // namespace tandem
