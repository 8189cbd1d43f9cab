/// Any bytes as a GGUF file: an error or a model whose every row can be read.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/open_formats.hpp"

namespace {

void read_all(const std::vector<tandem::model::tensor>& tensors) {
  std::vector<float> row;
  for (const auto& weight : tensors) {
    if (weight.columns > (1 << 16)) continue;
    row.resize(static_cast<std::size_t>(weight.columns));
    tandem::model::dequantize_row(weight, weight.rows - 1, row.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = tandem::model::parse_gguf_model({reinterpret_cast<const std::byte*>(data), size}, "fuzz.gguf");
  if (parts) {
    read_all(parts->tensors);
    tandem::model::rope_frequencies(parts->sizes.rope);
  }
  return 0;
}
