#pragma once
/// One safetensors file: an 8-byte header length, a JSON header, data. Format: the safetensors specification.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Tensors in file order; names unique, bytes inside the file, disjoint and without gaps. They point into `bytes`,
/// which must outlive them. Errors: corrupt, unsupported, too_large; the message has file, tensor and offset.
result<std::vector<tensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view path);

}  // namespace tandem::model
