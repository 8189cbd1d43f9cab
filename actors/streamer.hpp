#pragma once
/// The actor that turns committed tokens into events. One hosts many sequences; it decides nothing.

#include <cstdint>
#include <memory>

#include "actors/protocol.hpp"
#include "text/tokenizer.hpp"

namespace tandem {

struct streamer_options {
  std::shared_ptr<const text::tokenizer> tokenizer;
  std::int32_t stream_interval = 1;
  intake_actor intake;  ///< told which sequences got their last event
  metrics_actor metrics;
};

streamer_actor spawn_streamer(caf::actor_system& system, streamer_options options);

}  // namespace tandem
