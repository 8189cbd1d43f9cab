#pragma once
/// Bodies of row_ops; included by row_ops_<isa>.cpp only, each compiled with its own flags. See row_ops.hpp.

#include "gpu/host/row_ops.hpp"
#include "gpu/host/vector16.hpp"

namespace tandem::gpu::host {
namespace {

constexpr std::int32_t kLanes = 16;

/// Adds delta and bias to hidden; returns the sum of squares.
TANDEM_INLINE float add_and_square(float* hidden, const float* delta, const float* bias, std::int32_t count) {
  v16 squares = splat(0.0F);
  std::int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    v16 value = load16(hidden + i);
    if (delta != nullptr) value += load16(delta + i);
    if (bias != nullptr) value += load16(bias + i);
    store16(hidden + i, value);
    squares = multiply_add(value, value, squares);
  }
  float sum = sum_lanes(squares);
  for (; i < count; ++i) {
    if (delta != nullptr) hidden[i] += delta[i];
    if (bias != nullptr) hidden[i] += bias[i];
    sum += hidden[i] * hidden[i];
  }
  return sum;
}

void add_and_normalize(float* hidden, const float* delta, const float* bias, const float* weight, float epsilon,
                       std::int32_t count, float* out) {
  const float mean = add_and_square(hidden, delta, bias, count) / static_cast<float>(count);
  const float scale = 1.0F / __builtin_sqrtf(mean + epsilon);
  for (std::int32_t i = 0; i < count; ++i) out[i] = hidden[i] * scale * weight[i];
}

TANDEM_INLINE v16 silu_times(v16 gate, v16 up) {
  return gate / (splat(1.0F) + exponential(-gate)) * up;
}

void gate(const float* gate_up, std::int32_t count, float* out) {
  const float* up = gate_up + count;
  std::int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store16(out + i, silu_times(load16(gate_up + i), load16(up + i)));
  if (i == count) return;
  float tail_gate[kLanes] = {};
  float tail_up[kLanes] = {};
  for (std::int32_t j = 0; i + j < count; ++j) {
    tail_gate[j] = gate_up[i + j];
    tail_up[j] = up[i + j];
  }
  store16(tail_gate, silu_times(load16(tail_gate), load16(tail_up)));
  for (std::int32_t j = 0; i + j < count; ++j) out[i + j] = tail_gate[j];
}

/// Sixteen pairs of bf16, the first of each in its lower half.
TANDEM_INLINE void store_pairs(std::uint32_t* to, v16 first, v16 second) {
  first = round_to_bf16(first);
  second = round_to_bf16(second);
  for (int i = 0; i < kParts; ++i) {
    const uint_part pairs =
        reinterpret_cast<uint_part>(first.part[i]) >> 16 | reinterpret_cast<uint_part>(second.part[i]);
    __builtin_memcpy(to + i * kPartLanes, &pairs, sizeof pairs);
  }
}

void gate_sums(const float* gate, const float* up, std::int32_t stride, std::int32_t rows, std::uint32_t* out) {
  const std::int32_t second = 16 * stride;
  const bool is_whole = rows == stride;
  std::uint32_t pairs[kLanes];
  for (std::int32_t at = 0; at < second; at += kLanes, out += rows) {
    const v16 first_outputs = silu_times(load16(gate + at), load16(up + at));
    const v16 second_outputs = silu_times(load16(gate + second + at), load16(up + second + at));
    store_pairs(is_whole ? out : pairs, first_outputs, second_outputs);
    if (!is_whole) __builtin_memcpy(out, pairs, static_cast<std::size_t>(rows) * sizeof(std::uint32_t));
  }
}

void add(float* values, const float* bias, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) values[i] += bias[i];
}

void rotate(float* head, const float* cosines, const float* sines, std::int32_t pairs, bool interleaved) {
  const std::int32_t step = interleaved ? 2 : 1;
  const std::int32_t other = interleaved ? 1 : pairs;
  for (std::int32_t i = 0; i < pairs; ++i) {
    const float a = head[step * i];
    const float b = head[step * i + other];
    head[step * i] = a * cosines[i] - b * sines[i];
    head[step * i + other] = a * sines[i] + b * cosines[i];
  }
}

constexpr row_ops kRowOps{add_and_normalize, gate, gate_sums, add, rotate};

}  // namespace
}  // namespace tandem::gpu::host
