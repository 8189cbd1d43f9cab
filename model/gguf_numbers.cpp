/// Key names: the GGUF specification, section on the model's own keys.

#include "model/gguf_numbers.hpp"

#include <fmt/format.h>

#include <cmath>

#include "config/limits.hpp"
#include "model/gguf_fields.hpp"
#include "model/printable.hpp"

namespace tandem::model {
namespace {

constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::string_view kRopeDivisors = "rope_freqs.weight";

/// Keys of the model itself begin with its architecture's name.
class model_keys {
 public:
  model_keys(gguf_fields& fields, std::string_view architecture) : fields_(fields), prefix_(architecture) {}
  std::string key(std::string_view rest) const { return fmt::format("{}.{}", prefix_, rest); }
  bool has(std::string_view rest) const { return fields_.has(key(rest)); }
  std::int64_t integer(std::string_view rest, std::int64_t most) { return fields_.integer(key(rest), 1, most); }
  std::int64_t integer_or(std::string_view rest, std::int64_t most, std::int64_t fallback) {
    return fields_.integer_or(key(rest), 1, most, fallback);
  }
  double real_or(std::string_view rest, double fallback) { return fields_.real_or(key(rest), fallback); }

 private:
  gguf_fields& fields_;
  std::string prefix_;
};

void read_head_dim(gguf_fields& fields, model_keys& keys, hyperparameters& numbers) {
  if (!keys.has("attention.key_length")) {
    if (!fields.failure() && numbers.hidden % numbers.heads != 0) {
      fields.refuse(error_code::corrupt, keys.key("attention.head_count"),
                    fmt::format("{} heads do not divide the hidden size {}", numbers.heads, numbers.hidden));
    }
    numbers.head_dim = numbers.hidden / numbers.heads;
    return;
  }
  numbers.head_dim = keys.integer("attention.key_length", limits::kMaxHeadDim);
  if (keys.integer_or("attention.value_length", limits::kMaxHeadDim, numbers.head_dim) != numbers.head_dim) {
    fields.refuse(error_code::unsupported, keys.key("attention.value_length"),
                  "values of another size than keys are not supported");
  }
}

void read_sizes(gguf_fields& fields, model_keys& keys, hyperparameters& numbers) {
  numbers.layers = keys.integer("block_count", limits::kMaxLayers);
  numbers.hidden = keys.integer("embedding_length", limits::kMaxHidden);
  numbers.intermediate = keys.integer("feed_forward_length", limits::kMaxIntermediate);
  numbers.heads = keys.integer("attention.head_count", limits::kMaxHeads);
  numbers.kv_heads = keys.integer_or("attention.head_count_kv", limits::kMaxHeads, numbers.heads);
  numbers.context_length = keys.integer("context_length", INT32_MAX);
  if (keys.has("vocab_size")) {
    numbers.vocabulary = keys.integer("vocab_size", static_cast<std::int64_t>(limits::kMaxVocabulary));
  }
  numbers.norm_epsilon = fields.real(keys.key("attention.layer_norm_rms_epsilon"));
  read_head_dim(fields, keys, numbers);
}

// Without a type a factor means linear, as ggml reads it.
void read_scaling_kind(gguf_fields& fields, model_keys& keys, rope_description& rope) {
  using kind = rope_description::scaling_kind;
  const std::string type = fields.text_or(keys.key("rope.scaling.type"), "linear");
  if (type == "none") {
    rope.scaling = kind::none;
  } else if (type == "linear") {
    rope.scaling = rope.factor == 1.0 ? kind::none : kind::linear;
  } else if (type == "yarn") {
    rope.scaling = kind::yarn;
  } else {
    fields.refuse(error_code::unsupported, keys.key("rope.scaling.type"),
                  fmt::format("RoPE scaling \"{}\" is not supported, only none, linear, yarn and a tensor "
                              "rope_freqs.weight are",
                              printable(type, 40)));
  }
}

void read_rope(gguf_fields& fields, model_keys& keys, hyperparameters& numbers) {
  rope_description& rope = numbers.rope;
  rope.theta = keys.real_or("rope.freq_base", 10000.0);
  rope.dimensions =
      static_cast<std::int32_t>(keys.integer_or("rope.dimension_count", limits::kMaxHeadDim, numbers.head_dim));
  rope.factor = keys.real_or("rope.scaling.factor", keys.real_or("rope.scale_linear", 1.0));
  if (rope.factor == 0.0) rope.factor = 1.0;  // some converters write 0 for "no scaling"
  rope.original_context = static_cast<std::int32_t>(
      keys.integer_or("rope.scaling.original_context_length", INT32_MAX, numbers.context_length));
  read_scaling_kind(fields, keys, rope);
  if (rope.scaling != rope_description::scaling_kind::yarn) return;
  rope.beta_fast = keys.real_or("rope.scaling.yarn_beta_fast", 32.0);
  rope.beta_slow = keys.real_or("rope.scaling.yarn_beta_slow", 1.0);
  const double attention = keys.real_or("rope.scaling.attn_factor", 1.0);
  // GGUF's factor multiplies the derived one; the description's replaces it.
  if (attention != 1.0 && rope.factor > 0.0) rope.attention_factor = attention * (0.1 * std::log(rope.factor) + 1.0);
}

result<void> read_divisors(const gguf_file& file, rope_description& rope) {
  for (const tensor& each : file.tensors) {
    if (each.name != kRopeDivisors) continue;
    const auto problem = [&](std::string_view what) {
      return fail(error_code::corrupt,
                  fmt::format("{}: tensor \"{}\" at offset {} {}.", file.path, kRopeDivisors, each.file_offset, what),
                  file.path);
    };
    if (each.kind != tensor_kind::f32 || each.rows != 1 || each.columns != rope.dimensions / 2) {
      return problem(fmt::format("must be {} F32 values", rope.dimensions / 2));
    }
    rope.frequency_divisors.resize(static_cast<std::size_t>(each.columns));
    dequantize_row(each, 0, rope.frequency_divisors.data());
    for (const float divisor : rope.frequency_divisors) {
      if (!std::isfinite(divisor) || divisor <= 0.0F) return problem("holds a value that is not above 0");
    }
  }
  return {};
}

}  // namespace

result<const architecture*> read_gguf_architecture(const gguf_file& file) {
  gguf_fields fields(file);
  const std::string name = fields.text(kArchitectureKey);
  const architecture* found = find_architecture(name);
  if (found == nullptr) {
    fields.refuse(error_code::unsupported, kArchitectureKey,
                  fmt::format("architecture \"{}\" is not supported; supported are {}", printable(name, 40),
                              supported_architectures()));
  }
  if (fields.failure()) return tl::unexpected(*fields.failure());
  return found;
}

result<hyperparameters> read_gguf_numbers(const gguf_file& file, const architecture& shape) {
  gguf_fields fields(file);
  model_keys keys(fields, shape.name);
  hyperparameters numbers;
  numbers.architecture = shape.name;
  numbers.name = printable(fields.text_or("general.name", ""), 200);
  numbers.format = fmt::format("GGUF v{}", file.version);
  numbers.source = file.path;
  numbers.rope.interleaved = shape.gguf_interleaved_rope;
  read_sizes(fields, keys, numbers);
  read_rope(fields, keys, numbers);
  if (fields.failure()) return tl::unexpected(*fields.failure());
  if (auto divisors = read_divisors(file, numbers.rope); !divisors) return tl::unexpected(divisors.error());
  return numbers;
}

}  // namespace tandem::model
