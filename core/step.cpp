#include "core/step.hpp"

#include <algorithm>

#include "core/ticket.hpp"

namespace tandem {

bool is_called_off(const proposal& wanted) {
  if (!wanted.unless || wanted.unless->current() != ticket::state::filled) return false;
  return !wanted.unless->drafts(static_cast<std::size_t>(wanted.unless_row)).tokens.empty();
}

std::vector<std::shared_ptr<ticket>> awaited_by(const std::vector<proposal>& proposals) {
  std::vector<std::shared_ptr<ticket>> all;
  for (const proposal& wanted : proposals) {
    const bool is_new = wanted.unless && std::find(all.begin(), all.end(), wanted.unless) == all.end();
    if (is_new) all.push_back(wanted.unless);
  }
  return all;
}

}  // namespace tandem
