#pragma once
/// Files of a model folder, which may come from anywhere: none may lead out of it.

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/result.hpp"
#include "model/mapped_file.hpp"

namespace tandem::model {

/// Opens `name` in `folder`. It must be a plain name and, links followed, lie in the folder; in a hub cache
/// (…/snapshots/REVISION) also in …/blobs, where that cache keeps the files its links name.
/// Errors: not_found, corrupt (a name or link that leaves the folder), too_large, io.
result<std::shared_ptr<const mapped_file>> open_folder_file(const std::filesystem::path& folder, std::string_view name,
                                                            std::size_t max_bytes);

}  // namespace tandem::model
