#include "core/scheduling/scheduler.hpp"

#include <utility>

#include "core/assert.hpp"
#include "core/scheduling/scheduler_impl.hpp"

namespace tandem {

scheduler::impl::impl(scheduler_options opts, std::unique_ptr<speculation_policy> choice)
    : options(std::move(opts)),
      policy(std::move(choice)),
      lease(options.num_kv_blocks),
      holds(options.num_kv_blocks),
      pool_gen(options.pool_gen) {
  TANDEM_ASSERT(options.max_num_seqs > 0 && options.max_num_batched_tokens > 0 && options.block_size > 0);
  TANDEM_ASSERT(options.num_kv_blocks >= blocks_for(options.max_model_len));
  for (slot_id slot = options.max_num_seqs; slot-- > 0;) free_slots.push_back(slot);
  slot_gens.assign(static_cast<std::size_t>(options.max_num_seqs), 0);
  for (const draft_method method : options.drafters) {
    sources[static_cast<std::size_t>(method)] = {.exists = true, .alive = true, .in_flight = 0, .work = nullptr};
  }
}

sequence* scheduler::impl::find(sequence_id id) {
  const auto found = sequences.find(id);
  return found == sequences.end() ? nullptr : found->second.get();
}

scheduler_commands scheduler::impl::pump(time_point now) {
  start_waiting();
  if (!in_flight) plan_step(now);
  if (!sequences.empty()) out.lease = lease.request(lease_target(), pool_gen);
  if (out.committed && out.committed->entries.empty()) out.committed.reset();
  if (out.publish && out.publish->entries.empty()) out.publish.reset();
  if (out.release && out.release->blocks.empty()) out.release.reset();
  return std::exchange(out, {});
}

scheduler::scheduler(scheduler_options options, std::unique_ptr<speculation_policy> policy)
    : impl_(std::make_unique<impl>(std::move(options), std::move(policy))) {}
scheduler::~scheduler() = default;

scheduler_commands scheduler::on(const admit_sequence& message, time_point now) {
  impl_->admit(message, now);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const cancel_generation& message, time_point now) {
  impl_->cancel(message.id);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const prefix_matched& message, time_point now) {
  impl_->matched(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const blocks_leased& message, time_point now) {
  if (message.pool_gen == impl_->pool_gen) impl_->lease.answered(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const step_finished& message, time_point now) {
  impl_->finish_step(message, now);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const draft_finished& message, time_point now) {
  impl_->finish_drafts(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const drafter_changed& message, time_point now) {
  impl_->change_drafter(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on(const allocator_restarted& message, time_point now) {
  impl_->restart_allocator(message);
  return impl_->pump(now);
}
scheduler_commands scheduler::on_tick(time_point now) {
  impl_->expire(now);
  return impl_->pump(now);
}

scheduler::status scheduler::current() const {
  status now;
  now.running = static_cast<std::int32_t>(impl_->running.size());
  now.waiting = static_cast<std::int32_t>(impl_->waiting.size()) + impl_->matching;
  now.blocks_used = impl_->holds.distinct();
  now.blocks_leased = impl_->lease.size();
  now.blocks_obtainable = impl_->lease.obtainable();
  now.steps = impl_->last_step;
  now.step_in_flight = impl_->in_flight != nullptr;
  now.step_started = impl_->launched;
  return now;
}

}  // namespace tandem
