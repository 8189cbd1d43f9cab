#pragma once
/// Server-sent events of one response, from any of them on.

#include <cstdint>
#include <memory>

#include "net/io_lane.hpp"
#include "net/response_channel.hpp"
#include "net/responses/response_record.hpp"

namespace tandem::net {

/// Owner: the session, as its call.
class event_stream : public running_call {
 public:
  event_stream(io_lane& lane, std::weak_ptr<response_channel> channel) : lane_(lane), channel_(std::move(channel)) {}
  void abandon() override { reader_.reset(); }

  /// False when the event numbered `from` is gone or not there yet.
  bool follow(const std::shared_ptr<response_record>& record, std::int64_t from);

 protected:
  void pass_on();

  io_lane& lane_;
  std::weak_ptr<response_channel> channel_;

 private:
  std::unique_ptr<response_record::reader> reader_;
};

}  // namespace tandem::net
