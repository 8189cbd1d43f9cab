#include <system_error>

#include "model/open_formats.hpp"

namespace tandem::model {

result<std::shared_ptr<const model>> open_model(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at is reported by the reader that opens it
  if (std::filesystem::is_directory(path, ignored)) return open_huggingface_folder(path);
  return open_gguf(path);
}

}  // namespace tandem::model
