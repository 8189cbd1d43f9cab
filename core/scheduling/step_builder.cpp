#include "core/scheduling/step_builder.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/speculation/source_kind.hpp"
#include "core/ticket.hpp"

namespace tandem {
namespace {

slot_opening opening_of(const sequence& seq, const scheduler_options& options) {
  slot_opening opening;
  opening.slot = seq.slot;
  opening.slot_gen = seq.slot_gen;
  opening.sampling = seq.sampling;
  opening.noise_key = seq.noise_key;
  opening.rule = options.rule;
  opening.salt = seq.salt;
  opening.prompt_length = seq.prompt_length();
  opening.known = seq.output_length() == 0 ? seq.prompt : std::make_shared<const std::vector<token_id>>(seq.known);
  const bool compared = seq.request->best_of > seq.request->n;
  const std::int32_t for_itself = seq.request->beams ? 2 * seq.request->n : compared ? 0 : -1;
  opening.top_logprobs = std::max(seq.request->logprobs.top, for_itself);
  opening.prompt_logprobs = seq.scores_prompt() ? seq.request->logprobs.prompt_top : -1;
  return opening;
}

std::vector<token_id> slice(const std::vector<token_id>& tokens, std::int32_t from, std::int32_t count) {
  return {tokens.begin() + from, tokens.begin() + from + count};
}

/// Opening and table entries one stream has not seen yet.
template <class Work>
void tell_stream(Work& work, const sequence& seq, const scheduler_options& options, bool& opened, std::int32_t& sent) {
  if (!opened) {
    work.opened.push_back(opening_of(seq, options));
    opened = true;
    sent = 0;
  }
  const auto held = static_cast<std::int32_t>(seq.table.size());
  if (sent == held) return;
  work.table_deltas.push_back({seq.slot, sent, {seq.table.begin() + sent, seq.table.end()}});
  sent = held;
}

step_rows rows_of(const planned_rows& part) {
  const sequence& seq = *part.seq;
  step_rows rows;
  rows.slot = seq.slot;
  rows.slot_gen = seq.slot_gen;
  rows.first_position = seq.computed;
  rows.tokens = slice(seq.known, seq.computed, part.rows);
  const bool reaches_end = part.rows == seq.pending();
  rows.yields_token = reaches_end && seq.max_tokens > 0;
  if (!reaches_end) rows.following_token = seq.known[static_cast<std::size_t>(seq.computed + part.rows)];
  rows.draft_rows = part.drafts();
  return rows;
}

/// A draft model with fewer rows than the target is told another id for those it lacks: it drafts on, only less well.
void make_readable(std::vector<token_id>& tokens, draft_method method, const scheduler_options& options) {
  if (method != draft_method::draft_model || options.draft_vocabulary == 0) return;
  constexpr token_id kStandIn = 0;
  std::replace_if(
      tokens.begin(), tokens.end(), [&](token_id token) { return token >= options.draft_vocabulary; }, kStandIn);
}

proposal proposal_of(const sequence& seq, const planned_drafts& part, const source_view& source,
                     const scheduler_options& options) {
  TANDEM_ASSERT(part.drafts == 0 || source.known + part.catch_up == seq.length());
  proposal wish;
  wish.slot = seq.slot;
  wish.incarnation = seq.incarnation;
  wish.first_position = source.known;
  wish.new_tokens = slice(seq.known, source.known, part.catch_up);
  make_readable(wish.new_tokens, part.method, options);
  wish.unlearned = std::max(0, source.known + part.catch_up - std::max(seq.length_at_start, source.told));
  wish.k = part.drafts;
  wish.most = part.most;
  return wish;
}

/// The second source waits for what the first one has.
void wait_for_first(proposal& wish, const step_rows& rows, const step_work& target) {
  const draft_offer& first = rows.offers.front();
  if (first.ticket < 0 || wish.k == 0) return;
  wish.unless = target.tickets[static_cast<std::size_t>(first.ticket)];
  wish.unless_row = first.row;
}

/// Writes the work item of one source, and the ticket rows of those that draft. Owner: build_step.
class source_work {
 public:
  source_work(draft_method method, step_work& target, const scheduler_options& options)
      : method_(method), target_(target), options_(options), index_(static_cast<std::int32_t>(target.tickets.size())) {
    work_->step = target.step;
  }

  void add(const planned_rows& rows, step_rows& told) {
    const bool is_second = rows.sources.front().method != method_;
    const planned_drafts& part = rows.sources[is_second ? 1 : 0];
    sequence& seq = *rows.seq;
    source_view& source = seq.source(method_);
    tell_stream(*work_, seq, options_, source.opened, source.table_sent);
    proposal wish = proposal_of(seq, part, source, options_);
    source.told = std::max(source.told, source.known + part.catch_up);
    if (is_second) wait_for_first(wish, told, target_);
    if (wish.k > 0) {
      wish.ticket_row = ticket_rows_++;
      told.offers[is_second ? 1 : 0] = {index_, wish.ticket_row};
    }
    source.in_flight = target_.step;
    source.ticket_row = wish.ticket_row;
    work_->proposals.push_back(std::move(wish));
  }

  std::shared_ptr<const draft_work> finish(std::vector<slot_id> closed, const std::vector<planned_rows>& plan) {
    work_->closed = std::move(closed);
    work_->drafts = std::make_shared<ticket>(static_cast<std::size_t>(ticket_rows_));
    for (const planned_rows& part : plan) {
      if (part.part_of(method_) != nullptr) part.seq->source(method_).drafts = work_->drafts;
    }
    if (ticket_rows_ > 0) target_.tickets.push_back(work_->drafts);
    return work_;
  }

 private:
  std::shared_ptr<draft_work> work_ = std::make_shared<draft_work>();
  draft_method method_;
  step_work& target_;
  const scheduler_options& options_;
  std::int32_t index_;  // of its ticket
  std::int32_t ticket_rows_ = 0;
};

/// Sources that cost no forwards come first: others wait for their tickets.
std::vector<draft_method> in_order(std::vector<draft_method> drafters) {
  std::stable_partition(drafters.begin(), drafters.end(), [](draft_method method) { return !computes(method); });
  return drafters;
}

}  // namespace

const planned_drafts* planned_rows::part_of(draft_method method) const {
  for (const planned_drafts& part : sources) {
    if (part.method == method && method != draft_method::none) return &part;
  }
  return nullptr;
}

built_step build_step(step_id step, const std::vector<planned_rows>& plan, const scheduler_options& options,
                      closed_slots& closed) {
  auto work = std::make_shared<step_work>();
  work->step = step;
  work->closed = std::exchange(closed.target, {});
  for (const planned_rows& part : plan) {
    tell_stream(*work, *part.seq, options, part.seq->opened, part.seq->table_sent);
    if (const block_id from = std::exchange(part.seq->copy_from, kNoBlock); from != kNoBlock)
      work->copies.push_back(
          {from, part.seq->table[static_cast<std::size_t>(part.seq->computed / options.block_size)]});
    work->rows.push_back(rows_of(part));
  }
  built_step built;
  for (const draft_method method : in_order(options.drafters)) {
    source_work source(method, *work, options);
    bool takes_part = false;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      if (plan[i].part_of(method) == nullptr) continue;
      source.add(plan[i], work->rows[i]);
      takes_part = true;
    }
    if (!takes_part) continue;
    built.proposals.push_back(source.finish(std::exchange(closed.sources[index_of(method)], {}), plan));
    built.methods.push_back(method);
  }
  built.work = std::move(work);
  return built;
}

}  // namespace tandem
