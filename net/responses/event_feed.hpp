#pragma once
/// Events of several responses into one socket: in turns, only as fast as the socket sends, each one to be paused.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/responses/response_record.hpp"
#include "net/websocket/socket_protocol.hpp"

namespace tandem::net {

/// Owner: a responses_connection; on its lane only. What is not sent yet stays in the records, each with its own bound,
/// so a response that is not read costs the others nothing.
class event_feed {
 public:
  struct events {
    std::function<void(const std::string& id)> on_done;  ///< everything of it was sent
    std::function<void(const std::string& id)>
        on_lost;  ///< it was paused or unread for too long; it is followed no more
  };
  event_feed(io_lane& lane, socket_channel& channel, events handlers)
      : lane_(lane), channel_(channel), handlers_(std::move(handlers)) {}

  /// `extra`: members put into every event, with a leading comma. `after`: a response whose events all come before; may
  /// be empty. False when the event numbered `from` is not there.
  bool follow(const std::shared_ptr<response_record>& record, std::int64_t from, std::string extra,
              std::string after = {});
  bool follows(const std::string& id) const { return streams_.contains(id); }
  bool empty() const { return streams_.empty(); }
  std::size_t size() const { return streams_.size(); }
  /// The number of the event that is sent next; nothing when it is not followed.
  std::optional<std::int64_t> set_paused(const std::string& id, bool paused);
  /// Sends what the socket takes.
  void pump();
  void close();

 private:
  struct stream {
    std::unique_ptr<response_record::reader> reader;
    std::string extra;
    std::string after;
    bool paused = false;
    bool ready = true;  // there may be something to read
  };
  bool may_go(const stream& one) const;
  void send_some(const std::string& id);
  std::map<std::string, stream>::iterator next_ready();

  io_lane& lane_;
  socket_channel& channel_;
  events handlers_;
  std::map<std::string, stream> streams_;  // by response id
  std::string last_served_;
  bool pumping_ = false;
  bool closed_ = false;
};

}  // namespace tandem::net
