#include "net/responses/request_lanes.hpp"

#include <utility>

#include "config/limits.hpp"

namespace tandem::net {

bool request_lanes::may_run(const response_request& request) const {
  const auto found = lanes_.find(request.stream_id);
  return request.concurrent || found == lanes_.end() || (found->second.running == 0 && found->second.waiting.empty());
}

bool request_lanes::wait(response_request& request, std::size_t bytes) {
  if (waiting_bytes_ + bytes > limits::kMaxWebSocketMessageBytes) return false;
  ++waiting_;
  waiting_bytes_ += bytes;
  request_lane& lane = lanes_[request.stream_id];
  lane.waiting.push_back({std::move(request), bytes});
  return true;
}

std::optional<response_request> request_lanes::next(const std::string& stream_id) {
  const auto found = lanes_.find(stream_id);
  if (found == lanes_.end() || found->second.running > 0) return std::nullopt;
  if (found->second.waiting.empty()) {
    lanes_.erase(found);
    return std::nullopt;
  }
  return take_first(found->second).request;
}

request_lanes::waiting_request request_lanes::take_first(request_lane& lane) {
  waiting_request first = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  --waiting_;
  waiting_bytes_ -= first.bytes;
  return first;
}

std::size_t request_lanes::drop(const std::string& stream_id) {
  const auto found = lanes_.find(stream_id);
  if (found == lanes_.end()) return 0;
  const std::size_t dropped = found->second.waiting.size();
  while (!found->second.waiting.empty()) take_first(found->second);
  return dropped;
}

void request_lanes::clear() {
  lanes_.clear();
  waiting_ = 0;
  waiting_bytes_ = 0;
}

}  // namespace tandem::net
