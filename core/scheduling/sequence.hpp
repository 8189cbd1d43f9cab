#pragma once
/// One live sequence, as the scheduler keeps it. Owner: scheduler; nobody else sees it.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/messages.hpp"
#include "core/speculation/acceptance_statistics.hpp"
#include "core/stop_rules.hpp"

namespace tandem {

struct choice_group;

/// Where the order of service comes from: smaller goes first, equal ranks cannot occur (arrival is unique).
struct service_rank {
  std::int32_t priority = 0;  ///< 0 for all under first come, first served
  std::uint64_t arrival = 0;
  auto operator<=>(const service_rank&) const = default;
};

/// What one draft source knows of a sequence.
struct source_view {
  bool opened = false;          ///< the source has the slot's opening
  std::int32_t known = 0;       ///< committed tokens it has taken in (draft KV computed)
  std::int32_t told = 0;        ///< tokens that were sent to it; stays when it must be told again
  std::int32_t table_sent = 0;  ///< block table entries it has
  step_id in_flight = 0;        ///< its last work item, until draft_finished
  /// Drafts of the last item whose KV is present, to be compared with what was committed.
  std::shared_ptr<ticket> drafts;
  std::int32_t ticket_row = -1;
  std::int32_t drafts_with_kv = 0;
};

struct sequence {
  enum class stage : std::uint8_t {
    waiting,   ///< holds nothing
    matching,  ///< match_prefix is under way
    running,   ///< has a slot; may have rows in the step in flight
  };

  sequence_id id;
  std::shared_ptr<const generation_request> request;
  std::shared_ptr<const std::vector<token_id>> prompt;
  std::shared_ptr<const sampling_params> sampling;
  std::shared_ptr<const stop_automaton> stops;  ///< null without stop strings
  std::uint64_t noise_key = 0;
  std::uint64_t salt = 0;
  std::int32_t max_tokens = 0;
  service_rank rank;
  choice_group* group = nullptr;  ///< null: the request has no other choice
  bool started = false;           ///< had a slot
  time_point submitted{};
  std::optional<time_point> deadline;

  stage at = stage::waiting;
  std::uint32_t incarnation = 1;  ///< +1 at preempt and drafter restart
  std::vector<token_id> known;    ///< prompt and committed output
  std::int32_t computed = 0;      ///< known tokens whose target KV is present

  slot_id slot = kNoSlot;
  std::uint32_t slot_gen = 0;
  std::int32_t length_at_start = 0;  ///< known tokens when it got its slot
  bool opened = false;               ///< the target's stream has the slot's opening
  std::int32_t table_sent = 0;       ///< block table entries the target's stream has
  std::vector<block_id> table;
  std::int32_t published = 0;        ///< leading blocks that are findable
  std::int32_t published_draft = 0;  ///< of them with a valid draft page
  std::array<source_view, kDraftMethods> sources;
  sequence_acceptance acceptance;

  bool parked = false;            ///< a lane of a beam search that gets no rows until the search goes on
  block_id copy_from = kNoBlock;  ///< the block of another lane whose contents its last one starts with

  bool in_step = false;  ///< has rows in the step in flight
  step_id last_step = 0;
  std::optional<finish> end_wanted;  ///< cancelled or timed out while in a step

  stop_automaton::cursor stop_cursor;
  std::size_t visible_bytes = 0;  ///< of output text, special tokens as the request says
  bool first_match_done = false;
  std::int32_t prompt_scored = 0;  ///< log-probabilities of prompt tokens that were told, from position 1 on
  sequence_stats stats;
  std::optional<time_point> first_row;
  std::optional<time_point> first_token;

  std::int32_t length() const { return static_cast<std::int32_t>(known.size()); }
  std::int32_t prompt_length() const { return static_cast<std::int32_t>(prompt->size()); }
  std::int32_t output_length() const { return length() - prompt_length(); }
  std::int32_t pending() const { return length() - computed; }
  bool decoding() const { return pending() == 1 && max_tokens > 0; }
  bool scores_prompt() const { return request->logprobs.prompt_top >= 0 && prompt_scored + 1 < prompt_length(); }
  source_view& source(draft_method method) { return sources[static_cast<std::size_t>(method)]; }
};

}  // namespace tandem
