#pragma once
/// One safetensors file: an 8-byte header length, a JSON header, data. Format: the safetensors specification.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "model/integer_array.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Tensors in file order; names unique, bytes inside the file, disjoint and without gaps. They point into `bytes`,
/// which must outlive them. Whole numbers (I64, I32, BOOL) go to `integers`; null: they are refused.
/// Errors: corrupt, unsupported, too_large; the message has file, tensor and offset.
result<std::vector<tensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view path,
                                              std::vector<integer_array>* integers = nullptr);

}  // namespace tandem::model
