#include <fmt/format.h>

#include "tests/support/encode_tensor.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/made_models.hpp"

namespace tandem::test {
namespace {

// GGUF's llama wants the two halves of a head's rows interleaved: row 2i+s is Hugging Face's row s*d/2 + i.
std::vector<float> permute_heads(const made_tensor& tensor) {
  const std::int64_t head_rows = (tensor.vector ? tensor.columns : tensor.rows) / tensor.rope_heads;
  const std::int64_t width = tensor.vector ? 1 : tensor.columns;
  std::vector<float> out(tensor.values.size());
  for (std::int64_t head = 0; head < tensor.rope_heads; ++head) {
    for (std::int64_t row = 0; row < head_rows; ++row) {
      const std::int64_t source = head * head_rows + row % 2 * (head_rows / 2) + row / 2;
      const std::int64_t target = head * head_rows + row;
      for (std::int64_t column = 0; column < width; ++column) {
        out[static_cast<std::size_t>(target * width + column)] =
            tensor.values[static_cast<std::size_t>(source * width + column)];
      }
    }
  }
  return out;
}

void add_sizes(gguf_writer& writer, const made_model& made) {
  const auto key = [&](const char* rest) { return fmt::format("{}.{}", made.architecture, rest); };
  const auto number = [&](const char* rest, std::int32_t value) {
    writer.add_u32(key(rest), static_cast<std::uint32_t>(value));
  };
  writer.add_text("general.architecture", made.architecture);
  writer.add_text("general.name", "made for a test");
  number("block_count", made.layers);
  number("context_length", made.context_length);
  number("embedding_length", made.hidden);
  number("feed_forward_length", made.intermediate);
  number("attention.head_count", made.heads);
  number("attention.head_count_kv", made.kv_heads);
  number("attention.key_length", made.head_dim);
  number("attention.value_length", made.head_dim);
  writer.add_f32(key("attention.layer_norm_rms_epsilon"), made.norm_epsilon);
  writer.add_f32(key("rope.freq_base"), static_cast<float>(made.rope.theta));
}

// llama3's scaling has no keys in GGUF: it comes as the tensor of divisors.
std::vector<float> llama3_divisors(const made_model& made) {
  model::rope_description rope = made.rope;
  rope.dimensions = made.head_dim;
  const auto scaled = model::rope_frequencies(rope).frequencies;
  rope.scaling = model::rope_description::scaling_kind::none;
  const auto plain = model::rope_frequencies(rope).frequencies;
  std::vector<float> divisors;
  for (std::size_t i = 0; i < plain.size(); ++i) divisors.push_back(static_cast<float>(plain[i] / scaled[i]));
  return divisors;
}

void add_rope_scaling(gguf_writer& writer, const made_model& made) {
  using kind = model::rope_description::scaling_kind;
  const auto key = [&](const char* rest) { return fmt::format("{}.rope.scaling.{}", made.architecture, rest); };
  const model::rope_description& rope = made.rope;
  std::vector<float> divisors = rope.frequency_divisors;
  if (rope.scaling == kind::llama3) divisors = llama3_divisors(made);
  if (!divisors.empty()) {
    writer.add_tensor("rope_freqs.weight", {divisors.size()}, 0, encode_tensor(divisors, model::tensor_kind::f32));
  }
  if (rope.scaling != kind::linear && rope.scaling != kind::yarn) return;
  writer.add_text(key("type"), rope.scaling == kind::linear ? "linear" : "yarn");
  writer.add_f32(key("factor"), static_cast<float>(rope.factor));
  if (rope.original_context == 0) return;
  writer.add_u32(key("original_context_length"), static_cast<std::uint32_t>(rope.original_context));
}

std::int32_t gguf_kind(text::token_kind kind) {
  constexpr std::int32_t kNumbers[] = {1, 3, 4, 5};
  return kNumbers[static_cast<std::size_t>(kind)];
}

void add_tokenizer(gguf_writer& writer, const made_tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  std::vector<std::int32_t> kinds;
  for (const made_token& token : tokenizer.tokens) {
    pieces.push_back(token.kind == text::token_kind::normal ? to_byte_alphabet(token.bytes) : token.bytes);
    kinds.push_back(gguf_kind(token.kind));
  }
  std::vector<std::string> merges;
  for (const auto& [left, right] : tokenizer.merges) {
    merges.push_back(to_byte_alphabet(left) + " " + to_byte_alphabet(right));
  }
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_text("tokenizer.ggml.pre", "smollm");
  writer.add_texts("tokenizer.ggml.tokens", pieces);
  writer.add_i32s("tokenizer.ggml.token_type", kinds);
  writer.add_texts("tokenizer.ggml.merges", merges);
  if (tokenizer.bos != kNoToken) {
    writer.add_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tokenizer.bos));
  }
  if (tokenizer.eos != kNoToken) {
    writer.add_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tokenizer.eos));
  }
  writer.add_boolean("tokenizer.ggml.add_bos_token", tokenizer.add_bos);
  if (!tokenizer.chat_template.empty()) writer.add_text("tokenizer.chat_template", tokenizer.chat_template);
}

}  // namespace

gguf_writer to_gguf(const made_model& made) {
  gguf_writer writer;
  add_sizes(writer, made);
  add_tokenizer(writer, made.tokenizer);
  for (const made_tensor& tensor : made.tensors) {
    const bool permuted = tensor.rope_heads > 0 && made.architecture == "llama";
    const std::vector<float> values = permuted ? permute_heads(tensor) : tensor.values;
    const model::tensor_kind kind = tensor.vector ? model::tensor_kind::f32 : made.kind;
    std::vector<std::uint64_t> dimensions{static_cast<std::uint64_t>(tensor.columns)};
    if (!tensor.vector) dimensions.push_back(static_cast<std::uint64_t>(tensor.rows));
    writer.add_tensor(tensor.gguf_name, std::move(dimensions), ggml_number(kind), encode_tensor(values, kind));
  }
  add_rope_scaling(writer, made);
  return writer;
}

void write_gguf(const made_model& made, const std::filesystem::path& file) {
  write_file(file, to_gguf(made).lay_out().bytes);
}

}  // namespace tandem::test
