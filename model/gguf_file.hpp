#pragma once
/// A GGUF file, version 2 or 3, as it stands: header, metadata, tensors. Format: the GGUF specification of ggml.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "model/gguf_metadata.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Views point into the bytes that were parsed, which must outlive it.
struct gguf_file {
  std::string path;
  std::uint32_t version = 0;
  gguf_metadata metadata;
  std::vector<tensor> tensors;  ///< in file order; names unique, bytes inside the file and disjoint
};

/// Checks every field. Errors: corrupt, unsupported; the message has file, field and offset.
result<gguf_file> parse_gguf(std::span<const std::byte> bytes, std::string_view path);

}  // namespace tandem::model
