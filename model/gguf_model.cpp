#include <fmt/format.h>

#include "model/describe.hpp"
#include "model/gguf_file.hpp"
#include "model/gguf_numbers.hpp"
#include "model/gguf_tokenizer.hpp"
#include "model/open_formats.hpp"
#include "model/printable.hpp"

namespace tandem::model {
namespace {

// A GGUF vocabulary is padded to the embedding by its converter: a difference means one of the two is damaged.
result<void> check_vocabulary(const gguf_file& file, const model_parts& parts) {
  const auto tokens = parts.tokenizer.pieces.size();
  if (tokens == static_cast<std::size_t>(parts.sizes.vocabulary_size)) return {};
  return fail(
      error_code::corrupt,
      fmt::format("{}: metadata \"tokenizer.ggml.tokens\" at offset {} has {} tokens but tensor \"{}\" at offset "
                  "{} has {} rows.",
                  file.path, file.metadata.find("tokenizer.ggml.tokens")->offset, tokens, parts.sizes.embedding->name,
                  parts.sizes.embedding->file_offset, parts.sizes.vocabulary_size),
      file.path);
}

void copy_metadata(const gguf_file& file, model_parts& parts) {
  parts.metadata.reserve(file.metadata.entries().size());
  for (const gguf_entry& entry : file.metadata.entries()) {
    parts.metadata.emplace_back(printable(entry.key, 120), gguf_text(entry.value));
  }
}

}  // namespace

result<model_parts> parse_gguf_model(std::span<const std::byte> bytes, std::string_view name) {
  auto file = parse_gguf(bytes, name);
  if (!file) return tl::unexpected(file.error());
  const auto shape = read_gguf_architecture(*file);
  if (!shape) return tl::unexpected(shape.error());
  const auto numbers = read_gguf_numbers(*file, **shape);
  if (!numbers) return tl::unexpected(numbers.error());
  auto tokenizer = read_gguf_tokenizer(*file);
  if (!tokenizer) return tl::unexpected(tokenizer.error());

  model_parts parts;
  parts.tokenizer = std::move(*tokenizer);
  parts.tensors = std::move(file->tensors);
  auto sizes = describe_model(*numbers, **shape, kGgufNaming, parts.tensors);
  if (!sizes) return tl::unexpected(sizes.error());
  parts.sizes = std::move(*sizes);
  if (auto same = check_vocabulary(*file, parts); !same) return tl::unexpected(same.error());
  copy_metadata(*file, parts);
  return parts;
}

result<std::shared_ptr<const model>> open_gguf(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file) return tl::unexpected(file.error());
  auto parts = parse_gguf_model((*file)->bytes(), path.string());
  if (!parts) return tl::unexpected(parts.error());
  parts->files.push_back(std::move(*file));
  return std::make_shared<const opened_model>(std::move(*parts));
}

}  // namespace tandem::model
