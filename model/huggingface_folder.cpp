#include "model/open_formats.hpp"

namespace tandem::model {

result<std::shared_ptr<const model>> open_huggingface_folder(const std::filesystem::path& path) {
  return fail(error_code::unsupported, path.string() + ": folders are not supported yet; give a .gguf file.",
              path.string());
}

}  // namespace tandem::model
