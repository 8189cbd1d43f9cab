#include "tests/support/lab/actor_lab.hpp"

#include <algorithm>
#include <utility>

#include "config/limits.hpp"
#include "core/assert.hpp"

namespace tandem::lab {
namespace {

constexpr int kMaxMoves = 2'000'000;

std::shared_ptr<pipeline_parts> make_parts(const lab_options& options, std::shared_ptr<gpu::device> device) {
  auto parts = std::make_shared<pipeline_parts>();
  TANDEM_ASSERT(check_options(options.engine, device->info()));
  parts->options = options.engine;
  parts->device = std::move(device);
  parts->tokenizer = make_lab_tokenizer(options.end_tokens);
  parts->prompts = std::make_shared<encoder>(encoder::options{parts->tokenizer, nullptr, 0, 0});
  if (options.grammars)
    parts->grammars = std::make_shared<compile_queue>(
        compile_queue::options{.compiler = options.grammars, .in_callers_thread = true});
  parts->metrics = std::make_shared<metrics_registry>("lab", parts->device->info().num_kv_blocks);
  parts->counters = std::make_shared<live_counters>();
  parts->check_always = true;
  return parts;
}

}  // namespace

lab_options small_lab() {
  lab_options options;
  options.engine.max_model_len = 96;
  options.engine.max_num_seqs = 8;
  options.engine.max_num_batched_tokens = 24;
  options.engine.prompt_lookup_min = 1;
  options.engine.prompt_lookup_max = 3;
  options.engine.max_draft_tokens = 6;
  return options;
}

actor_lab::actor_lab(lab_options options, std::uint64_t seed)
    : options_(std::move(options)),
      random_(seed),
      schedule_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
      device_(std::make_shared<fake_device>(options_.device)),
      parts_(make_parts(options_, device_)),
      actors_(start_pipeline(system_, parts_)) {}

actor_lab::~actor_lab() {
  caf::anon_send(actors_.supervisor, stop_everything{});
  settle();
  // A tick that is still to come holds its scheduler.
  schedule_.advance_time(limits::kTick * 2);
  settle();
  TANDEM_ASSERT(parts_->counters->living_actors.load() == 0);
}

void actor_lab::settle() {
  for (int i = 0; schedule_.has_job(); ++i) {
    TANDEM_ASSERT(i < kMaxMoves);
    schedule_.run_once();
  }
}

request_id actor_lab::submit(generation_request request) {
  const request_id id{next_id_++};
  parts_->counters->live_requests.fetch_add(1);
  caf::anon_send(actors_.intake, submit_generation{id, std::make_shared<const generation_request>(std::move(request)),
                                                   events_, schedule_.clock().now()});
  return id;
}

void actor_lab::cancel(request_id id) {
  caf::anon_send(actors_.intake, cancel_generation{id});
}
void actor_lab::kill(const std::string& actor) {
  caf::anon_send(actors_.supervisor, kill_actor{actor});
}
void actor_lab::begin_drain_now() {
  caf::anon_send(actors_.intake, begin_drain{});
}
void actor_lab::advance(std::chrono::nanoseconds by) {
  schedule_.advance_time(by);
}

void actor_lab::run_job(std::size_t index) {
  auto& jobs = schedule_.jobs;
  std::rotate(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(index),
              jobs.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  schedule_.run_once();
}

bool actor_lab::move() {
  const std::size_t jobs = schedule_.jobs.size();
  const std::size_t target = device_->target_ready() ? 1 : 0;
  const std::size_t draft = device_->draft_ready() ? 1 : 0;
  if (device_->target_waiting() && std::bernoulli_distribution(options_.expire_tickets)(random_))
    device_->expire_tickets();
  if (jobs + target + draft == 0) {
    if (!device_->target_waiting()) return false;
    device_->expire_tickets();
    return true;
  }
  const auto pick = std::uniform_int_distribution<std::size_t>(0, jobs + target + draft - 1)(random_);
  if (pick < jobs)
    run_job(pick);
  else if (pick < jobs + target)
    device_->run_target();
  else
    device_->run_draft();
  return true;
}

void actor_lab::moves(int count) {
  for (int i = 0; i < count; ++i) {
    if (!move()) return;
  }
}

void actor_lab::run_until_idle() {
  for (int i = 0; i < kMaxMoves; ++i) {
    if (move()) continue;
    if (parts_->counters->live_requests.load() == 0) return;
    schedule_.advance_time(limits::kTick);
  }
  assertion_failed("the engine came to rest within the bound", __FILE__, __LINE__);
}

generation_request ids_request(std::vector<token_id> prompt, std::int32_t max_tokens) {
  generation_request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.stopping.max_tokens = max_tokens;
  return request;
}

std::vector<token_id> made_prompt(std::size_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<token_id> prompt(length);
  for (auto& token : prompt) token = static_cast<token_id>(random() % sim::kVocabulary);
  return prompt;
}

}  // namespace tandem::lab
