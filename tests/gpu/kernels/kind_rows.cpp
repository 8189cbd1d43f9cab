/// kind_rows FILE.gguf FOLDER: what tandem reads of each tensor, for a comparison with another reader.
/// Writes FOLDER/NAME.dequantized (the model's own reference), .native and .fp32 (rows of the packed forms), each raw
/// fp32 numbers, and prints "NAME KIND rows columns" a line.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "gpu/host/packed_matrix.hpp"
#include "model/gguf_file.hpp"
#include "model/mapped_file.hpp"

namespace tandem::gpu::host {
namespace {

using row_function = std::function<void(std::int64_t row, float* out)>;

void write_rows(const model::tensor& weight, const std::filesystem::path& file, const row_function& read) {
  std::ofstream out(file, std::ios::binary);
  std::vector<float> row(static_cast<std::size_t>(weight.columns));
  for (std::int64_t index = 0; index < weight.rows; ++index) {
    read(index, row.data());
    out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
  }
}

bool write_packed(const model::tensor& weight, const std::filesystem::path& file, packing how) {
  const model::tensor* weights[] = {&weight};
  const auto packed = packed_matrix::pack(weights, how, detect_isa(),
                                          [](std::int64_t count, const auto& body) { body(0, count); });
  if (!packed) {
    std::cerr << packed.error().message << '\n';
    return false;
  }
  write_rows(weight, file, [&](std::int64_t row, float* out) { packed->row(row, out); });
  return true;
}

int run(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto mapped = model::mapped_file::open(file);
  if (!mapped) {
    std::cerr << mapped.error().message << '\n';
    return 1;
  }
  const auto parsed = model::parse_gguf((*mapped)->bytes(), file.string());
  if (!parsed) {
    std::cerr << parsed.error().message << '\n';
    return 1;
  }
  for (const model::tensor& weight : parsed->tensors) {
    const auto place = [&](const char* form) { return folder / (weight.name + form); };
    write_rows(weight, place(".dequantized"),
               [&](std::int64_t row, float* out) { model::dequantize_row(weight, row, out); });
    if (!write_packed(weight, place(".native"), packing::native)) return 1;
    if (!write_packed(weight, place(".fp32"), packing::fp32)) return 1;
    std::cout << weight.name << ' ' << model::traits(weight.kind).name << ' ' << weight.rows << ' ' << weight.columns
              << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace tandem::gpu::host

int main(int argument_count, char** arguments) {
  if (argument_count == 3) return tandem::gpu::host::run(arguments[1], arguments[2]);
  std::cerr << "usage: kind_rows FILE.gguf FOLDER\n";
  return 2;
}
