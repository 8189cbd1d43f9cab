#include "net/responses/pending_steers.hpp"

#include <utility>

#include "config/edge_limits.hpp"

namespace tandem::net {
namespace {

void append(response_input& all, const response_input& more) {
  all.items.insert(all.items.end(), more.items.begin(), more.items.end());
  all.messages = join_messages(all.messages, more.messages);
}

}  // namespace

response_input join_steers(const std::vector<steering>& steers) {
  response_input joined;
  for (const steering& one : steers) append(joined, one.input);
  return joined;
}

pending_steers::given_up pending_steers::keep(const std::string& response_id, std::vector<steering> steers) {
  given_up out;
  if (waiting_.size() >= limits::kMaxPendingSteers) {
    auto first = waiting_.extract(waiting_.begin());
    out = {std::move(first.key()), std::move(first.mapped())};
  }
  waiting_[response_id] = std::move(steers);
  return out;
}

void pending_steers::add_to(response_request& request) {
  const auto found = waiting_.extract(request.previous_id);
  if (found.empty()) return;
  response_input joined = join_steers(found.mapped());
  append(joined, request.input);
  request.input = std::move(joined);
}

}  // namespace tandem::net
