// How sequences come to the scheduler, and what ends them from outside: their client and the clock.
#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/commit.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {
namespace {

/// FNV-1a; 0 is kept for "no salt".
std::uint64_t hash_salt(const std::string& salt) {
  if (salt.empty()) return 0;
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : salt) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash | 1;
}

}  // namespace

void scheduler::impl::admit(const admit_sequence& message, time_point) {
  TANDEM_ASSERT(!message.prompt->empty());
  TANDEM_ASSERT(static_cast<std::int32_t>(message.prompt->size()) + std::max(message.max_tokens, 0) <=
                options.max_model_len);
  auto seq = std::make_unique<sequence>();
  seq->id = message.id;
  seq->request = message.request;
  seq->prompt = message.prompt;
  seq->sampling = message.sampling;
  seq->noise_key = message.noise_key;
  seq->salt = hash_salt(message.request->cache_salt);
  seq->max_tokens = message.max_tokens;
  seq->rank = {options.priority_policy ? message.request->priority : 0, message.arrival};
  seq->submitted = message.submitted;
  seq->deadline = message.deadline;
  seq->known = *message.prompt;
  seq->known.insert(seq->known.end(), message.resumed_output.begin(), message.resumed_output.end());
  seq->stats.prompt_tokens = seq->prompt_length();
  if (!message.request->stopping.stop.empty()) {
    seq->stops = std::make_shared<const stop_automaton>(message.request->stopping.stop);
  }
  replay_output(*seq, options);
  sequence& placed = *seq;
  const bool is_new = sequences.emplace(message.id, std::move(seq)).second;
  TANDEM_ASSERT(is_new);
  waiting.emplace(placed.rank, &placed);
  join_group(placed);
  if (message.request->beams) join_beams(placed, message);
}

void scheduler::impl::cancel(request_id request) {
  std::vector<sequence_id> choices;
  for (auto at = sequences.lower_bound({request, 0}); at != sequences.end() && at->first.request == request; ++at)
    choices.push_back(at->first);
  for (const sequence_id id : choices) {
    if (sequence* seq = find(id)) end_soon(*seq, finish_reason::cancelled);  // lanes of a search end together
  }
}

void scheduler::impl::expire(time_point now) {
  std::vector<sequence_id> late;
  for (const auto& [id, seq] : sequences) {
    if (seq->deadline && *seq->deadline <= now) late.push_back(id);
  }
  for (const sequence_id id : late) {
    if (sequence* seq = find(id)) end_soon(*seq, finish_reason::timeout);
  }
}

}  // namespace tandem
