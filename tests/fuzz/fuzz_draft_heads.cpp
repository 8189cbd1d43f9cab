/// The first two bytes say how long a config.json is; it follows, then a safetensors file.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "model/head_files.hpp"
#include "model/safetensors_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::model;
  if (size < 2) return 0;
  const std::size_t length = data[0] + 256U * data[1];
  if (length > size - 2) return 0;
  description target;
  target.vocabulary_size = 8;
  target.hidden_size = 4;
  target.layers.resize(2);
  safetensors_weights weights;
  const auto* rest = reinterpret_cast<const std::byte*>(data) + 2 + length;
  auto tensors = parse_safetensors({rest, size - 2 - length}, "fuzz.safetensors", &weights.integers);
  if (!tensors) return 0;
  weights.tensors = std::move(*tensors);
  const std::string_view config(reinterpret_cast<const char*>(data) + 2, length);
  static_cast<void>(parse_draft_heads(config, "config.json", std::move(weights), target));
  return 0;
}
