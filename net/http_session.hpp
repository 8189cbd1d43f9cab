#pragma once
/// One HTTP connection: reads requests, one at a time is answered, pipelined ones wait in the buffer.

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "net/byte_stream.hpp"
#include "net/http_head.hpp"
#include "net/http_parser.hpp"
#include "net/io_lane.hpp"
#include "net/response_channel.hpp"
#include "net/socket_writer.hpp"

namespace tandem::net {

/// A read is pending also while a request is answered: a client that goes away (or sends EOF) cancels its request.
/// Lives on its lane; kept alive by its pending operations.
class http_session final : public connection,
                           public response_channel,
                           public std::enable_shared_from_this<http_session> {
 public:
  http_session(io_lane& lane, std::unique_ptr<byte_stream> stream);
  ~http_session() override;
  void start();

  void finish() override;
  void abort() override { cut(); }

  void send(http_response response) override;
  void begin_stream(http_response head, std::string_view ping) override;
  void write(std::string_view bytes) override;
  void end_stream(bool broken) override;
  key_lease hand_over_lease() override { return std::move(lease_); }

 private:
  enum class phase { handshake, idle, header, body, answering, linger, closed };

  void begin();
  void read();
  void on_read(const boost::system::error_code& reason, std::size_t bytes);
  bool reader_lags() const;
  void progress();
  bool take_bytes();
  bool hold_body();
  void release_body();
  bool refuse_head();
  void dispatch();
  std::optional<http_response> take_lease(const http_request& request);
  void upgrade(http_request request);
  void refuse_and_close(http_response response);
  void end_exchange(bool close);
  void enter(phase next);
  void on_late();
  void on_peer_gone();
  void on_drained();
  void linger();
  void wait_to_ping();
  void cut();

  io_lane& lane_;
  std::unique_ptr<byte_stream> stream_;
  lane_membership membership_;
  boost::asio::steady_timer phase_timer_;
  boost::asio::steady_timer ping_timer_;
  socket_writer writer_;
  http_parser parser_;
  std::vector<char> chunk_;
  std::string input_;           // read, not yet parsed
  std::size_t body_bytes_ = 0;  // of the request being read, as counted in edge_state
  std::shared_ptr<running_call> call_;
  phase phase_ = phase::idle;
  bool reading_ = false;
  bool head_seen_ = false;  // of the request being read
  bool closing_ = false;    // after what waits was sent
  // Of the request being answered:
  bool head_only_ = false;
  bool keep_alive_ = true;
  bool chunked_ = true;
  bool streaming_ = false;
  bool wrote_since_ping_ = false;
  std::string ping_;
  key_lease lease_;
  std::vector<std::pair<std::string, std::string>> page_fields_;  // for a page of another origin
};

}  // namespace tandem::net
