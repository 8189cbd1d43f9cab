#include "actors/streamer.hpp"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/event_composer.hpp"
#include "core/assert.hpp"

namespace tandem {
namespace {

double seconds_between(time_point from, time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct open_sequence {
  explicit open_sequence(const open_stream& message, std::int32_t interval)
      : client(message.client),
        submitted(message.submitted),
        composer(message.id, message.request->stopping.skip_special_tokens, interval) {}

  std::shared_ptr<outlet> client;
  time_point submitted;
  std::optional<time_point> last_burst;
  double ttft_seconds = 0;
  event_composer composer;
};

struct streamer_state {
  streamer_state() {}
  static inline const char* name = "streamer";
  streamer_options options;
  std::unordered_map<sequence_id, open_sequence> open;
};

using self_pointer = streamer_actor::stateful_pointer<streamer_state>;

/// What one tokens_committed leads to, collected so that each receiver gets one message.
struct delivery {
  std::map<outlet*, std::pair<std::shared_ptr<outlet>, std::vector<generation_event>>> events;
  stream_measured measured;
  streams_ended ended;
};

void measure(open_sequence& sequence, const tokens_committed::entry& entry, time_point now, delivery& out) {
  if (!entry.tokens.empty()) {
    if (sequence.last_burst)
      out.measured.bursts.push_back(
          {static_cast<std::int32_t>(entry.tokens.size()), seconds_between(*sequence.last_burst, now)});
    else
      sequence.ttft_seconds = seconds_between(sequence.submitted, now);
    sequence.last_burst = now;
  }
  if (!entry.end) return;
  out.measured.sequences.push_back({std::make_shared<const sequence_stats>(entry.stats), entry.end->reason,
                                    sequence.ttft_seconds, seconds_between(sequence.submitted, now)});
}

void take(streamer_state& state, const tokens_committed::entry& entry, time_point now, delivery& out) {
  auto found = state.open.find(entry.id);
  // A sequence opened at a predecessor that died: intake has already told its client.
  if (found == state.open.end()) return;
  auto& sequence = found->second;
  measure(sequence, entry, now, out);
  auto event = sequence.composer.add(entry, *state.options.tokenizer);
  if (event) {
    auto& slot = out.events[sequence.client.get()];
    slot.first = sequence.client;
    slot.second.push_back(std::move(*event));
  }
  if (!entry.end) return;
  out.ended.ids.push_back(entry.id);
  state.open.erase(found);
}

void deliver(self_pointer self, delivery out) {
  for (auto& [key, group] : out.events) group.first->post(std::move(group.second));
  if (!out.ended.ids.empty()) self->send(self->state.options.intake, std::move(out.ended));
  if (!out.measured.bursts.empty() || !out.measured.sequences.empty())
    self->send(self->state.options.metrics, std::move(out.measured));
}

void fail_all(self_pointer self, const fail_streams& message) {
  delivery out;
  const auto now = self->clock().now();
  std::vector<sequence_id> ids;
  for (const auto& [id, sequence] : self->state.open) ids.push_back(id);
  for (const auto& id : ids) {
    tokens_committed::entry last;
    last.id = id;
    last.end = finish{.reason = finish_reason::error, .message = message.message};
    take(self->state, last, now, out);
  }
  deliver(self, std::move(out));
  if (message.quit) self->quit();
}

streamer_actor::behavior_type run(self_pointer self, const std::shared_ptr<streamer_options>& options) {
  self->state.options = std::move(*options);
  return {
      [self](const tokens_committed& message) {
        delivery out;
        const auto now = self->clock().now();
        for (const auto& entry : message.entries) take(self->state, entry, now, out);
        deliver(self, std::move(out));
      },
      [self](const open_stream& message) {
        const bool fresh =
            self->state.open.try_emplace(message.id, message, self->state.options.stream_interval).second;
        TANDEM_ASSERT(fresh);
      },
      [self](const fail_streams& message) { fail_all(self, message); },
  };
}

}  // namespace

streamer_actor spawn_streamer(caf::actor_system& system, streamer_options options) {
  return system.spawn(run, std::make_shared<streamer_options>(std::move(options)));
}

}  // namespace tandem
