#include "actors/drafter_text.hpp"

#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>
#include <memory>

#include "actors/ngram_source.hpp"
#include "core/ticket.hpp"

namespace tandem {
namespace {

struct testing_config : caf::actor_system_config {
  testing_config() { set("scheduler.policy", caf::atom("testing")); }
};

scheduler_actor::behavior_type deaf_scheduler() {
  return {
      [](const step_finished&) {},
      [](const draft_finished&) {},
      [](const prefix_matched&) {},
      [](const blocks_leased&) {},
      [](const admit_sequence&) {},
      [](const cancel_generation&) {},
      [](const tick&) {},
      [](const drafter_changed&) {},
      [](const connect_drafter&) {},
      [](const connect_allocator&) {},
      [](const connect_streamer&) {},
      [](const connect_peers&) {},
  };
}

TEST(DrafterText, TheSchedulerHasTheDraftsEndBeforeTheTargetsStreamMayGoOn) {
  testing_config config;
  caf::actor_system system{config};
  auto& schedule = dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  const scheduler_actor scheduler = system.spawn(deaf_scheduler);
  const drafter_actor drafter = spawn_drafter_text(
      system, draft_method::ngram, std::make_unique<ngram_source>(ngram_source::options{1, 3}), scheduler);
  while (schedule.has_job()) schedule.run_once();

  auto work = std::make_shared<draft_work>();
  work->step = 1;
  work->proposals = {{.slot = 0, .incarnation = 1, .new_tokens = {1, 2, 1}, .k = 2, .ticket_row = 0}};
  work->drafts = std::make_shared<ticket>(1);
  bool told_first = false;
  work->drafts->when_settled([&] { told_first = schedule.has_job(); });  // only the scheduler can have mail now
  caf::anon_send(drafter, propose{work});
  schedule.run_once();
  EXPECT_EQ(work->drafts->current(), ticket::state::filled);
  EXPECT_TRUE(told_first);

  caf::anon_send_exit(drafter, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(scheduler, caf::exit_reason::user_shutdown);
  while (schedule.has_job()) schedule.run_once();
}

}  // namespace
}  // namespace tandem
