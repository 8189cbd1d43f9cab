#include "tests/support/file_bytes.hpp"

#include <fstream>
#include <iterator>

#include "core/assert.hpp"

namespace tandem::test {

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  TANDEM_ASSERT(file.good());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  TANDEM_ASSERT(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tandem::test
