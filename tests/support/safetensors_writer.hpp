#pragma once
/// Writes safetensors files, good ones and on purpose bad ones.

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::test {

struct safetensors_entry {
  std::string name;
  std::string dtype;                ///< "F32", "F16", "BF16"
  std::vector<std::int64_t> shape;  ///< outermost first
  std::string data;
};

/// The file's bytes: header length, JSON header, data in order.
std::string safetensors_bytes(const std::vector<safetensors_entry>& entries);
/// With a header of the caller's own making.
std::string safetensors_bytes(const std::string& header, const std::string& data);

}  // namespace tandem::test
