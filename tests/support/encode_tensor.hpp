#pragma once
/// Floats → the bytes of a tensor kind, simply and deterministically.

#include <cstdint>
#include <span>
#include <string>

#include "model/model.hpp"

namespace tandem::test {

std::uint16_t to_half(float value);      ///< nearest, ties to even; too small becomes a subnormal or zero
std::uint16_t to_bfloat16(float value);  ///< nearest, ties to even
/// f32, f16, bf16, q8_0 and q4_0 (values a multiple of 32).
std::string encode_tensor(std::span<const float> values, model::tensor_kind kind);
/// ggml's number of the kind.
std::uint32_t ggml_number(model::tensor_kind kind);

}  // namespace tandem::test
