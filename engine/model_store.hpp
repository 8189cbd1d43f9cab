#pragma once
/// Where models lie: paths as they are, known names in the user's cache folder, fetched when missing.

#include <filesystem>
#include <string>

#include "core/result.hpp"
#include "engine/model_catalog.hpp"

namespace tandem::engine {

/// $TANDEM_MODELS, else $XDG_CACHE_HOME/tandem/models, else ~/.cache/tandem/models.
std::filesystem::path models_folder();
/// Where a known model lies or would lie.
std::filesystem::path path_of(const known_model& entry);
bool is_fetched(const known_model& entry);

/// A path that exists, as it is; else a known name, fetched when it is missing. Errors: not_found (with the nearest
/// known name), io.
result<std::filesystem::path> resolve_model(const std::string& model);

/// Downloads the parts, joins them and checks the sum; a second process waits for the first; parts that arrived are
/// kept when it stops half way. Progress goes to standard error. Errors: io, corrupt.
result<void> fetch_model(const known_model& entry);
/// Compares size and SHA-256. Errors: not_found, corrupt, io.
result<void> verify_model(const known_model& entry);
/// Errors: not_found, io.
result<void> remove_model(const known_model& entry);

}  // namespace tandem::engine
