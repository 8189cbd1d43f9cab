#pragma once
/// A whole answer, put together from its pieces. Plain data.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/outlet.hpp"

namespace tandem::engine {

struct collected_choice {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<std::uint8_t> accepted;
  std::vector<token_logprobs> logprobs;
  std::optional<finish> end;
  sequence_stats stats;
};

struct collected_answer {
  std::optional<error> refused;
  std::shared_ptr<const std::vector<token_id>> prompt;
  std::vector<token_logprobs> prompt_logprobs;
  std::vector<collected_choice> choices;

  explicit collected_answer(std::int32_t count = 1) : choices(static_cast<std::size_t>(count)) {}
  void add(const submission_answer& answer);
  void add(generation_event event);
  /// Refused, or every choice ended.
  bool complete() const;
};

}  // namespace tandem::engine
