#include "actors/admission_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "core/sampling/noise.hpp"

namespace tandem {
namespace {

/// The n-th of a stream of seeds: SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
std::uint64_t draw_seed(std::uint64_t base, std::uint64_t n) {
  std::uint64_t z = base + (n + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

result<void> admission_desk::open(const submit_generation& message) {
  TANDEM_ASSERT(message.request && message.client);
  TANDEM_ASSERT(!live(message.id));
  if (requests_.size() >= options_.max_live_requests)
    return fail(error_code::overloaded,
                fmt::format("The queue is full: {} requests are running or waiting, which is the most this server "
                            "takes (--max-num-queued-reqs, --max-num-seqs); try again later.",
                            requests_.size()));
  if (auto ok = check_request(*message.request, options_.bounds); !ok) return ok;
  requests_.emplace(message.id, live_request{.submission = message, .prompt = nullptr, .resolved = {}, .choices = {}});
  return {};
}

result<void> admission_desk::make_room(std::size_t tokens) const {
  if (live_tokens_ == 0 || live_tokens_ + tokens <= options_.max_live_tokens) return {};
  return fail(error_code::overloaded,
              fmt::format("The queue is full: the prompts of all live requests have {} tokens, this one has {}, and "
                          "at most {} are taken (--max-num-queued-tokens); try again later.",
                          live_tokens_, tokens, options_.max_live_tokens));
}

result<void> admission_desk::take_prompt(request_id id, std::vector<token_id> prompt,
                                         std::vector<std::vector<token_id>> bad_words) {
  TANDEM_ASSERT(pending(id));
  auto& request = requests_.at(id);
  TANDEM_ASSERT(!request.prompt);
  const auto& wanted = *request.submission.request;
  const std::size_t tokens = prompt.size() * static_cast<std::size_t>(wanted.sequences());
  auto refused = [&](error why) {
    forget(id);
    return tl::unexpected(std::move(why));
  };
  auto resolved = resolve_request(wanted, prompt, options_.bounds, draw_seed(options_.seed, drawn_seeds_),
                                  std::move(bad_words));
  if (!resolved) return refused(std::move(resolved.error()));
  if (auto room = make_room(tokens); !room) return refused(std::move(room.error()));
  if (!wanted.sampling.seed) ++drawn_seeds_;
  request.tokens = tokens;
  live_tokens_ += tokens;
  request.prompt = std::make_shared<const std::vector<token_id>>(std::move(prompt));
  request.resolved = std::move(*resolved);
  return {};
}

admission_desk::admission admission_desk::admit(request_id id, std::shared_ptr<const grammar> structure) {
  TANDEM_ASSERT(pending(id));
  auto& request = requests_.at(id);
  TANDEM_ASSERT(request.prompt);
  const auto& submission = request.submission;
  const auto& wanted = submission.request;
  const auto prompt = std::exchange(request.prompt, nullptr);
  const resolved_request resolved = std::exchange(request.resolved, {});
  resolved.sampling->structure = std::move(structure);
  request.choices.resize(static_cast<std::size_t>(wanted->sequences()));
  admission out;
  for (std::int32_t choice = 0; choice < wanted->sequences(); ++choice) {
    const sequence_id name{id, choice};
    const bool shown = choice < wanted->n;
    request.choices[static_cast<std::size_t>(choice)].ended = !shown;
    if (shown) out.streams.push_back({name, wanted, submission.client, prompt, submission.submitted});
    admit_sequence admit;
    admit.id = name;
    admit.request = wanted;
    admit.prompt = prompt;
    admit.sampling = resolved.sampling;
    admit.noise_key = noise_key(resolved.seed, choice);
    admit.max_tokens = resolved.max_tokens;
    admit.arrival = ++arrivals_;
    admit.submitted = submission.submitted;
    admit.deadline = request.deadline();
    out.sequences.push_back(std::move(admit));
  }
  return out;
}

std::optional<time_point> admission_desk::live_request::deadline() const {
  const auto& timeout = submission.request->timeout;
  if (!timeout) return std::nullopt;
  return submission.submitted + *timeout;
}

std::vector<request_id> admission_desk::late(time_point now) const {
  std::vector<request_id> ids;
  for (const auto& [id, request] : requests_) {
    const auto deadline = request.deadline();
    if (request.pending() && deadline && *deadline <= now) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool admission_desk::has_deadlines() const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const auto& each) { return each.second.pending() && each.second.deadline(); });
}

std::shared_ptr<outlet> admission_desk::refuse(request_id id) {
  TANDEM_ASSERT(pending(id));
  auto to = client(id);
  forget(id);
  return to;
}

bool admission_desk::pending(request_id id) const {
  const auto found = requests_.find(id);
  return found != requests_.end() && found->second.pending();
}

std::shared_ptr<outlet> admission_desk::client(request_id id) const {
  return requests_.at(id).submission.client;
}

std::vector<request_id> admission_desk::live_requests() const {
  std::vector<request_id> ids;
  ids.reserve(requests_.size());
  for (const auto& [id, request] : requests_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void admission_desk::retire(sequence_id id) {
  const auto found = requests_.find(id.request);
  TANDEM_ASSERT(found != requests_.end());
  auto& choice = found->second.choices.at(static_cast<std::size_t>(id.choice));
  TANDEM_ASSERT(!choice.retired);
  choice.retired = true;
  forget_when_done(id.request);
}

bool admission_desk::end(sequence_id id) {
  const auto found = requests_.find(id.request);
  if (found == requests_.end()) return false;
  auto& choice = found->second.choices.at(static_cast<std::size_t>(id.choice));
  if (std::exchange(choice.ended, true)) return false;
  forget_when_done(id.request);
  return true;
}

std::vector<sequence_id> admission_desk::unended(request_id id) const {
  std::vector<sequence_id> ids;
  const auto& choices = requests_.at(id).choices;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i].ended) ids.push_back({id, static_cast<std::int32_t>(i)});
  }
  return ids;
}

void admission_desk::forget_when_done(request_id id) {
  const auto& choices = requests_.at(id).choices;
  const bool done =
      std::all_of(choices.begin(), choices.end(), [](const auto& choice) { return choice.retired && choice.ended; });
  if (done) forget(id);
}

void admission_desk::forget(request_id id) {
  const auto found = requests_.find(id);
  TANDEM_ASSERT(found != requests_.end());
  TANDEM_ASSERT(live_tokens_ >= found->second.tokens);
  live_tokens_ -= found->second.tokens;
  requests_.erase(found);
  if (on_forgotten) on_forgotten(1);
}

}  // namespace tandem
