#pragma once
/// A made-up model whose next token is a hash of all earlier tokens, read through the block table from a shadow KV: a
/// wrong, stale or shifted block changes the answer. Used by the simulation, without threads.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/assert.hpp"
#include "core/ids.hpp"
#include "core/sampling/constraint.hpp"
#include "core/step.hpp"
#include "core/ticket.hpp"

namespace tandem::sim {

inline constexpr std::int32_t kVocabulary = 50;

inline std::uint64_t mix(std::uint64_t state, token_id token) {
  state = (state ^ static_cast<std::uint64_t>(token + 1)) * 0x9E3779B97F4A7C15ull;
  return state ^ (state >> 29);
}
inline token_id next_token(std::uint64_t state) {
  return static_cast<token_id>((state >> 17) % kVocabulary);
}

/// The first token from `wanted` on, around, that the grammar lets follow; kNoToken: none. The matcher takes it.
inline token_id follow(grammar_matcher* matcher, token_id wanted) {
  if (matcher == nullptr || matcher->has_ended()) return wanted;
  std::array<std::uint32_t, mask_words(kVocabulary)> bits{};
  matcher->fill_mask(bits);
  for (token_id i = 0; i < kVocabulary; ++i) {
    const token_id id = (wanted + i) % kVocabulary;
    if ((bits[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1U) == 0) continue;
    TANDEM_ASSERT(matcher->accept(id));
    return id;
  }
  return kNoToken;
}

/// The answer any schedule must give, up to where its grammar lets no token follow.
inline std::vector<token_id> oracle(std::vector<token_id> tokens, std::int32_t count, const grammar* rules = nullptr) {
  const auto matcher = rules != nullptr ? rules->start() : nullptr;
  std::uint64_t state = 0;
  for (const token_id token : tokens) state = mix(state, token);
  std::vector<token_id> output;
  for (std::int32_t i = 0; i < count; ++i) {
    const token_id next = follow(matcher.get(), next_token(state));
    if (next == kNoToken) break;
    output.push_back(next);
    state = mix(state, next);
  }
  return output;
}

/// Pages of one model: the hash of everything up to and including each position.
class shadow_kv {
 public:
  shadow_kv(std::int32_t blocks, std::int32_t block_size)
      : block_size_(block_size), states_(static_cast<std::size_t>(blocks * block_size), 0xDEAD) {}

  struct slot {
    std::uint32_t gen = 0;
    std::uint64_t key = 0;  ///< noise_key of the opening
    std::int32_t prompt_length = 0;
    std::int32_t top_logprobs = -1;
    std::int32_t prompt_logprobs = -1;
    std::vector<block_id> table;
    std::shared_ptr<grammar_matcher> matcher;  ///< behind the last known token; null: no grammar
  };
  using slots = std::unordered_map<slot_id, slot>;
  template <class Work>
  void take_facts(const Work& work) {
    apply(work, slots_);
    if constexpr (requires { work.copies; }) {
      for (const block_copy& copy : work.copies) copy_block(copy);
    }
  }
  /// The slots as they will be when `work` runs.
  template <class Work>
  slots foresee(const Work& work) const {
    slots later = slots_;
    apply(work, later);
    return later;
  }
  const slot& at(slot_id id) const { return slots_.at(id); }
  /// What the pages hold of everything before `position`.
  std::uint64_t before(slot_id id, std::int32_t position) { return position == 0 ? 0 : cell(id, position - 1); }

  /// The row at `position` as `from` has it, in the same block: for a head, which the target's steps keep up to date.
  void copy_row(shadow_kv& from, slot_id id, std::int32_t position) {
    const auto index = from.index_of(id, position);
    states_[index] = from.states_[index];
  }

  /// Computes the row of `token` at `position`; returns the state its answer comes from.
  std::uint64_t row(slot_id id, std::int32_t position, token_id token) {
    const std::uint64_t state = mix(before(id, position), token);
    return cell(id, position) = state;
  }

 private:
  template <class Work>
  static void apply(const Work& work, slots& to) {
    for (const slot_id closed : work.closed) to.erase(closed);
    for (const slot_opening& opening : work.opened)
      to[opening.slot] = {opening.slot_gen,     opening.noise_key,       opening.prompt_length,
                          opening.top_logprobs, opening.prompt_logprobs, {},
                          matcher_of(opening)};
    for (const table_delta& delta : work.table_deltas) {
      auto& table = to.at(delta.slot).table;
      TANDEM_ASSERT(delta.first_index <= static_cast<std::int32_t>(table.size()));
      table.resize(static_cast<std::size_t>(delta.first_index));
      table.insert(table.end(), delta.blocks.begin(), delta.blocks.end());
    }
  }
  static std::shared_ptr<grammar_matcher> matcher_of(const slot_opening& opening) {
    if (!opening.sampling->structure) return nullptr;
    std::shared_ptr<grammar_matcher> matcher = opening.sampling->structure->start();
    for (auto i = static_cast<std::size_t>(opening.prompt_length); i < opening.known->size(); ++i)
      TANDEM_ASSERT(matcher->accept((*opening.known)[i]));
    return matcher;
  }
  void copy_block(const block_copy& copy) {
    const auto cells = [this](block_id block) { return states_.begin() + block * block_size_; };
    std::copy_n(cells(copy.from), block_size_, cells(copy.to));
  }
  std::uint64_t& cell(slot_id id, std::int32_t position) { return states_[index_of(id, position)]; }
  std::size_t index_of(slot_id id, std::int32_t position) const {
    const auto& table = slots_.at(id).table;
    const auto index = static_cast<std::size_t>(position / block_size_);
    TANDEM_ASSERT(index < table.size());
    return static_cast<std::size_t>(table[index] * block_size_ + position % block_size_);
  }
  std::int32_t block_size_;
  std::vector<std::uint64_t> states_;
  slots slots_;
};

/// Of the first offer that has any.
inline std::vector<token_id> offered_drafts(const step_rows& rows, const step_work& work, std::int32_t& from) {
  for (std::size_t i = 0; i < rows.offers.size(); ++i) {
    if (rows.offers[i].ticket < 0) continue;
    const ticket& source = *work.tickets[static_cast<std::size_t>(rows.offers[i].ticket)];
    TANDEM_ASSERT(source.current() != ticket::state::open);
    if (source.current() != ticket::state::filled) continue;
    const auto& drafts = source.drafts(static_cast<std::size_t>(rows.offers[i].row)).tokens;
    if (drafts.empty()) continue;
    TANDEM_ASSERT(static_cast<std::int32_t>(drafts.size()) <= rows.draft_rows);
    for (const token_id draft : drafts) TANDEM_ASSERT(draft >= 0 && draft < kVocabulary);
    from = static_cast<std::int32_t>(i);
    return drafts;
  }
  return {};
}

/// A made-up log-probability of a token that a sequence generates at this position.
inline float made_logprob(std::uint64_t key, std::int32_t position) {
  return -static_cast<float>(mix(key, position) >> 40 & 1023) / 1024.0F;
}

/// The most probable tokens behind a state, by made-up log-probabilities; many of them are equal.
inline std::vector<std::pair<token_id, float>> made_candidates(std::uint64_t state, std::int32_t count) {
  std::vector<std::pair<token_id, float>> all;
  for (token_id token = 0; token < kVocabulary; ++token)
    all.emplace_back(token, -static_cast<float>(mix(state, token) >> 40 & 63) / 16.0F);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(static_cast<std::size_t>(std::min(count, kVocabulary)));
  return all;
}

/// One for each token of the outcome; `state`: of the last known row, `position`: of the first token.
inline void score_tokens(const shadow_kv::slot& slot, std::uint64_t state, std::int32_t position,
                         slot_outcome& outcome) {
  if (slot.top_logprobs < 0) return;
  for (const token_id token : outcome.tokens) {
    outcome.logprobs.push_back({token, made_logprob(slot.key, position), 1, made_candidates(state, slot.top_logprobs)});
    state = mix(state, token);
    ++position;
  }
}

/// A made-up score of the known token behind each row, as far as the prompt reaches: its position.
inline void score_prompt(const shadow_kv::slot& slot, const step_rows& rows, slot_outcome& outcome) {
  if (slot.prompt_logprobs < 0) return;
  const auto known = static_cast<std::int32_t>(rows.tokens.size()) + (rows.following_token == kNoToken ? 0 : 1);
  const std::int32_t end = std::min(slot.prompt_length, rows.first_position + known);
  for (std::int32_t position = rows.first_position + 1; position < end; ++position)
    outcome.prompt_logprobs.push_back({position, -static_cast<float>(position), 1, {}});
}

inline slot_outcome run_known_and_drafts(shadow_kv& kv, const step_rows& rows, const step_work& work) {
  slot_outcome outcome;
  outcome.slot = rows.slot;
  outcome.slot_gen = rows.slot_gen;
  TANDEM_ASSERT(kv.at(rows.slot).gen == rows.slot_gen);
  std::uint64_t state = 0;
  std::int32_t position = rows.first_position;
  for (const token_id token : rows.tokens) state = kv.row(rows.slot, position++, token);
  outcome.rows_done = static_cast<std::int32_t>(rows.tokens.size());
  score_prompt(kv.at(rows.slot), rows, outcome);
  if (!rows.yields_token) return outcome;
  const std::vector<token_id> drafts = offered_drafts(rows, work, outcome.offer);
  grammar_matcher* const matcher = kv.at(rows.slot).matcher.get();
  const std::size_t possible = matcher != nullptr ? acceptable_prefix(*matcher, drafts) : drafts.size();
  // The first that cannot follow is judged, too, but has no row.
  outcome.drafted = static_cast<std::int32_t>(std::min(possible + 1, drafts.size()));
  const auto say = [&] {
    const token_id next = follow(matcher, next_token(state));
    if (next == kNoToken)
      outcome.stuck = matcher->lost().value_or(stuck_reason::nothing_fits);
    else
      outcome.tokens.push_back(next);
  };
  say();
  for (std::size_t i = 0; i < possible; ++i) {
    const bool agree =
        !outcome.stuck && static_cast<std::int32_t>(i) == outcome.accepted && drafts[i] == outcome.tokens.back();
    state = kv.row(rows.slot, position++, drafts[i]);  // all rows are computed, as on a device
    if (!agree) continue;
    ++outcome.accepted;
    say();
  }
  return outcome;
}

inline slot_outcome run_rows(shadow_kv& kv, const step_rows& rows, const step_work& work) {
  slot_outcome outcome = run_known_and_drafts(kv, rows, work);
  const std::int32_t position = rows.first_position + outcome.rows_done;
  score_tokens(kv.at(rows.slot), kv.before(rows.slot, position), position, outcome);
  return outcome;
}

/// A draft model that agrees with the target except where the hash says so (one in `wrong_every`; 0 = never wrong).
inline draft_outcome run_drafts(shadow_kv& kv, const draft_work& work, std::uint64_t wrong_every) {
  draft_outcome outcome;
  outcome.step = work.step;
  for (const proposal& wish : work.proposals) {
    if (is_called_off(wish)) {
      outcome.entries.push_back({wish.slot, wish.incarnation, wish.first_position, 0});
      continue;
    }
    std::uint64_t state = 0;
    std::int32_t position = wish.first_position;
    for (const token_id token : wish.new_tokens) state = kv.row(wish.slot, position++, token);
    const std::int32_t known = position;
    for (std::int32_t i = 0; i < wish.k; ++i) {
      token_id draft = next_token(state);
      if (wrong_every != 0 && (state >> 40) % wrong_every == 0) draft = (draft + 1) % kVocabulary;
      work.drafts->fill(static_cast<std::size_t>(wish.ticket_row)).tokens.push_back(draft);
      if (i + 1 < wish.k) state = kv.row(wish.slot, position++, draft);
    }
    outcome.entries.push_back({wish.slot, wish.incarnation, known, position - known});
  }
  return outcome;
}

}  // namespace tandem::sim
