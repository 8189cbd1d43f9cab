#pragma once
/// Scheduler, allocator, draft sources and device in one thread: messages wait in one queue per pair of actors and are
/// delivered in a seeded random order, which is exactly the freedom real actors have. Invariants are checked after
/// every delivery; a seed replays.

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <variant>
#include <vector>

#include "core/kv/block_allocator.hpp"
#include "core/scheduling/scheduler.hpp"
#include "core/speculation/ngram_index.hpp"
#include "core/speculation/suffix_statistics.hpp"
#include "tests/sim/shadow_model.hpp"

namespace tandem::sim {

struct engine_options {
  std::int32_t num_blocks = 64;
  std::int32_t block_size = 4;
  std::int32_t max_num_seqs = 16;
  std::int32_t max_num_batched_tokens = 32;
  std::int32_t max_model_len = 128;
  bool chunked_prefill = true;
  bool prefix_caching = true;
  bool priority_policy = false;
  draft_method method = draft_method::none;
  std::int32_t k = 0;
  bool any_choice = false;  ///< methods, numbers and fallbacks by chance
  bool adaptive = false;    ///< whichever source pays, at most k; seconds are made up from the rows
  std::uint64_t draft_wrong_every = 5;
  std::int32_t draft_context_limit = 128;
  std::int32_t draft_vocabulary = 0;  ///< the draft model reads ids below it only; 0: all
  std::vector<token_id> end_tokens;
  double expire_tickets = 0.0;  ///< chance that a waiting step gives up on its drafts
  /// Steps and drafts finish on streams of their own; else on one thread, in order, as the host device does it.
  bool independent_streams = false;
  double fail_steps = 0.0;  ///< chance that the device loses a step
  std::function<std::string_view(token_id, bool)> token_bytes;
};

/// What the client saw of one sequence.
struct client_view {
  std::vector<token_id> tokens;
  std::vector<std::uint8_t> accepted;
  std::vector<token_logprobs> logprobs;
  std::vector<token_logprobs> prompt_scores;
  bool searches = false;  ///< its tokens are not those of oracle()
  bool follows_grammar = false;  ///< what it was told is what is known
  bool shown = true;      ///< false: made for best_of, and never told of under this number
  std::optional<finish> end;
  sequence_stats stats;
  bool retired = false;
};

struct job {
  std::vector<token_id> prompt;
  std::int32_t max_tokens = 8;
  stop_params stopping;
  std::int32_t min_tokens = 0;
  std::int32_t priority = 0;
  speculation_params speculation;
  std::string cache_salt;
  std::int32_t prompt_logprobs = -1;
  std::shared_ptr<const grammar> structure;
  std::int32_t n = 1;
  std::int32_t best_of = 1;
  std::int32_t logprobs = -1;
  std::optional<beam_params> beams;
};

class simulated_engine {
 public:
  simulated_engine(engine_options options, std::uint64_t seed);

  /// Of the first choice; the others follow it by number.
  sequence_id submit(const job& wanted);
  void cancel(sequence_id id) { intake_.push_back(cancel_generation{id.request}); }
  /// Delivers one message; false when nothing is queued.
  bool deliver_one();
  /// Delivers until nothing moves; fails loudly after a bound. Afterwards every sequence must have ended.
  void run_until_idle();
  void kill_drafter(draft_method method, bool comes_back = true);
  void kill_allocator();
  void advance(std::chrono::milliseconds by);

  const client_view& view(sequence_id id) const { return clients_.at(id); }
  const std::map<sequence_id, client_view>& views() const { return clients_; }
  const std::vector<token_id>& prompt(sequence_id id) const { return prompts_.at(id); }
  scheduler::status status() const { return scheduler_->current(); }
  block_allocator::counts pool() const { return allocator_->count(); }
  std::uint64_t steps_run() const { return steps_run_; }
  std::uint64_t deliveries() const { return deliveries_; }
  std::int32_t largest_step() const { return largest_step_; }
  /// Proposals for which another source had drafts.
  std::uint64_t called_off() const { return called_off_; }
  /// Rows of prompt tokens that steps computed, and how many of them had to score their token.
  std::int64_t prompt_rows() const { return prompt_rows_; }
  std::int64_t scored_rows() const { return scored_rows_; }
  /// Every token that the suffix source learned, with its salt and the tokens before it, at most kMaxSuffixContext.
  using lesson = std::tuple<std::uint64_t, std::vector<token_id>, token_id>;
  const std::multiset<lesson>& lessons() const { return lessons_; }

