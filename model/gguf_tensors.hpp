#pragma once
/// The tensor section of a GGUF file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/byte_cursor.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Reads `count` tensor descriptions; their data begins at the next multiple of `alignment` after them. `bytes` is the
/// whole file. Failures stick in the cursor.
std::vector<tensor> parse_gguf_tensors(byte_cursor& cursor, std::span<const std::byte> bytes, std::string_view path,
                                       std::uint64_t count, std::uint32_t alignment);

}  // namespace tandem::model
