#include "actors/kv_allocator.hpp"

#include <memory>
#include <utility>

namespace tandem {
namespace {

struct kv_allocator_state {
  kv_allocator_state() {}
  static inline const char* name = "kv_allocator";
  std::unique_ptr<block_allocator> pool;
  scheduler_actor scheduler;
};

kv_allocator_actor::behavior_type run(kv_allocator_actor::stateful_pointer<kv_allocator_state> self,
                                      const block_allocator::options& options, std::uint32_t pool_gen,
                                      const scheduler_actor& scheduler) {
  self->state.pool = std::make_unique<block_allocator>(options, pool_gen);
  self->state.scheduler = scheduler;
  return {
      [self](const publish_blocks& message) { self->state.pool->publish(message); },
      [self](const share_blocks& message) { self->state.pool->share(message); },
      [self](const release_blocks& message) { self->state.pool->release(message); },
      [self](const lease_blocks& message) { self->send(self->state.scheduler, self->state.pool->lease(message)); },
      [self](const match_prefix& message) { self->send(self->state.scheduler, self->state.pool->match(message)); },
      [self](const adopt_blocks& message) { self->state.pool->adopt(message); },
  };
}

}  // namespace

kv_allocator_actor spawn_kv_allocator(caf::actor_system& system, block_allocator::options options,
                                      std::uint32_t pool_gen, scheduler_actor scheduler) {
  return system.spawn(run, std::move(options), pool_gen, std::move(scheduler));
}

}  // namespace tandem
