#pragma once
/// The state of a beam search between the steps of its lanes. Owner: scheduler, as part of the choice group.

#include <optional>
#include <utility>
#include <vector>

#include "core/scheduling/beam_search.hpp"

namespace tandem {

struct beam_lanes {
  beam_lanes(beam_settings settings, std::int32_t width)
      : search(std::move(settings)), candidates(static_cast<std::size_t>(width)) {}

  /// What the lanes have computed; they have nothing after it.
  std::vector<beam_candidates> take_candidates() {
    std::vector<beam_candidates> taken;
    for (auto& each : candidates) taken.push_back(std::exchange(each, std::nullopt).value_or(beam_candidates{}));
    return taken;
  }

  beam_search search;
  std::vector<std::optional<beam_candidates>> candidates;  ///< by lane; absent: not computed yet
  std::vector<beam_step> due;                              ///< decided, not taken yet: there may be no blocks for them
  std::optional<finish> end_wanted;                        ///< cancelled, timed out or failed
};

}  // namespace tandem
