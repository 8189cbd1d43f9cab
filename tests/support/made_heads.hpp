#pragma once
/// Tiny draft heads for made models, as Hugging Face folders: random ones, and ones that are always right for CYCLE.
/// Deterministic: the same options give the same bytes.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/safetensors_writer.hpp"

namespace tandem::test {

/// A folder before it is written: for tests that spoil it first.
struct made_heads {
  std::string config;  ///< JSON
  std::vector<safetensors_entry> tensors;
  std::string weights_name = "model.safetensors";

  safetensors_entry& tensor(const std::string& name);
  void erase(const std::string& name);
  /// Replaces the first `from` in the configuration by `to`.
  void reword(const std::string& from, const std::string& to);
};
void write_heads(const made_heads& made, const std::filesystem::path& folder);

struct medusa_options {
  std::int32_t heads = 3;
  std::int32_t blocks = 1;
  bool own_outputs = true;    ///< else the target's
  std::vector<token_id> ids;  ///< of a trimmed vocabulary; empty: the whole
  std::string prefix;         ///< e.g. "medusa_head."
  std::uint64_t seed = 1;
};
made_heads make_medusa(const made_model& target, const medusa_options& options = {});

struct eagle_options {
  bool third = true;  ///< EAGLE-3; else EAGLE-1
  bool norm_before_residual = false;
  bool own_embedding = false;  ///< EAGLE-3
  bool own_output = true;      ///< EAGLE-3
  std::vector<token_id> ids;   ///< EAGLE-3: of a trimmed vocabulary; empty: the whole
  std::string layer_prefix = "midlayer.";
  std::uint64_t seed = 1;
};
made_heads make_eagle(const made_model& target, const eagle_options& options = {});

/// Always right for make_cycle(options) while it is greedy: Medusa heads by their outputs, an EAGLE-1 head by the
/// target's features alone (a wrong feature is a wrong draft).
made_heads make_cycle_medusa(const cycle_options& options = {}, std::int32_t heads = 3);
made_heads make_cycle_eagle(const cycle_options& options = {});

}  // namespace tandem::test
