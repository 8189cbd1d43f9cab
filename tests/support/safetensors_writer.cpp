#include "tests/support/safetensors_writer.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

namespace tandem::test {

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  char raw[sizeof length];
  std::memcpy(raw, &length, sizeof length);
  return std::string(raw, sizeof raw) + header + data;
}

std::string safetensors_bytes(const std::vector<safetensors_entry>& entries) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = {{"format", "pt"}};
  std::string data;
  for (const safetensors_entry& entry : entries) {
    const std::size_t begin = data.size();
    data += entry.data;
    header[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return safetensors_bytes(text, data);
}

}  // namespace tandem::test
