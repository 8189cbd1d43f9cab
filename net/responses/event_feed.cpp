#include "net/responses/event_feed.hpp"

#include <utility>
#include <vector>

#include "config/edge_limits.hpp"

namespace tandem::net {
namespace {

constexpr std::size_t kTurnBytes = limits::kSocketPullBytes / 8;  // of one response before the next one's turn

}  // namespace

bool event_feed::follow(const std::shared_ptr<response_record>& record, std::int64_t from, std::string extra,
                        std::string after) {
  const auto wake = [this, id = record->id()] {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    found->second.ready = true;
    pump();
  };
  auto reader = record->read_from(from, lane_.door, wake);
  if (!reader) return false;
  streams_[record->id()] = stream{std::move(reader), std::move(extra), std::move(after)};
  return true;
}

std::optional<std::int64_t> event_feed::set_paused(const std::string& id, bool paused) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return std::nullopt;
  found->second.paused = paused;
  return found->second.reader->next_number();
}

bool event_feed::may_go(const stream& one) const {
  return one.ready && !one.paused && (one.after.empty() || !streams_.contains(one.after));
}

std::map<std::string, event_feed::stream>::iterator event_feed::next_ready() {
  auto at = streams_.upper_bound(last_served_);
  for (std::size_t looked = 0; looked < streams_.size(); ++looked, ++at) {
    if (at == streams_.end()) at = streams_.begin();
    if (may_go(at->second)) return at;
  }
  return streams_.end();
}

// Sending may close the socket, and handlers may follow others: nothing is held across them.
void event_feed::pump() {
  if (std::exchange(pumping_, true)) return;
  while (!closed_ && channel_.unsent() < limits::kSocketPullBytes) {
    const auto next = next_ready();
    if (next == streams_.end()) break;
    last_served_ = next->first;
    send_some(std::string(next->first));
  }
  pumping_ = false;
}

void event_feed::send_some(const std::string& id) {
  using state = response_record::reader::state;
  stream& one = streams_.at(id);
  std::vector<std::string> lines;
  const state seen = one.reader->read(lines, kTurnBytes);
  one.ready = seen == state::more;
  const std::string end = one.extra + "}";
  for (std::string& event : lines) {
    event.pop_back();
    channel_.send(event += end);
    if (closed_) return;
  }
  if (seen == state::more || seen == state::waiting) return;
  streams_.erase(id);
  (seen == state::ended ? handlers_.on_done : handlers_.on_lost)(id);
}

void event_feed::close() {
  closed_ = true;
  streams_.clear();
}

}  // namespace tandem::net
