#pragma once
/// Writes GGUF files, good ones and on purpose bad ones.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::test {

/// Collects entries and tensors, then lays them out. Strings are raw bytes.
class gguf_writer {
 public:
  explicit gguf_writer(std::uint32_t version = 3, std::uint32_t alignment = 32)
      : version_(version), alignment_(alignment) {}

  void add_u32(std::string key, std::uint32_t value);
  void add_f32(std::string key, float value);
  void add_boolean(std::string key, bool value);
  void add_text(std::string key, std::string_view value);
  void add_texts(std::string key, const std::vector<std::string>& values);
  void add_i32s(std::string key, const std::vector<std::int32_t>& values);
  /// Any value type by its number, already encoded.
  void add_raw(std::string key, std::uint32_t type, std::string value);
  void remove(std::string_view key);
  /// Dimensions innermost first, kind by ggml's number.
  void add_tensor(std::string name, std::vector<std::uint64_t> dimensions, std::uint32_t kind, std::string data);
  void remove_tensor(std::string_view name);

  /// A field of the laid-out file, for tests that break one.
  struct field {
    std::string what;  ///< e.g. "tensor count", "key length", "dimension"
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  struct laid_out {
    std::string bytes;
    std::vector<field> fields;  ///< every count, length, type, dimension and offset
    std::size_t data_start = 0;
  };
  laid_out lay_out() const;

 private:
  struct entry {
    std::string key;
    std::uint32_t type = 0;
    std::string value;
  };
  struct tensor_entry {
    std::string name;
    std::vector<std::uint64_t> dimensions;
    std::uint32_t kind = 0;
    std::string data;
  };
  void lay_out_tensor(laid_out& out, const tensor_entry& tensor, std::uint64_t data_offset) const;

  std::uint32_t version_;
  std::uint32_t alignment_;
  std::vector<entry> entries_;
  std::vector<tensor_entry> tensors_;
};

}  // namespace tandem::test
