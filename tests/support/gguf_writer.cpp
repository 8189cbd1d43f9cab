#include "tests/support/gguf_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem::test {
namespace {

// Numbers of the GGUF specification.
constexpr std::uint32_t kU32 = 4;
constexpr std::uint32_t kI32 = 5;
constexpr std::uint32_t kF32 = 6;
constexpr std::uint32_t kBoolean = 7;
constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kArray = 9;

template <class T>
void put(std::string& out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

template <class T>
void put_field(gguf_writer::laid_out& out, std::string what, T value) {
  out.fields.push_back({std::move(what), out.bytes.size(), sizeof(T)});
  put(out.bytes, value);
}

void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

void gguf_writer::add_raw(std::string key, std::uint32_t type, std::string value) {
  entries_.push_back({std::move(key), type, std::move(value)});
}

void gguf_writer::add_u32(std::string key, std::uint32_t value) {
  std::string raw;
  put(raw, value);
  add_raw(std::move(key), kU32, raw);
}

void gguf_writer::add_f32(std::string key, float value) {
  std::string raw;
  put(raw, value);
  add_raw(std::move(key), kF32, raw);
}

void gguf_writer::add_boolean(std::string key, bool value) {
  add_raw(std::move(key), kBoolean, std::string(1, value ? '\1' : '\0'));
}

void gguf_writer::add_text(std::string key, std::string_view value) {
  std::string raw;
  put_string(raw, value);
  add_raw(std::move(key), kString, raw);
}

void gguf_writer::add_texts(std::string key, const std::vector<std::string>& values) {
  std::string raw;
  put(raw, kString);
  put<std::uint64_t>(raw, values.size());
  for (const std::string& value : values) put_string(raw, value);
  add_raw(std::move(key), kArray, raw);
}

void gguf_writer::add_i32s(std::string key, const std::vector<std::int32_t>& values) {
  std::string raw;
  put(raw, kI32);
  put<std::uint64_t>(raw, values.size());
  for (const std::int32_t value : values) put(raw, value);
  add_raw(std::move(key), kArray, raw);
}

void gguf_writer::remove(std::string_view key) {
  std::erase_if(entries_, [&](const entry& each) { return each.key == key; });
}

void gguf_writer::add_tensor(std::string name, std::vector<std::uint64_t> dimensions, std::uint32_t kind,
                             std::string data) {
  tensors_.push_back({std::move(name), std::move(dimensions), kind, std::move(data)});
}

void gguf_writer::remove_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const tensor_entry& each) { return each.name == name; });
}

void gguf_writer::lay_out_tensor(laid_out& out, const tensor_entry& tensor, std::uint64_t data_offset) const {
  put_field<std::uint64_t>(out, "name length", tensor.name.size());
  out.bytes += tensor.name;
  put_field(out, "number of dimensions", static_cast<std::uint32_t>(tensor.dimensions.size()));
  for (const std::uint64_t dimension : tensor.dimensions) put_field(out, "dimension", dimension);
  put_field(out, "kind", tensor.kind);
  put_field(out, "data offset", data_offset);
}

gguf_writer::laid_out gguf_writer::lay_out() const {
  laid_out out;
  out.bytes = "GGUF";
  put_field(out, "version", version_);
  put_field<std::uint64_t>(out, "tensor count", tensors_.size());
  put_field<std::uint64_t>(out, "metadata count", entries_.size());
  for (const entry& each : entries_) {
    put_field<std::uint64_t>(out, "key length", each.key.size());
    out.bytes += each.key;
    put_field(out, "value type", each.type);
    if (each.type == kString) out.fields.push_back({"string length", out.bytes.size(), 8});
    if (each.type == kArray) {
      out.fields.push_back({"element type", out.bytes.size(), 4});
      out.fields.push_back({"array count", out.bytes.size() + 4, 8});
    }
    out.bytes += each.value;
  }
  std::uint64_t data_offset = 0;
  for (const tensor_entry& each : tensors_) {
    lay_out_tensor(out, each, data_offset);
    data_offset += padded(each.data.size(), alignment_);
  }
  out.bytes.resize(padded(out.bytes.size(), alignment_));
  out.data_start = out.bytes.size();
  for (const tensor_entry& each : tensors_) {
    out.bytes += each.data;
    out.bytes.resize(out.data_start + padded(out.bytes.size() - out.data_start, alignment_));
  }
  return out;
}

}  // namespace tandem::test
