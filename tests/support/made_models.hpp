#pragma once
/// Tiny models whose answers a test can know: CYCLE, CYCLE-BAD and RAND, written as GGUF file or Hugging Face folder.
/// Deterministic: the same options give the same bytes.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "model/model.hpp"
#include "tests/support/gguf_writer.hpp"
#include "tests/support/made_tokenizer.hpp"

namespace tandem::test {

/// A weight in the Hugging Face row order (query and key not permuted).
struct made_tensor {
  std::string gguf_name;
  std::string huggingface_name;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::vector<float> values;
  bool vector = false;          ///< norms and biases: one dimension, always F32
  std::int32_t rope_heads = 0;  ///< > 0: rows that rotate, this many heads; permuted where GGUF's llama wants it
};

struct made_model {
  std::string architecture = "llama";
  std::int32_t hidden = 0;
  std::int32_t intermediate = 0;
  std::int32_t layers = 0;
  std::int32_t heads = 1;
  std::int32_t kv_heads = 1;
  std::int32_t head_dim = 0;
  std::int32_t context_length = 2048;
  float norm_epsilon = 1e-6F;
  bool tied = false;
  model::rope_description rope;  ///< theta, scaling and its numbers, frequency_divisors (GGUF only)
  model::tensor_kind kind = model::tensor_kind::f32;
  made_tokenizer tokenizer;
  std::vector<made_tensor> tensors;
};

struct cycle_options {
  /// next(ring[i]) = ring[i+1], the last leads to the first. Tokens outside lead to ring[0]. Empty: all bytes 0 to 255
  /// (or, of a smaller vocabulary, all its tokens).
  std::vector<token_id> ring;
  /// CYCLE-BAD(m): tokens at ring positions p with (p+1) mod m == 0 lead one too far. 0: never wrong.
  std::int32_t bad_every = 0;
  /// Logit of the next token; all others are 0. 20 or more: certain. Smaller: a known soft distribution,
  /// p(next) = e^lead / (e^lead + V - 1).
  float lead = 40.0F;
  std::int32_t context_length = 2048;
  made_tokenizer tokenizer = bytes_tokenizer();
};
made_model make_cycle(const cycle_options& options = {});

struct rand_options {
  std::string architecture = "llama";  ///< or "qwen2", which has query, key and value biases
  std::int32_t layers = 2;
  std::int32_t hidden = 64;
  std::int32_t intermediate = 96;
  std::int32_t heads = 4;
  std::int32_t kv_heads = 2;
  std::int32_t context_length = 512;
  std::uint64_t seed = 1;
  /// Relative noise on every weight, e.g. 0.1: a draft that mostly agrees with the RAND of the same seed.
  float noise = 0.0F;
  std::uint64_t noise_seed = 1;
  bool tied = false;
  model::rope_description rope;
  model::tensor_kind kind =
      model::tensor_kind::f32;  ///< of matrices; q8_0 and q4_0 need sizes that are multiples of 32
  made_tokenizer tokenizer = bytes_tokenizer();
};
made_model make_rand(const rand_options& options = {});

/// The GGUF file before it is laid out: for tests that change it first.
gguf_writer to_gguf(const made_model& made);
void write_gguf(const made_model& made, const std::filesystem::path& file);
/// config.json, generation_config.json, tokenizer.json, tokenizer_config.json and the weights in `shards` files.
/// Kinds f32, f16 and bf16 only.
void write_huggingface_folder(const made_model& made, const std::filesystem::path& folder, int shards = 1);

}  // namespace tandem::test
