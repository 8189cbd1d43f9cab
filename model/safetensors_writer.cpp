#include "model/safetensors_writer.hpp"

#include <fmt/format.h>

#include <array>

#include "core/assert.hpp"

namespace tandem::model {
namespace {

constexpr std::size_t kAlignment = 8;  // bytes; the data begins at a multiple of it

std::uint64_t element_bytes(stored_dtype dtype) {
  return dtype == stored_dtype::i32 ? 4 : 2;
}

/// A JSON string.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string header_of(const std::vector<planned_tensor>& tensors,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::string entries;
  for (const auto& [key, value] : metadata)
    entries += fmt::format("{}{}:{}", entries.empty() ? "" : ",", quoted(key), quoted(value));
  std::string header = "{\"__metadata__\":{" + entries + "}";
  std::uint64_t at = 0;
  for (const planned_tensor& each : tensors) {
    const std::uint64_t end = at + each.bytes();
    header += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(each.name),
                          each.dtype == stored_dtype::i32 ? "I32" : "BF16", fmt::join(each.shape, ","), at, end);
    at = end;
  }
  header += "}";
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return header;
}

std::array<char, 8> little_endian(std::uint64_t value) {
  std::array<char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

std::uint64_t planned_tensor::bytes() const {
  std::uint64_t count = element_bytes(dtype);
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

safetensors_writer::safetensors_writer(std::filesystem::path file, std::ofstream stream, std::uint64_t planned)
    : file_(std::move(file)), stream_(std::move(stream)), left_(planned) {}

result<safetensors_writer> safetensors_writer::create(
    std::filesystem::path file, const std::vector<planned_tensor>& tensors,
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  const std::string header = header_of(tensors, metadata);
  const auto length = little_endian(header.size());
  stream.write(length.data(), length.size());
  stream.write(header.data(), static_cast<std::streamsize>(header.size()));
  std::uint64_t planned = 0;
  for (const planned_tensor& each : tensors) planned += each.bytes();
  safetensors_writer writer(std::move(file), std::move(stream), planned);
  if (auto good = writer.check(); !good) return tl::unexpected(good.error());
  return writer;
}

result<void> safetensors_writer::write(std::span<const std::byte> data) {
  TANDEM_ASSERT(data.size() <= left_);
  stream_.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  left_ -= data.size();
  return check();
}

result<void> safetensors_writer::finish() {
  TANDEM_ASSERT(left_ == 0);
  stream_.close();
  return check();
}

result<void> safetensors_writer::check() const {
  if (stream_) return {};
  return fail(error_code::io,
              fmt::format("{} cannot be written; check that its folder exists and has room.", file_.string()),
              file_.string());
}

}  // namespace tandem::model
