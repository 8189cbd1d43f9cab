#pragma once
/// Whole files in and out.

#include <filesystem>
#include <string>
#include <string_view>

namespace tandem::test {

void write_file(const std::filesystem::path& path, std::string_view bytes);
std::string read_file(const std::filesystem::path& path);

}  // namespace tandem::test
