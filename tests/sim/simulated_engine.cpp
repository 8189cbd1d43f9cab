#include "tests/sim/simulated_engine.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "tests/sim/any_choice_policy.hpp"

namespace tandem::sim {
namespace {

constexpr std::uint64_t kMaxDeliveries = 2'000'000;
constexpr std::uint64_t kStepNs = 1'000'000;  // what a step takes; with 20 rows twice as much
constexpr std::uint64_t kRowNs = 50'000;

scheduler_options scheduler_of(const engine_options& options) {
  scheduler_options to;
  to.max_num_seqs = options.max_num_seqs;
  to.max_num_batched_tokens = options.max_num_batched_tokens;
  to.max_model_len = options.max_model_len;
  to.block_size = options.block_size;
  to.num_kv_blocks = options.num_blocks;
  to.chunked_prefill = options.chunked_prefill;
  to.prefix_caching = options.prefix_caching;
  to.priority_policy = options.priority_policy;
  to.draft_context_limit = options.draft_context_limit;
  to.draft_vocabulary = options.draft_vocabulary;
  to.drafters = {draft_method::ngram, draft_method::suffix, draft_method::draft_model, draft_method::eagle};
  to.vocabulary_size = kVocabulary;
  to.end_tokens = options.end_tokens;
  to.token_bytes = options.token_bytes;
  return to;
}

/// A slot's noise key names its sequence.
std::uint64_t key_of(sequence_id id) {
  return id.request.value * limits::kMaxChoices + static_cast<std::uint64_t>(id.choice);
}
sequence_id sequence_of(std::uint64_t key) {
  return {{key / limits::kMaxChoices}, static_cast<std::int32_t>(key % limits::kMaxChoices)};
}

/// What of a proposal's tokens a source that has `known` of them has not seen.
std::span<const token_id> unseen(const proposal& wish, std::int32_t known) {
  const auto skip = static_cast<std::size_t>(known - wish.first_position);
  return std::span(wish.new_tokens).subspan(std::min(skip, wish.new_tokens.size()));
}

template <class Queue>
auto pop(Queue& queue) {
  auto front = std::move(queue.front());
  queue.pop_front();
  return front;
}

}  // namespace

simulated_engine::simulated_engine(engine_options options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(seed),
      target_kv_(options_.num_blocks, options_.block_size),
      draft_kv_(options_.num_blocks, options_.block_size),
      head_kv_(options_.num_blocks, options_.block_size) {
  speculation_settings speculation{options_.method, options_.k, std::nullopt};
  speculation.adaptive = options_.adaptive;
  speculation.any_method = options_.adaptive;
  std::unique_ptr<speculation_policy> policy =
      options_.any_choice ? std::make_unique<any_choice_policy>(options_.k, seed) : make_policy(speculation);
  scheduler_ = std::make_unique<scheduler>(scheduler_of(options_), std::move(policy));
  allocator_ = std::make_unique<block_allocator>(
      block_allocator::options{options_.num_blocks, options_.block_size, options_.prefix_caching});
}

sequence_id simulated_engine::submit(const job& wanted) {
  auto request = std::make_shared<generation_request>();
  request->stopping = wanted.stopping;
  request->priority = wanted.priority;
  request->speculation = wanted.speculation;
  request->cache_salt = wanted.cache_salt;
  request->logprobs.prompt_top = wanted.prompt_logprobs;
  request->n = wanted.n;
  request->best_of = wanted.best_of;
  request->logprobs.top = wanted.logprobs;
  request->beams = wanted.beams;
  auto sampling = std::make_shared<sampling_params>();
  sampling->temperature = 0;
  sampling->min_tokens = wanted.min_tokens;
  sampling->structure = wanted.structure;
  admit_sequence admit;
  admit.request = std::move(request);
  admit.prompt = std::make_shared<const std::vector<token_id>>(wanted.prompt);
  admit.sampling = std::move(sampling);
  admit.max_tokens = wanted.max_tokens;
  admit.submitted = now_;
  const request_id id{next_request_++};
  for (std::int32_t choice = 0; choice < admit.request->sequences(); ++choice) {
    admit.id = {id, choice};
    admit.noise_key = key_of(admit.id);
    admit.arrival = ++arrivals_;
    clients_[admit.id].shown = choice < wanted.n;
    clients_[admit.id].searches = wanted.beams.has_value();
    clients_[admit.id].follows_grammar = wanted.structure != nullptr;
    prompts_[admit.id] = wanted.prompt;
    intake_.push_back(admit);
  }
  return {id, 0};
}

void simulated_engine::send(scheduler_commands commands) {
  // A lease that a dead allocator's successor answers looks like an empty pool, until the scheduler hears of the death.
  const auto restarts = [](const from_supervisor& message) {
    return std::holds_alternative<allocator_restarted>(message);
  };
  if (std::none_of(supervisor_.begin(), supervisor_.end(), restarts)) scheduler_->check();
  for (std::size_t i = 0; i < commands.proposals.size(); ++i) {
    const auto method = static_cast<std::size_t>(commands.methods[i]);
    if (!drafter_lost_[method]) drafters_[method].push_back(commands.proposals[i].work);
  }
  if (commands.step) device_.push_back(commands.step->work);
  if (commands.committed) record(*commands.committed);
  if (commands.outputs && !drafter_lost_[index_of(draft_method::suffix)]) outputs_.push_back(*commands.outputs);
  if (commands.adopt) allocator_in_.emplace_back(std::move(*commands.adopt));
  if (commands.share) allocator_in_.emplace_back(std::move(*commands.share));
  if (commands.publish) allocator_in_.emplace_back(std::move(*commands.publish));
  if (commands.release) allocator_in_.emplace_back(std::move(*commands.release));
  for (auto& match : commands.matches) allocator_in_.emplace_back(std::move(match));
  if (commands.lease) allocator_in_.emplace_back(*commands.lease);
  for (const request_retired& retired : commands.retired) {
    TANDEM_ASSERT(!clients_.at(retired.id).retired);
    clients_.at(retired.id).retired = true;
  }
}

void simulated_engine::record(const tokens_committed& message) {
  for (const auto& entry : message.entries) {
    client_view& client = clients_.at(entry.id);
    TANDEM_ASSERT(client.shown);
    TANDEM_ASSERT(!client.end);  // nothing after the terminal event
    TANDEM_ASSERT(entry.first_index == static_cast<std::int32_t>(client.tokens.size()));
    TANDEM_ASSERT(entry.accepted.size() == entry.tokens.size());
    client.tokens.insert(client.tokens.end(), entry.tokens.begin(), entry.tokens.end());
    client.accepted.insert(client.accepted.end(), entry.accepted.begin(), entry.accepted.end());
    client.logprobs.insert(client.logprobs.end(), entry.logprobs.begin(), entry.logprobs.end());
    client.prompt_scores.insert(client.prompt_scores.end(), entry.prompt_logprobs.begin(), entry.prompt_logprobs.end());
    client.end = entry.end;
    if (entry.end) client.stats = entry.stats;
  }
}

void simulated_engine::run_allocator() {
  const to_allocator message = pop(allocator_in_);
  if (const auto* match = std::get_if<match_prefix>(&message)) allocator_out_.emplace_back(allocator_->match(*match));
  if (const auto* lease = std::get_if<lease_blocks>(&message)) {
    blocks_leased leased = allocator_->lease(*lease);
    check_unused(leased.blocks);
    allocator_out_.emplace_back(std::move(leased));
  }
  if (const auto* publish = std::get_if<publish_blocks>(&message)) allocator_->publish(*publish);
  if (const auto* share = std::get_if<share_blocks>(&message)) allocator_->share(*share);
  if (const auto* release = std::get_if<release_blocks>(&message)) allocator_->release(*release);
  if (const auto* adopt = std::get_if<adopt_blocks>(&message)) allocator_->adopt(*adopt);
  allocator_->check();
}

/// With nothing between them under way, scheduler and allocator agree on what is held, and the scheduler counts on no
/// block that somebody holds.
void simulated_engine::check_holds() const {
  if (!allocator_in_.empty() || !allocator_out_.empty() || !supervisor_.empty()) return;
  const scheduler::status now = scheduler_->current();
  const block_allocator::counts pool = allocator_->count();
  TANDEM_ASSERT(pool.held == now.blocks_used + now.blocks_leased);
  TANDEM_ASSERT(now.blocks_obtainable - now.blocks_leased <= pool.free + pool.cached);
}

/// A block that is handed out anew has no work of its last owner before it, on either stream.
void simulated_engine::check_unused(const std::vector<block_id>& blocks) const {
  const auto check = [&](const std::vector<block_id>& table) {
    for (const block_id block : blocks) TANDEM_ASSERT(std::find(table.begin(), table.end(), block) == table.end());
  };
  for (const auto& [method, pages] :
       {std::pair{draft_method::draft_model, &draft_kv_}, {draft_method::eagle, &head_kv_}})
    for (const auto& work : drafters_[index_of(method)]) {
      const auto slots = pages->foresee(*work);
      for (const proposal& wish : work->proposals) check(slots.at(wish.slot).table);
    }
  for (const auto& work : device_) {
    const auto slots = target_kv_.foresee(*work);
    for (const step_rows& part : work->rows) check(slots.at(part.slot).table);
  }
}

/// What the scheduler counts as computed is in the pages, and is of these very tokens.
void simulated_engine::check_pages(shadow_kv& pages, slot_id slot, std::int32_t position) {
  const sequence_id id = sequence_of(pages.at(slot).key);
  const std::vector<token_id>& prompt = prompts_.at(id);
  if (clients_.at(id).searches) position = std::min(position, static_cast<std::int32_t>(prompt.size()));
  const auto in_prompt = static_cast<std::size_t>(std::min(position, static_cast<std::int32_t>(prompt.size())));
  std::uint64_t state = 0;
  for (const token_id token : std::span(prompt).first(in_prompt)) state = mix(state, token);
  const client_view& client = clients_.at(id);
  for (auto i = in_prompt; i < static_cast<std::size_t>(position); ++i)
    state = mix(state, client.follows_grammar ? client.tokens.at(i - in_prompt) : next_token(state));
  TANDEM_ASSERT(pages.before(slot, position) == state);
}

bool simulated_engine::device_can_run() const {
  if (device_.empty()) return false;
  const auto& tickets = device_.front()->tickets;
  return std::none_of(tickets.begin(), tickets.end(),
                      [](const auto& t) { return t->current() == ticket::state::open; });
}

/// One that drafts only where another does not waits for the other's ticket.
bool simulated_engine::drafter_can_run(draft_method method) const {
  const auto& mailbox = drafters_[index_of(method)];
  if (mailbox.empty()) return false;
  const auto tickets = awaited_by(mailbox.front()->proposals);
  return std::none_of(tickets.begin(), tickets.end(),
                      [](const auto& t) { return t->current() == ticket::state::open; });
}

void simulated_engine::run_device() {
  const std::shared_ptr<const step_work> work = pop(device_);
  ++steps_run_;
  target_kv_.take_facts(*work);
  auto outcome = std::make_shared<step_outcome>();
  outcome->step = work->step;
  if (std::bernoulli_distribution(options_.fail_steps)(random_)) {
    outcome->ok = false;
    outcome->error_message = "the simulated device failed";
    device_out_.emplace_back(step_finished{std::move(outcome)});
    return;
  }
  std::int32_t rows = 0;
  for (const step_rows& part : work->rows) {
    check_pages(target_kv_, part.slot, part.first_position);
    rows += static_cast<std::int32_t>(part.tokens.size()) + part.draft_rows;
    outcome->slots.push_back(run_rows(target_kv_, part, *work));
    count_prompt_rows(part);
    scored_rows_ += static_cast<std::int64_t>(outcome->slots.back().prompt_logprobs.size());
    tell_head(part, outcome->slots.back());
  }
  largest_step_ = std::max(largest_step_, rows);
  outcome->device_ns = kStepNs + kRowNs * static_cast<std::uint64_t>(rows);
  device_out_.emplace_back(step_finished{std::move(outcome)});
}

void simulated_engine::count_prompt_rows(const step_rows& part) {
  const auto length = static_cast<std::int32_t>(prompts_.at(sequence_of(target_kv_.at(part.slot).key)).size());
  const auto end = part.first_position + static_cast<std::int32_t>(part.tokens.size());
  prompt_rows_ += std::max(0, std::min(end, length) - part.first_position);
}

void simulated_engine::tell_head(const step_rows& part, const slot_outcome& outcome) {
  const std::int32_t end = part.first_position + outcome.rows_done + outcome.accepted;
  for (std::int32_t position = part.first_position; position < end; ++position)
    head_kv_.copy_row(target_kv_, part.slot, position);
  head_views_[part.slot] = {part.slot_gen, end};
}

/// As the device's head: it drafts behind the row that the target computed last, or not at all.
draft_outcome simulated_engine::propose_head(const draft_work& work) {
  head_kv_.take_facts(work);
  draft_work possible{.step = work.step, .drafts = work.drafts};
  draft_outcome outcome{.step = work.step};
  for (const proposal& wish : work.proposals) {
    TANDEM_ASSERT(wish.new_tokens.size() == 1);
    const head_view& view = head_views_[wish.slot];
    if (is_called_off(wish)) ++called_off_;
    outcome.entries.push_back({wish.slot, wish.incarnation, wish.first_position + 1, 0});
    if (view.slot_gen != head_kv_.at(wish.slot).gen || view.computed != wish.first_position) continue;
    check_pages(head_kv_, wish.slot, wish.first_position);
    possible.proposals.push_back(wish);
  }
  run_drafts(head_kv_, possible, options_.draft_wrong_every);
  return outcome;
}

void simulated_engine::propose_ngram(const draft_work& work) {
  auto outcome = std::make_shared<draft_outcome>();
  outcome->step = work.step;
  for (const slot_id slot : work.closed) ngram_.erase(slot);
  for (const slot_opening& opening : work.opened) ngram_.erase(opening.slot);
  for (const proposal& wish : work.proposals) {
    // As the real source: told from the start it starts over, and a gap is answered with what is known.
    if (wish.first_position == 0) ngram_.erase(wish.slot);
    ngram_index& index = ngram_.try_emplace(wish.slot, 1, 3).first->second;
    if (wish.first_position > index.size()) {
      outcome->entries.push_back({wish.slot, wish.incarnation, index.size(), 0});
      continue;
    }
    index.append(unseen(wish, index.size()));
    if (wish.k > 0) {
      const auto found = index.find();
      const evidence_class evidence = evidence_of_match(found.length);
      const auto most = std::min<std::int32_t>(wish.k, wish.most[evidence]);
      work.drafts->fill(static_cast<std::size_t>(wish.ticket_row)) = {index.continue_from(found, most), {}, evidence};
    }
    outcome->entries.push_back({wish.slot, wish.incarnation, index.size(), 0});
  }
  drafter_out_.push_back({draft_method::ngram, std::move(outcome)});
  work.drafts->seal();
}

void simulated_engine::learn(std::uint64_t salt, std::span<const token_id> text, std::int32_t unlearned) {
  TANDEM_ASSERT(unlearned >= 0 && static_cast<std::size_t>(unlearned) <= text.size());
  for (std::size_t i = text.size() - static_cast<std::size_t>(unlearned); i < text.size(); ++i) {
    const auto before = text.first(i);
    const auto context = before.last(std::min<std::size_t>(i, limits::kMaxSuffixContext));
    lessons_.emplace(salt, std::vector<token_id>(context.begin(), context.end()), text[i]);
    statistics_.learn(salt, before, text[i]);
  }
}

void simulated_engine::propose_suffix(const draft_work& work) {
  auto outcome = std::make_shared<draft_outcome>();
  outcome->step = work.step;
  for (const slot_id slot : work.closed) suffix_.erase(slot);
  for (const slot_opening& opening : work.opened) suffix_[opening.slot] = {opening.salt, {}};
  for (const proposal& wish : work.proposals) {
    told_text& text = suffix_[wish.slot];
    if (wish.first_position == 0) text.tokens.clear();
    const auto known = static_cast<std::int32_t>(text.tokens.size());
    outcome->entries.push_back({wish.slot, wish.incarnation, known, 0});
    if (wish.first_position > known) continue;
    const auto fresh = unseen(wish, known);
    text.tokens.insert(text.tokens.end(), fresh.begin(), fresh.end());
    outcome->entries.back().known_rows = static_cast<std::int32_t>(text.tokens.size());
    learn(text.salt, text.tokens, wish.unlearned);
    if (wish.k == 0) continue;
    const auto found = statistics_.propose(text.salt, text.tokens, wish.k);
    const evidence_class evidence = evidence_of_probability(found.first_probability);
    auto& row = work.drafts->fill(static_cast<std::size_t>(wish.ticket_row));
    row = {found.tokens, {}, evidence};
    row.tokens.resize(std::min(row.tokens.size(), static_cast<std::size_t>(wish.most[evidence])));
  }
  drafter_out_.push_back({draft_method::suffix, std::move(outcome)});
  work.drafts->seal();
}

draft_outcome simulated_engine::propose_model(const draft_work& work) {
  draft_kv_.take_facts(work);
  for (const proposal& wish : work.proposals) {
    if (is_called_off(wish)) ++called_off_;
    if (options_.draft_vocabulary == 0) check_pages(draft_kv_, wish.slot, wish.first_position);
    for (const token_id token : wish.new_tokens)
      TANDEM_ASSERT(options_.draft_vocabulary == 0 || token < options_.draft_vocabulary);
  }
  return run_drafts(draft_kv_, work, options_.draft_wrong_every);
}

void simulated_engine::run_drafter(draft_method method) {
  const auto work = pop(drafters_[static_cast<std::size_t>(method)]);
  if (method == draft_method::ngram) {
    propose_ngram(*work);
    return;
  }
  if (method == draft_method::suffix) {
    propose_suffix(*work);
    return;
  }
  auto outcome =
      std::make_shared<draft_outcome>(method == draft_method::eagle ? propose_head(*work) : propose_model(*work));
  outcome->device_ns = kRowNs * (1 + work->proposals.size());
  work->drafts->seal();
  const draft_finished done{method, std::move(outcome)};
  if (options_.independent_streams) {
    drafter_out_.push_back(done);
  } else {
    device_out_.emplace_back(done);
  }
}

void simulated_engine::kill_drafter(draft_method method, bool comes_back) {
  auto& mailbox = drafters_[static_cast<std::size_t>(method)];
  if (method == draft_method::ngram) ngram_.clear();
  if (method == draft_method::suffix) {
    suffix_.clear();
    outputs_.clear();
    statistics_ = suffix_statistics({.bytes = 1 << 20});
  }
  mailbox.clear();
  drafter_lost_[static_cast<std::size_t>(method)] = true;
  supervisor_.push_back(drafter_changed{method, false});
  if (comes_back) supervisor_.push_back(drafter_changed{method, true});
}

/// The scheduler learns of the new drafter and sends to it from then on.
void simulated_engine::deliver_supervision() {
  const from_supervisor message = pop(supervisor_);
  if (const auto* changed = std::get_if<drafter_changed>(&message); changed != nullptr && changed->alive) {
    drafter_lost_[static_cast<std::size_t>(changed->method)] = false;
  }
  std::visit([this](const auto& m) { to_scheduler(m); }, message);
}

void simulated_engine::kill_allocator() {
  allocator_in_.clear();
  ++pool_gen_;
  allocator_ = std::make_unique<block_allocator>(
      block_allocator::options{options_.num_blocks, options_.block_size, options_.prefix_caching}, pool_gen_);
  supervisor_.push_back(allocator_restarted{pool_gen_});
}

void simulated_engine::advance(std::chrono::milliseconds by) {
  now_ += by;
  send(scheduler_->on_tick(now_));
}

std::vector<std::function<void()>> simulated_engine::ready_deliveries() {
  std::vector<std::function<void()>> ready;
  const auto deliver = [&](auto& queue) {
    if (queue.empty()) return;
    ready.emplace_back([this, &queue] { to_scheduler(pop(queue)); });
  };
  const auto deliver_variant = [&](auto& queue) {
    if (queue.empty()) return;
    ready.emplace_back([this, &queue] { std::visit([this](const auto& m) { to_scheduler(m); }, pop(queue)); });
  };
  deliver_variant(intake_);
  deliver_variant(allocator_out_);
  if (!supervisor_.empty()) ready.emplace_back([this] { deliver_supervision(); });
  deliver_variant(device_out_);
  deliver(drafter_out_);
  if (!allocator_in_.empty()) ready.emplace_back([this] { run_allocator(); });
  if (!outputs_.empty())
    ready.emplace_back([this] {
      for (const outputs_closed::entry& each : pop(outputs_).entries) learn(each.salt, each.tokens, each.unlearned);
    });
  if (device_can_run()) ready.emplace_back([this] { run_device(); });
  for (const draft_method method :
       {draft_method::ngram, draft_method::suffix, draft_method::draft_model, draft_method::eagle}) {
    if (!drafter_can_run(method)) continue;
    ready.emplace_back([this, method] { run_drafter(method); });
  }
  if (!device_.empty() && !device_can_run() && std::bernoulli_distribution(options_.expire_tickets)(random_)) {
    ready.emplace_back([this] {
      for (const auto& waiting : device_.front()->tickets) waiting->expire();
    });
  }
  return ready;
}

bool simulated_engine::deliver_one() {
  const auto ready = ready_deliveries();
  if (ready.empty()) return false;
  ready[std::uniform_int_distribution<std::size_t>(0, ready.size() - 1)(random_)]();
  now_ += std::chrono::microseconds(10);
  ++deliveries_;
  check_holds();
  return true;
}

void simulated_engine::run_until_idle() {
  const std::uint64_t bound = deliveries_ + kMaxDeliveries;
  while (deliver_one()) TANDEM_ASSERT(deliveries_ < bound);
}

}  // namespace tandem::sim
