#include "model/folder_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/printable.hpp"

namespace tandem::model {
namespace {

bool is_plain_name(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
  return name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

bool is_inside(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const auto mismatch = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return mismatch.first == folder.end();
}

bool stays_in(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::error_code failed;
  const auto home = std::filesystem::canonical(folder, failed);
  if (failed) return false;
  const auto target = std::filesystem::weakly_canonical(file, failed);
  if (failed) return false;
  if (is_inside(target, home)) return true;
  return home.parent_path().filename() == "snapshots" && is_inside(target, home.parent_path().parent_path() / "blobs");
}

}  // namespace

result<std::shared_ptr<const mapped_file>> open_folder_file(const std::filesystem::path& folder, std::string_view name,
                                                            std::size_t max_bytes) {
  if (!is_plain_name(name)) {
    return fail(error_code::corrupt,
                fmt::format("{}: \"{}\" is no name of a file in this folder.", folder.string(), printable(name, 120)),
                folder.string());
  }
  const auto path = folder / name;
  std::error_code failed;
  if (std::filesystem::exists(path, failed) && !stays_in(path, folder)) {
    return fail(error_code::corrupt,
                fmt::format("{}: this link leads out of the model's folder; put the file itself there.", path.string()),
                path.string());
  }
  auto file = mapped_file::open(path);
  if (!file) return file;
  if ((*file)->bytes().size() > max_bytes) {
    return fail(
        error_code::too_large,
        fmt::format("{}: its {} bytes are over the limit of {}.", path.string(), (*file)->bytes().size(), max_bytes),
        path.string());
  }
  return file;
}

}  // namespace tandem::model
