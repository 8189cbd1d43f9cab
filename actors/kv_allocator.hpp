#pragma once
/// The actor around the block pool and prefix index (core/kv/block_allocator.hpp).

#include <cstdint>

#include "actors/protocol.hpp"
#include "core/kv/block_allocator.hpp"

namespace tandem {

kv_allocator_actor spawn_kv_allocator(caf::actor_system& system, block_allocator::options options,
                                      std::uint32_t pool_gen, scheduler_actor scheduler);

}  // namespace tandem
