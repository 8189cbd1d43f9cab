#pragma once
/// One socket that speaks OpenAI's Responses events: what runs for it, what waits, what it is told.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/responses/client_event.hpp"
#include "net/responses/event_feed.hpp"
#include "net/responses/pending_steers.hpp"
#include "net/responses/request_lanes.hpp"
#include "net/responses/response_run.hpp"
#include "net/responses/socket_events.hpp"
#include "net/responses/unstored_responses.hpp"

namespace tandem::net {

/// A response of this socket that is being made.
struct active_run {
  std::shared_ptr<response_run> run;
  std::string stream_id;
  key_lease lease;
  std::vector<steering> steers;  // what its successor starts from
  std::vector<steering> taken;   // what it was itself started from, until it has begun
  std::string steered_id;        // the response that `taken` steered
};

class responses_connection final : public socket_protocol, public response_listener {
 public:
  responses_connection(io_lane& lane, socket_channel& channel, socket_key key);

  void on_text(const std::string& text) override;
  void on_drained() override { feed_.pump(); }
  void on_finish() override { finishing_ = true; }
  bool quiet() const override { return runs_.empty() && lanes_.waiting() == 0 && feed_.empty(); }
  void on_closed(bool lost) override;

 private:
  void on_begun(response_run& run) override;
  void on_ended(response_run& run) override;
  void on_whole(response_run& run, http_response response) override;

  // responses_connection.cpp: requests and their turns
  void create(response_request request, std::size_t bytes);
  void start(std::shared_ptr<const response_request> request, std::string conversation, active_run entry);
  void start_waiting(const std::string& stream_id);
  void start_from_client(response_request request);
  result<std::string> conversation_of(const std::string& id) const;
  bool is_full() const;
  void on_all_sent(const std::string& id);
  void on_events_lost(const std::string& id);
  void refuse(const error& reason, const std::string& stream_id);
  void refuse_full(const std::string& stream_id);
  void send(const std::string& event);
  void tell_when_quiet();

  // responses_control.cpp: what the client says about responses that are there
  void steer(client_event event);
  void succeed(const response_run& parent, active_run ended);
  void await_results(const response_run& parent, std::vector<steering> steers);
  void cancel(const client_event& event);
  void cancel_lane(const std::string& stream_id);
  void set_paused(const client_event& event, bool paused);
  void resume_from(const client_event& event);

  io_lane& lane_;
  socket_channel& channel_;
  socket_key key_;
  event_feed feed_;
  request_lanes lanes_;
  std::map<std::string, active_run> runs_;           // by response id
  std::map<std::string, std::string> last_of_lane_;  // stream id → its last response in the feed
  pending_steers pending_steers_;
  unstored_responses unstored_;
  bool finishing_ = false;
  bool closed_ = false;
};

}  // namespace tandem::net
