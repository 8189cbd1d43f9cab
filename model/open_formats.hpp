#pragma once
/// One function per file format; open_model() chooses.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "core/result.hpp"
#include "model/mapped_file.hpp"
#include "model/model.hpp"
#include "model/opened_model.hpp"

namespace tandem::model {

result<std::shared_ptr<const model>> open_gguf(const std::filesystem::path& path);
result<std::shared_ptr<const model>> open_huggingface_folder(const std::filesystem::path& path);

/// A GGUF file in memory; its bytes must outlive the parts. `name` stands for the file in messages.
result<model_parts> parse_gguf_model(std::span<const std::byte> bytes, std::string_view name);

}  // namespace tandem::model
