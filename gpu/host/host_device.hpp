#pragma once
/// The device that computes on the CPU: the embedded default.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "gpu/device.hpp"
#include "model/draft_heads.hpp"
#include "model/model.hpp"

namespace tandem::gpu {

enum class compute_dtype : std::uint8_t {
  automatic,  ///< the file's own kinds, packed for this machine's instructions
  bf16,       ///< weights rounded to bf16
  fp32,       ///< weights dequantised, all arithmetic in fp32: the reference path
};
/// int8: weights the file keeps as f32, f16 or bf16 are rounded to 8 bits, one fp16 scale per 32 inputs (a matrix whose
/// inputs are not a multiple of 32 stays as it is); block-quantised kinds stay as they are. Only with dtype automatic.
enum class weight_quantization : std::uint8_t { none, int8 };
/// int8: with one fp32 scale per token and head, for keys and values each.
enum class kv_dtype : std::uint8_t { automatic, bf16, fp32, int8 };  // automatic: fp32 with compute fp32, else bf16

struct host_options {
  std::int32_t threads = 0;  ///< 0: the cores the cgroup grants
  compute_dtype dtype = compute_dtype::automatic;
  weight_quantization quantization = weight_quantization::none;  ///< of the target, the draft and the heads
  kv_dtype kv = kv_dtype::automatic;
  std::int32_t block_size = 16;     ///< tokens
  std::int32_t num_kv_blocks = 0;   ///< 0: from kv_bytes
  std::uint64_t kv_bytes = 0;       ///< of all pages together; 0: min(4 GiB, 40 % of what is free after loading)
  std::int32_t max_num_seqs = 256;  ///< slots
  std::int32_t max_model_len = 0;   ///< positions; 0: the model's own
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t max_draft_tokens = 8;
  /// Whose input step_rows::wants_features hands out; 0 is the embedding, n the state after n layers of the target.
  std::vector<std::int32_t> feature_layers;
  std::string isa;  ///< "" = the best found; "portable", "avx2", "avx512", "amx" to force (tests)
  std::function<void(double fraction)> on_progress;  ///< while weights are packed; may be empty
};

/// Loads and packs the weights of `target` (and of `draft` and `heads`, which may be null), allocates the KV pages and
/// starts the compute team. The files may be closed afterwards. Errors: invalid_argument (options), unsupported (a
/// tensor kind, a missing instruction set), corrupt (a tensor of the wrong shape), io (no memory: the message says how
/// much was needed).
result<std::unique_ptr<device>> make_host_device(const host_options& options, const model::model& target,
                                                 const model::model* draft, const model::draft_heads* heads = nullptr);

}  // namespace tandem::gpu
