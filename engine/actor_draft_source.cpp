#include "engine/actor_draft_source.hpp"

#include <optional>
#include <stdexcept>

#include "config/limits.hpp"

namespace tandem::engine {

std::vector<std::int32_t> actor_draft_source::propose(const DraftQuestion& question) {
  // One for each question: replies that come too late end with its mailbox.
  caf::scoped_actor self(system_);
  DraftRequest request{
      question.sequence, {question.tokens.begin(), question.tokens.end()}, question.prompt_length, question.k};
  std::vector<std::int32_t> drafts;
  std::optional<caf::error> failed;
  self->request(drafts_, limits::kTicketExpiry, propose_atom::value, std::move(request))
      .receive([&](std::vector<std::int32_t>& answer) { drafts = std::move(answer); },
               [&](caf::error& problem) { failed = std::move(problem); });
  if (failed) throw std::runtime_error("the draft source's actor did not answer: " + system_.render(*failed));
  return drafts;
}

}  // namespace tandem::engine
