#pragma once
/// What the readers of draft heads share: a folder's fields and tensors while they are being read.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_fields.hpp"
#include "model/draft_heads.hpp"
#include "model/integer_array.hpp"
#include "model/safetensors_shards.hpp"
#include "model/tensor_finder.hpp"

namespace tandem::model {

/// Owner: open_draft_heads. Failures stick in `fields` or `finder`.
struct head_files {
  std::string source;  ///< config.json's path, for messages
  config_fields& fields;
  tensor_finder& finder;
  const std::vector<tensor>& tensors;
  const std::vector<integer_array>& integers;
  const description& target;

  bool failed() const { return fields.failure() || finder.failure(); }
  const integer_array* find_integers(std::string_view name) const;
  /// A failure unless `value` is the target's; a head's `what` must be.
  void must_equal(std::string_view what, std::int64_t value, std::int64_t of_target);
};

/// Everything between the open files and the checked heads. `source` names config.json in messages.
result<std::shared_ptr<const draft_heads>> parse_draft_heads(std::string_view config, const std::string& source,
                                                             safetensors_weights weights, const description& target);

/// Fill `head`; its kind says which one is called.
void read_medusa(head_files& files, head_description& head);
void read_eagle(head_files& files, head_description& head);

/// The target's ids of a trimmed vocabulary: `d2t` (differences) or `token_map`. Neither: the identity, and the head's
/// vocabulary must be the target's.
void read_target_ids(head_files& files, head_description& head);

}  // namespace tandem::model
