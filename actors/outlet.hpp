#pragma once
/// Where a client's events leave the actors. One outlet per io thread (or per embedding engine); the streamer groups a
/// step's events by outlet and posts each group once. No actor library types here.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/request.hpp"
#include "core/result.hpp"

namespace tandem {

/// The answer to a submission, before any text: the prompt's ids, or why not. After a refusal nothing more comes.
struct submission_answer {
  request_id id;
  std::optional<error> refused;
  std::shared_ptr<const std::vector<token_id>> prompt;  ///< when accepted
};

/// A piece of one choice's output. Pieces are in order; the one with `end` is the last, exactly one per choice.
struct generation_event {
  request_id id;
  std::int32_t choice = 0;
  std::string text;                              ///< whole UTF-8 characters; may be empty
  std::vector<token_id> tokens;
  std::vector<std::uint8_t> accepted;            ///< per token: 1 = it was a draft
  std::vector<token_logprobs> logprobs;
  std::vector<token_logprobs> prompt_logprobs;
  std::optional<finish> end;
  sequence_stats stats;                          ///< complete when `end` is set
};

/// Called from actor threads; must not block, throw or call back into the runtime synchronously.
class outlet {
 public:
  virtual ~outlet() = default;
  virtual void answer(submission_answer answer) = 0;
  virtual void post(std::vector<generation_event> events) = 0;
};

}  // namespace tandem
