/// Any bytes as a safetensors file and, from the first byte on, as a config.json.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/huggingface_config.hpp"
#include "model/safetensors_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tandem::model;
  const auto tensors = parse_safetensors({reinterpret_cast<const std::byte*>(data), size}, "fuzz.safetensors");
  std::vector<float> row;
  if (tensors) {
    for (const tensor& weight : *tensors) {
      row.resize(static_cast<std::size_t>(weight.columns));
      dequantize_row(weight, weight.rows - 1, row.data());
    }
  }
  const auto config = parse_huggingface_config({reinterpret_cast<const char*>(data), size}, "config.json");
  if (config && check_hyperparameters(config->numbers)) rope_frequencies(config->numbers.rope);
  return 0;
}
