#pragma once
/// All actors of an engine under CAF's test coordinator: one thread, a simulated clock, and a seeded choice of who
/// takes the next message. That is exactly the freedom the real schedule has; a seed replays.

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <string>

#include "actors/pipeline.hpp"
#include "tests/support/lab/event_recorder.hpp"
#include "tests/support/lab/fake_device.hpp"
#include "tests/support/lab/lab_tokenizer.hpp"

namespace tandem::lab {

struct lab_options {
  runtime_options engine;
  fake_device_options device;
  std::vector<token_id> end_tokens;
  std::shared_ptr<const grammar_compiler> grammars;  ///< asked in intake's thread; null: no structured output
  double expire_tickets = 0.02;                      ///< chance per move that a waiting step gives up on its drafts
};

/// Small sizes, so that every limit is near.
lab_options small_lab();

class actor_lab {
 public:
  actor_lab(lab_options options, std::uint64_t seed);
  /// Stops every actor; each one must end.
  ~actor_lab();

  request_id submit(generation_request request);
  void cancel(request_id id);
  void kill(const std::string& actor);
  void begin_drain_now();
  void advance(std::chrono::nanoseconds by);

  /// One random move of one actor or stream. False: nothing can move without time passing.
  bool move();
  void moves(int count);
  /// Until every request has ended; time passes when nothing else moves. Bounded.
  void run_until_idle();

  const event_recorder& events() const { return *events_; }
  const live_counters& counters() const { return *parts_->counters; }
  const pipeline_parts& parts() const { return *parts_; }
  fake_device& device() { return *device_; }
  std::mt19937_64& random() { return random_; }

 private:
  struct testing_config : caf::actor_system_config {
    testing_config() { set("scheduler.policy", caf::atom("testing")); }
  };
  void run_job(std::size_t index);
  void settle();

  lab_options options_;
  std::mt19937_64 random_;
  testing_config config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& schedule_;
  std::shared_ptr<fake_device> device_;
  std::shared_ptr<pipeline_parts> parts_;
  std::shared_ptr<event_recorder> events_ = std::make_shared<event_recorder>();
  pipeline actors_;
  std::uint64_t next_id_ = 1;
};

/// A greedy request for `max_tokens` tokens after these ids.
generation_request ids_request(std::vector<token_id> prompt, std::int32_t max_tokens);
/// A reproducible prompt.
std::vector<token_id> made_prompt(std::size_t length, std::uint64_t seed);

}  // namespace tandem::lab
