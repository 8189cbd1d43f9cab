#include <fmt/format.h>

#include <string>

#include "config/limits.hpp"
#include "model/describe.hpp"
#include "model/end_tokens.hpp"
#include "model/folder_file.hpp"
#include "model/huggingface_config.hpp"
#include "model/open_formats.hpp"
#include "model/safetensors_shards.hpp"
#include "text/tokenizer.hpp"

namespace tandem::model {
namespace {

std::string_view text_of(const std::shared_ptr<const mapped_file>& file) {
  if (file == nullptr) return {};
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

/// The small files beside the weights. Null: not there.
struct folder_texts {
  std::shared_ptr<const mapped_file> config;
  std::shared_ptr<const mapped_file> tokenizer;
  std::shared_ptr<const mapped_file> tokenizer_config;
  std::shared_ptr<const mapped_file> generation_config;
  std::shared_ptr<const mapped_file> chat_template;
};

result<folder_texts> open_texts(const std::filesystem::path& folder) {
  folder_texts texts;
  struct wanted {
    const char* name;
    std::shared_ptr<const mapped_file> folder_texts::*slot;
    std::size_t max_bytes;
    bool required;
  };
  for (const wanted& each : {
           wanted{"config.json", &folder_texts::config, limits::kMaxConfigJsonBytes, true},
           wanted{"tokenizer.json", &folder_texts::tokenizer, limits::kMaxTokenizerJsonBytes, true},
           wanted{"tokenizer_config.json", &folder_texts::tokenizer_config, limits::kMaxConfigJsonBytes, false},
           wanted{"generation_config.json", &folder_texts::generation_config, limits::kMaxConfigJsonBytes, false},
           wanted{"chat_template.jinja", &folder_texts::chat_template, limits::kMaxTemplateBytes, false},
       }) {
    auto file = open_folder_file(folder, each.name, each.max_bytes);
    if (file) {
      texts.*each.slot = std::move(*file);
    } else if (each.required || file.error().code != error_code::not_found) {
      return tl::unexpected(file.error());
    }
  }
  return texts;
}

result<text::tokenizer_spec> read_tokenizer(const folder_texts& texts) {
  text::tokenizer_files files;
  files.tokenizer_json = text_of(texts.tokenizer);
  files.tokenizer_config_json = text_of(texts.tokenizer_config);
  files.generation_config_json = text_of(texts.generation_config);
  files.config_json = text_of(texts.config);
  files.chat_template_jinja = text_of(texts.chat_template);
  auto spec = text::parse_tokenizer_json(files);
  if (spec) add_named_end_tokens(*spec);
  return spec;
}

// Embeddings are often padded beyond the tokenizer: those rows become unused tokens. The other way round a prompt could
// name a row that is not there.
result<void> fit_vocabulary(const std::filesystem::path& folder, std::int32_t rows, text::tokenizer_spec& spec) {
  const auto size = static_cast<std::size_t>(rows);
  if (spec.pieces.size() > size) {
    return fail(error_code::corrupt,
                fmt::format("{}: tokenizer.json has {} tokens but the embedding has only {} rows.", folder.string(),
                            spec.pieces.size(), rows),
                folder.string());
  }
  spec.pieces.resize(size);
  spec.kinds.resize(size, text::token_kind::unused);
  return {};
}

void add_metadata(const std::filesystem::path& folder, const safetensors_weights& weights, model_parts& parts) {
  parts.metadata.emplace_back("folder", folder.string());
  parts.metadata.emplace_back("weight files", std::to_string(weights.files.size()));
}

}  // namespace

result<std::shared_ptr<const model>> open_huggingface_folder(const std::filesystem::path& path) {
  const auto texts = open_texts(path);
  if (!texts) return tl::unexpected(texts.error());
  const auto config = parse_huggingface_config(text_of(texts->config), (path / "config.json").string());
  if (!config) return tl::unexpected(config.error());
  auto tokenizer = read_tokenizer(*texts);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  auto weights = open_safetensors(path);
  if (!weights) return tl::unexpected(weights.error());

  model_parts parts;
  add_metadata(path, *weights, parts);
  parts.files = std::move(weights->files);
  parts.tensors = std::move(weights->tensors);
  parts.tokenizer = std::move(*tokenizer);
  auto sizes = describe_model(config->numbers, *config->shape, kHuggingfaceNaming, parts.tensors);
  if (!sizes) return tl::unexpected(sizes.error());
  parts.sizes = std::move(*sizes);
  if (auto fits = fit_vocabulary(path, parts.sizes.vocabulary_size, parts.tokenizer); !fits) {
    return tl::unexpected(fits.error());
  }
  return std::make_shared<const opened_model>(std::move(parts));
}

}  // namespace tandem::model
