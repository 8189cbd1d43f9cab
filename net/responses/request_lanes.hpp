#pragma once
/// Which of a socket's requests runs when. Pure.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "net/responses/response_request.hpp"

namespace tandem::net {

/// Requests of one `stream_id` run one after the other unless they ask otherwise, as OpenAI's do; lanes run beside each
/// other. Owner: a responses_connection.
class request_lanes {
 public:
  /// Requests that wait, of all lanes.
  std::size_t waiting() const { return waiting_; }
  /// Whether it need not wait for others of its lane.
  bool may_run(const response_request& request) const;
  /// `bytes`: of the event that brought it. False when too much waits already; the request is as it was.
  bool wait(response_request& request, std::size_t bytes);
  /// The lane's next request, when nothing of the lane runs.
  std::optional<response_request> next(const std::string& stream_id);
  void note_begin(const std::string& stream_id) { ++lanes_[stream_id].running; }
  void note_end(const std::string& stream_id) { --lanes_[stream_id].running; }
  /// How many waited, and wait no more.
  std::size_t drop(const std::string& stream_id);
  void clear();

 private:
  struct waiting_request {
    response_request request;
    std::size_t bytes = 0;
  };
  struct request_lane {
    std::deque<waiting_request> waiting;
    std::size_t running = 0;
  };
  waiting_request take_first(request_lane& lane);

  std::map<std::string, request_lane> lanes_;  // by stream id; those with work
  std::size_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace tandem::net
