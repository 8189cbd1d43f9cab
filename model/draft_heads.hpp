#pragma once
/// Draft heads: small trained parts that guess tokens from a target model's hidden states.
///
/// medusa (Cai et al. 2024): head i guesses the token i + 2 places behind a row from that row's last hidden state
/// alone. eagle (Li et al. 2024, 2025): one transformer layer over (token, the target's features of the row before it),
/// which feeds itself with its own output for further tokens.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/result.hpp"
#include "model/model.hpp"

namespace tandem::model {

enum class head_kind : std::uint8_t {
  medusa,
  eagle,   ///< EAGLE-1 and EAGLE-2: features are the target's last hidden state, after its final norm
  eagle3,  ///< features are three hidden states of the target on their way
};

/// As users read it.
std::string_view name_of(head_kind kind);

/// x + silu(weight · x + bias).
struct medusa_block {
  const tensor* weight = nullptr;  ///< hidden × hidden
  const tensor* bias = nullptr;    ///< null: none
};
struct medusa_head {
  std::vector<medusa_block> blocks;
  const tensor* output = nullptr;  ///< draft vocabulary × hidden; null: the target's own output matrix
};

/// The layer's query, key and value take `hidden` inputs (eagle) or twice as many (eagle3: normed embedding, normed
/// feature). eagle has no norm before attention and none at the end.
struct eagle_head {
  const tensor* combine = nullptr;         ///< eagle: hidden × 2·hidden over (embedding, feature);
                                           ///< eagle3: hidden × (features · target's hidden) over the hidden states
  const tensor* combine_bias = nullptr;    ///< null: none
  const tensor* embedding_norm = nullptr;  ///< eagle3
  const tensor* feature_norm = nullptr;    ///< eagle3
  bool residual_is_normed = false;         ///< eagle3: what attention is added to
  layer transformer;                       ///< without attention_norm
  const tensor* final_norm = nullptr;      ///< eagle3
  const tensor* embedding = nullptr;       ///< vocabulary × hidden; null: the target's
  const tensor* output = nullptr;          ///< draft vocabulary × hidden; null: the target's
  /// eagle3: the target's layers before which its hidden state is taken; = its number of layers: behind all.
  std::vector<std::int32_t> feature_layers;
};

/// Checked against the target for which it was opened.
struct head_description {
  head_kind kind = head_kind::medusa;
  description sizes;                  ///< hidden_size, vocabulary_size; eagle: those of its layer too
  std::int32_t draft_vocabulary = 0;  ///< rows of the output
  std::vector<token_id> target_ids;   ///< of each row of the output, ascending; empty: its own number
  std::vector<medusa_head> medusa;    ///< all of the same form
  eagle_head eagle;
};

/// An opened head. Immutable; keeps its files mapped while it lives.
class draft_heads {
 public:
  virtual ~draft_heads() = default;
  virtual const head_description& describe() const = 0;
  virtual std::uint64_t parameters() const = 0;
};

/// The three layers whose input EAGLE-3 heads read, of a model of `layers` layers: 2, layers / 2 and layers − 3, as
/// their authors chose, as far as the model has them. n means the state after n layers, before any norm.
std::vector<std::int32_t> usual_feature_layers(std::int32_t layers);

/// Opens a Hugging Face folder (config.json and safetensors) with heads that were made for `target`. Untrusted input.
/// Errors name file and field: corrupt, unsupported (pickled weights, another architecture), invalid_argument (heads of
/// another model), not_found, io.
result<std::shared_ptr<const draft_heads>> open_draft_heads(const std::filesystem::path& folder,
                                                            const description& target);

}  // namespace tandem::model
