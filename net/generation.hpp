#pragma once
/// The requests of one call: submitted together, answered together, cancelled together.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/io_lane.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {

/// Where a generation's bytes go: an HTTP exchange or a lane of a WebSocket.
class generation_listener {
 public:
  virtual ~generation_listener() = default;
  /// Every prompt was accepted; only streams are told.
  virtual void on_begin(std::string bytes) = 0;
  virtual void on_bytes(std::string bytes) = 0;
  /// The last word of a stream that went well.
  virtual void on_finish(std::string bytes) = 0;
  /// The last word of a stream that failed half-way.
  virtual void on_broken(std::string bytes) = 0;
  /// Instead of everything above: the whole answer or a refusal.
  virtual void on_whole(http_response response) = 0;
};

/// Lives on its lane. After the listener's last word, or cancel(), the listener is not called again. Owner: the
/// listener's.
class generation final : public event_sink, public std::enable_shared_from_this<generation> {
 public:
  generation(io_lane& lane, api_request request, std::unique_ptr<api_answer> answer, std::string public_id);
  ~generation() override;

  /// Submits every prompt. `listener` must live until the last word or cancel().
  void start(generation_listener& listener);
  /// Ends the requests and falls silent.
  void cancel();
  /// Asks the engine to end the requests with what they have; the listener hears their last words.
  void end();
  bool done() const { return listener_ == nullptr; }

  void on_answer(submission_answer answer) override;
  void on_event(generation_event event) override;
  void on_burst_end() override;

 private:
  void begin();
  void conclude();
  void refuse(const error& reason);
  void end_unstarted(request_id id);
  void cancel_requests();
  void leave();

  io_lane& lane_;
  std::shared_ptr<runtime> engine_;
  api_request request_;
  std::unique_ptr<api_answer> answer_;
  std::string public_id_;
  generation_listener* listener_ = nullptr;
  std::unordered_map<request_id, std::size_t> prompt_of_;  // of requests that have not ended
  std::unordered_map<request_id, std::int32_t> open_choices_;
  std::string pending_;  // bytes of this burst
  bool begun_ = false;
  bool registered_ = false;
};

}  // namespace tandem::net
