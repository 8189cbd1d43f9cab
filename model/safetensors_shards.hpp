#pragma once
/// The weights of a Hugging Face folder: one safetensors file, or the shards its index names and no others.

#include <filesystem>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "model/mapped_file.hpp"
#include "model/model.hpp"

namespace tandem::model {

struct safetensors_weights {
  std::vector<std::shared_ptr<const mapped_file>> files;
  std::vector<tensor> tensors;
};
/// Errors: not_found, corrupt, unsupported, too_large, io; they name the tensor and the file.
result<safetensors_weights> open_safetensors(const std::filesystem::path& folder);

}  // namespace tandem::model
