#include "model/describe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/limits.hpp"
#include "model/printable.hpp"
#include "model/tensor_finder.hpp"

namespace tandem::model {
namespace {

std::int64_t size_in(const hyperparameters& numbers, size_of size) {
  switch (size) {
    case size_of::one:
      return 1;
    case size_of::hidden:
      return numbers.hidden;
    case size_of::query:
      return numbers.heads * numbers.head_dim;
    case size_of::key_value:
      return numbers.kv_heads * numbers.head_dim;
    case size_of::intermediate:
      return numbers.intermediate;
    case size_of::head:
      return numbers.head_dim;
  }
  return 0;
}

std::string layer_tensor(const tensor_naming& naming, std::int64_t index, const layer_part& part) {
  return fmt::format("{}{}.{}", naming.layer_prefix, index, part.*naming.part);
}

bool wants_part(const tensor_finder& finder, const hyperparameters& numbers, const tensor_naming& naming,
                const layer_part& part) {
  if (part.needed == need::always) return true;
  if (numbers.attention_bias) return *numbers.attention_bias;
  return finder.find(layer_tensor(naming, 0, part)) != nullptr;
}

void find_layers(tensor_finder& finder, const hyperparameters& numbers, const architecture& shape,
                 const tensor_naming& naming, description& model) {
  model.layers.resize(static_cast<std::size_t>(numbers.layers));
  for (const layer_part& part : shape.parts) {
    if (!wants_part(finder, numbers, naming, part)) continue;
    for (std::int64_t index = 0; index < numbers.layers && !finder.failure(); ++index) {
      model.layers[static_cast<std::size_t>(index)].*part.slot =
          finder.need(layer_tensor(naming, index, part), size_in(numbers, part.rows), size_in(numbers, part.columns));
    }
  }
}

void find_ends(tensor_finder& finder, const hyperparameters& numbers, const tensor_naming& naming, description& model) {
  const tensor* embedding = finder.find(naming.embedding);
  const std::int64_t rows = numbers.vocabulary.value_or(embedding != nullptr ? embedding->rows : 1);
  model.embedding = finder.need(std::string(naming.embedding), rows, numbers.hidden);
  if (rows > static_cast<std::int64_t>(limits::kMaxVocabulary)) {
    finder.refuse(
        error_code::corrupt, numbers.source,
        fmt::format("{}: a vocabulary of {} is over the limit of {}.", numbers.source, rows, limits::kMaxVocabulary));
  }
  model.final_norm = finder.need(std::string(naming.final_norm), 1, numbers.hidden);
  const bool tied = numbers.tied_embeddings.value_or(finder.find(naming.output) == nullptr);
  model.output = tied ? model.embedding : finder.need(std::string(naming.output), rows, numbers.hidden);
}

// An unused tensor means the model has a part that nobody would execute: its answers would be wrong.
void refuse_unused(tensor_finder& finder, const tensor_naming& naming, const architecture& shape,
                   const std::vector<tensor>& tensors) {
  for (const tensor& each : tensors) {
    const bool ignored = each.name == naming.output ||  // a tied model may carry it all the same
                         std::any_of(naming.ignored.begin(), naming.ignored.end(),
                                     [&](std::string_view end) { return std::string_view(each.name).ends_with(end); });
    if (finder.used(each) || ignored) continue;
    finder.refuse(
        error_code::unsupported, each.file,
        fmt::format("{}: tensor \"{}\" at offset {} is not a part of the {} architecture as tandem knows it, so "
                    "the model would answer wrongly without it.",
                    each.file, printable(each.name, 80), each.file_offset, shape.name));
  }
}

void count_weights(const tensor_finder& finder, const std::vector<tensor>& tensors, description& model) {
  for (const tensor& each : tensors) {
    if (!finder.used(each)) continue;
    model.parameters += static_cast<std::uint64_t>(each.rows * each.columns);
    model.weight_bytes += each.data.size();
  }
}

void copy_sizes(const hyperparameters& numbers, description& model) {
  model.architecture = numbers.architecture;
  model.name = numbers.name;
  model.format = numbers.format;
  model.hidden_size = static_cast<std::int32_t>(numbers.hidden);
  model.intermediate_size = static_cast<std::int32_t>(numbers.intermediate);
  model.heads = static_cast<std::int32_t>(numbers.heads);
  model.kv_heads = static_cast<std::int32_t>(numbers.kv_heads);
  model.head_dim = static_cast<std::int32_t>(numbers.head_dim);
  model.context_length = static_cast<std::int32_t>(numbers.context_length);
  model.norm_epsilon = static_cast<float>(numbers.norm_epsilon);
  model.rope = numbers.rope;
}

}  // namespace

result<description> describe_model(const hyperparameters& numbers, const architecture& shape,
                                   const tensor_naming& naming, const std::vector<tensor>& tensors) {
  if (auto checked = check_hyperparameters(numbers); !checked) return tl::unexpected(checked.error());
  description model;
  copy_sizes(numbers, model);
  tensor_finder finder(numbers.source, tensors);
  find_ends(finder, numbers, naming, model);
  find_layers(finder, numbers, shape, naming, model);
  if (!finder.failure()) refuse_unused(finder, naming, shape, tensors);
  finder.check_finite();
  if (finder.failure()) return tl::unexpected(*finder.failure());
  count_weights(finder, tensors, model);
  model.vocabulary_size = static_cast<std::int32_t>(model.embedding->rows);
  return model;
}

}  // namespace tandem::model
