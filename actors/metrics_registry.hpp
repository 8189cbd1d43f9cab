#pragma once
/// The numbers that /metrics shows. Thread-safe: the metrics actor feeds it, any thread reads it or counts into it.

#include <cstdint>
#include <memory>
#include <string>

#include "actors/batch_view.hpp"
#include "actors/compile_queue.hpp"
#include "actors/custom_source.hpp"
#include "actors/live_counters.hpp"
#include "core/messages.hpp"

namespace tandem {

class metrics_registry {
 public:
  /// `blocks_total`: all KV blocks, the denominator of kv_cache_usage_perc.
  metrics_registry(const std::string& model_name, std::int32_t blocks_total);
  ~metrics_registry();

  /// The gauges of what runs, waits and is held: set when somebody looks, so that they are right between steps too.
  void show(const live_counters& now);
  void show(const compile_status& now);
  void record(const step_measured& step);
  void record(const sequence_measured& sequence);
  void record(const burst_measured& burst);
  void count_rejected(const std::string& reason);
  void count_cancelled();
  void count_websocket(int delta);
  void count_restart(const std::string& actor);
  void count_draft_fault(draft_fault fault);

  batch_view batch() const { return watch_.look(); }
  /// Prometheus text format. Empty when the text could not be made (out of memory).
  std::string text() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
  batch_watch watch_;
};

}  // namespace tandem
