#pragma once
/// `generate --dump-hidden PREFIX`: token ids and hidden states of whole sequences, as safetensors files. Their layout
/// is in docs/api.md.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/result.hpp"
#include "engine/collected_answer.hpp"
#include "engine/hidden_states.hpp"

namespace tandem::app {

/// One choice of one prompt.
struct dumped_sequence {
  std::string name;              ///< "<place of the prompt>.<choice>", both from 0
  std::vector<token_id> tokens;  ///< prompt, then output with its end token
  std::int32_t prompt_tokens = 0;
};

/// The choices of an answer that have at least one output token.
std::vector<dumped_sequence> sequences_of(std::size_t place, const engine::collected_answer& answer);

/// How many of `sequences`, from the first, go into one file: at least one, and no more than fit into `bytes`.
std::size_t shard_length(std::span<const dumped_sequence> sequences, std::uint64_t bytes_per_token,
                         std::uint64_t bytes);

/// PREFIX-00001.safetensors and on, each of about limits::kHiddenShardBytes. Values go to disk step by step; what is
/// held is one step's. A file half written by a failure stays, and is refused by readers. `stop` is looked at between
/// sequences. Errors: io, those of the reader; cancelled when it was stopped.
result<void> write_hidden_states(const std::string& prefix, const std::string& model_name,
                                 std::span<const dumped_sequence> sequences, engine::hidden_state_reader& reader,
                                 const std::atomic<bool>& stop);

}  // namespace tandem::app