 private:
  using to_allocator =
      std::variant<match_prefix, lease_blocks, share_blocks, publish_blocks, release_blocks, adopt_blocks>;
  using from_allocator = std::variant<prefix_matched, blocks_leased>;
  using from_intake = std::variant<admit_sequence, cancel_generation>;
  using from_supervisor = std::variant<drafter_changed, allocator_restarted>;

  void send(scheduler_commands commands);
  void record(const tokens_committed& message);
  void run_allocator();
  void run_device();
  void run_drafter(draft_method method);
  void deliver_supervision();
  void propose_ngram(const draft_work& work);
  void propose_suffix(const draft_work& work);
  void learn(std::uint64_t salt, std::span<const token_id> text, std::int32_t unlearned);
  draft_outcome propose_model(const draft_work& work);
  draft_outcome propose_head(const draft_work& work);
  void count_prompt_rows(const step_rows& part);
  void tell_head(const step_rows& part, const slot_outcome& outcome);
  void check_holds() const;
  void check_unused(const std::vector<block_id>& blocks) const;
  void check_pages(shadow_kv& pages, slot_id slot, std::int32_t position);
  bool device_can_run() const;
  bool drafter_can_run(draft_method method) const;
  std::vector<std::function<void()>> ready_deliveries();
  template <class Message>
  void to_scheduler(const Message& message) {
    send(scheduler_->on(message, now_));
  }

  engine_options options_;
  std::mt19937_64 random_;
  time_point now_{};
  std::unique_ptr<scheduler> scheduler_;
  std::unique_ptr<block_allocator> allocator_;
  std::uint32_t pool_gen_ = 1;
  shadow_kv target_kv_;
  shadow_kv draft_kv_;
  std::map<slot_id, ngram_index> ngram_;
  struct told_text {
    std::uint64_t salt = 0;
    std::vector<token_id> tokens;
  };
  std::map<slot_id, told_text> suffix_;
  suffix_statistics statistics_{{.bytes = 1 << 20}};
  std::multiset<lesson> lessons_;
  std::deque<outputs_closed> outputs_;
  shadow_kv head_kv_;
  struct head_view {
    std::uint32_t slot_gen = 0;
    std::int32_t computed = 0;
  };
  std::map<slot_id, head_view> head_views_;  ///< how far the target's steps have told the head
  std::deque<to_allocator> allocator_in_;
  std::deque<from_allocator> allocator_out_;
  std::deque<from_intake> intake_;
  std::deque<from_supervisor> supervisor_;
  std::deque<std::shared_ptr<const step_work>> device_;
  using from_device = std::variant<step_finished, draft_finished>;
  std::deque<from_device> device_out_;
  std::array<std::deque<std::shared_ptr<const draft_work>>, kDraftMethods> drafters_;
  std::array<bool, kDraftMethods> drafter_lost_{};  ///< dead, and the scheduler still sends to it
  std::deque<draft_finished> drafter_out_;
  std::map<sequence_id, client_view> clients_;
  std::map<sequence_id, std::vector<token_id>> prompts_;
  std::uint64_t next_request_ = 1;
  std::uint64_t arrivals_ = 0;
  std::uint64_t steps_run_ = 0;
  std::uint64_t deliveries_ = 0;
  std::int32_t largest_step_ = 0;
  std::uint64_t called_off_ = 0;
  std::int64_t prompt_rows_ = 0;
  std::int64_t scored_rows_ = 0;
};

}  // namespace tandem::sim
