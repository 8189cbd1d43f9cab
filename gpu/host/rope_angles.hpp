#pragma once
/// Cosines and sines of the rotary embedding by position. Owner: a model's executor. Computed once per position, in
/// double precision, when a position is first reached: memory grows with the contexts that are really used.

#include <cstdint>
#include <memory>
#include <vector>

#include "model/model.hpp"

namespace tandem::gpu::host {

class rope_angles {
 public:
  rope_angles(const model::rope_description& rope, std::int32_t max_positions);

  /// Makes positions [0, end) available. Not while other threads read.
  void reach(std::int32_t end);

  std::int32_t pairs() const { return static_cast<std::int32_t>(table_.frequencies.size()); }
  bool interleaved() const { return interleaved_; }
  /// pairs() values each, magnitude included.
  const float* cosines(std::int32_t position) const;
  const float* sines(std::int32_t position) const { return cosines(position) + pairs(); }

 private:
  void fill_page(float* page, std::int32_t first_position) const;

  model::rope_table table_;
  bool interleaved_ = false;
  std::int32_t max_positions_ = 0;
  std::vector<std::unique_ptr<float[]>> pages_;  // kPositionsPerPage positions each
};

}  // namespace tandem::gpu::host
