#pragma once
/// Writes one safetensors file whose tensors' data comes in pieces: the header is written first, from a plan.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace tandem::model {

enum class stored_dtype : std::uint8_t { i32, bf16 };

struct planned_tensor {
  std::string name;
  stored_dtype dtype = stored_dtype::bf16;
  std::vector<std::uint64_t> shape;  ///< outermost first

  std::uint64_t bytes() const;
};

/// Used by one thread. Holds no more than the stream's buffer.
class safetensors_writer {
 public:
  /// Creates or empties the file. `metadata` is text by text, as the format wants it. Error: io.
  static result<safetensors_writer> create(std::filesystem::path file, const std::vector<planned_tensor>& tensors,
                                           const std::vector<std::pair<std::string, std::string>>& metadata);

  /// The next bytes of the data, in the order of the plan; never more than planned. Error: io.
  result<void> write(std::span<const std::byte> data);
  /// Everything planned was written. Error: io.
  result<void> finish();

 private:
  safetensors_writer(std::filesystem::path file, std::ofstream stream, std::uint64_t planned);
  result<void> check() const;

  std::filesystem::path file_;
  std::ofstream stream_;
  std::uint64_t left_;  // bytes
};

}  // namespace tandem::model
