#pragma once
/// A model file as one description: where each weight lies, of what kind and shape, and how the layers use them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "text/tokenizer_spec.hpp"

namespace tandem::model {

/// How a tensor's bytes encode numbers. Block layouts: the GGUF specification and ggml's quantisation formats.
enum class tensor_kind : std::uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

struct kind_traits {
  std::string_view name;       ///< as GGUF writes it, e.g. "Q4_K"
  std::int32_t block_elements; ///< 1, 32 or 256 consecutive inputs of one row
  std::int32_t block_bytes;
};
const kind_traits& traits(tensor_kind kind);

/// A weight, by reference into the mapped file. Row-major: `rows` outputs × `columns` inputs (a vector has rows = 1).
/// `data` has exactly rows × columns / block_elements × block_bytes bytes and lives as long as the model.
struct tensor {
  std::string name;
  tensor_kind kind = tensor_kind::f32;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::span<const std::byte> data;
  std::string file;            ///< for messages and inspect
  std::uint64_t file_offset = 0;
};

/// Dequantises row `row` into out[columns]; bit-exact to the format's definition. The reference for every packed kind.
void dequantize_row(const tensor& weight, std::int64_t row, float* out);

/// Rotary embedding. Frequencies are computed once, in double precision, by rope_frequencies().
struct rope_description {
  double theta = 10000.0;
  std::int32_t dimensions = 0;                        ///< of a head that rotate
  bool interleaved = false;                           ///< pairs (2i, 2i+1) as GGUF's llama; else (i, i+d/2)
  enum class scaling_kind : std::uint8_t { none, linear, llama3, yarn } scaling = scaling_kind::none;
  double factor = 1.0;
  double low_frequency_factor = 1.0;                  ///< llama3
  double high_frequency_factor = 4.0;                 ///< llama3
  double beta_fast = 32.0;                            ///< yarn
  double beta_slow = 1.0;                             ///< yarn
  double attention_factor = 0.0;                      ///< yarn; 0 = derive 0.1 ln(factor) + 1
  std::int32_t original_context = 0;
  std::vector<float> frequency_divisors;              ///< GGUF rope_freqs.weight; empty = none
};
/// Angle per position of each rotating pair, dimensions/2 values; and the factor on cos and sin (yarn), 1 otherwise.
struct rope_table {
  std::vector<double> frequencies;
  double magnitude = 1.0;
};
rope_table rope_frequencies(const rope_description& rope);

/// One transformer layer, as the device executes it: pre-norm attention, pre-norm gated MLP, both added to the residual.
/// Null pointers are parts this architecture does not have.
struct layer {
  const tensor* attention_norm = nullptr;
  const tensor* query = nullptr;        ///< heads*head_dim × hidden
  const tensor* key = nullptr;          ///< kv_heads*head_dim × hidden
  const tensor* value = nullptr;
  const tensor* query_bias = nullptr;
  const tensor* key_bias = nullptr;
  const tensor* value_bias = nullptr;
  const tensor* query_norm = nullptr;   ///< per head (qwen3)
  const tensor* key_norm = nullptr;
  const tensor* output = nullptr;       ///< hidden × heads*head_dim
  const tensor* output_bias = nullptr;
  const tensor* mlp_norm = nullptr;
  const tensor* gate = nullptr;         ///< intermediate × hidden
  const tensor* up = nullptr;
  const tensor* down = nullptr;         ///< hidden × intermediate
};

/// Sizes and parts of a model; everything was checked against everything before it is handed out.
struct description {
  std::string architecture;             ///< "llama", "qwen2", …
  std::string name;                     ///< from the file, may be empty
  std::string format;                   ///< "GGUF v3", "safetensors"
  std::int32_t vocabulary_size = 0;     ///< rows of the embedding; may exceed the tokenizer's size
  std::int32_t hidden_size = 0;
  std::int32_t intermediate_size = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t context_length = 0;      ///< positions the model was made for
  float norm_epsilon = 1e-5F;
  rope_description rope;
  const tensor* embedding = nullptr;    ///< vocabulary × hidden
  const tensor* final_norm = nullptr;
  const tensor* output = nullptr;       ///< vocabulary × hidden; == embedding when tied
  std::vector<layer> layers;
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;       ///< as stored
};

/// An opened model. Immutable; keeps its files mapped while it lives.
class model {
 public:
  virtual ~model() = default;
  virtual const description& describe() const = 0;
  virtual std::span<const tensor> tensors() const = 0;
  /// Metadata as (key, short text) for `tandem inspect`, in file order.
  virtual std::span<const std::pair<std::string, std::string>> metadata() const = 0;
  virtual const text::tokenizer_spec& tokenizer() const = 0;
};

/// Opens a .gguf file or a Hugging Face folder, maps it and checks every field. Untrusted input.
/// Errors name file, field and offset: corrupt, unsupported, not_found, io.
result<std::shared_ptr<const model>> open_model(const std::filesystem::path& path);

}  // namespace tandem::model
