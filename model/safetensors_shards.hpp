#pragma once
/// The weights of a Hugging Face folder: one safetensors file, or the shards its index names and no others.

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "model/integer_array.hpp"
#include "model/mapped_file.hpp"
#include "model/model.hpp"

namespace tandem::model {

struct safetensors_weights {
  std::vector<std::shared_ptr<const mapped_file>> files;
  std::vector<tensor> tensors;
  std::vector<integer_array> integers;
};
/// What a folder may have beside what every model has.
struct safetensors_wishes {
  std::string_view other_name;  ///< of the weights, when model.safetensors is not there
  bool integers = false;        ///< whole numbers are read too; else refused
};
/// Errors: not_found, corrupt, unsupported, too_large, io; they name the tensor and the file.
result<safetensors_weights> open_safetensors(const std::filesystem::path& folder,
                                             const safetensors_wishes& wishes = {});

}  // namespace tandem::model
