#include "net/responses/event_stream.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "config/edge_limits.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

std::string response_event(std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n\n", event_type(json), json);
}

}  // namespace

bool event_stream::follow(const std::shared_ptr<response_record>& record, std::int64_t from) {
  reader_ = record->read_from(from, lane_.door, [this] { pass_on(); });
  if (!reader_) return false;
  http_response head;
  head.content_type = "text/event-stream";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {"X-Request-Id", record->id()}};
  if (const auto channel = channel_.lock()) channel->begin_stream(std::move(head), kSsePing);
  pass_on();
  return true;
}

// A client that does not read is cut off by the channel, which abandons this.
void event_stream::pass_on() {
  using state = response_record::reader::state;
  const auto channel = channel_.lock();
  state seen = state::more;
  while (channel && reader_ && seen == state::more) {
    std::vector<std::string> events;
    seen = reader_->read(events, limits::kMaxResponseEventBytes);
    std::string bytes;
    for (const std::string& event : events) bytes += response_event(event);
    channel->write(bytes);
  }
  if (!channel || !reader_ || seen == state::waiting) return;
  reader_.reset();
  channel->end_stream(seen == state::behind);
}

}  // namespace tandem::net
