#pragma once
/// How often each token stands in a sequence, for penalties. Owner: one slot of a device.

#include <cstdint>
#include <span>
#include <unordered_map>

#include "core/ids.hpp"

namespace tandem {

class token_counts {
 public:
  struct count {
    bool in_prompt = false;
    std::int32_t in_output = 0;
  };
  void add_prompt(std::span<const token_id> tokens);
  void add_output(token_id token);
  /// Undoes add_output, for drafts that were rejected.
  void remove_output(token_id token);
  const std::unordered_map<token_id, count>& all() const { return counts_; }

 private:
  std::unordered_map<token_id, count> counts_;
};

}  // namespace tandem
