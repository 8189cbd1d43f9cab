// POST /v1/responses, and GET, POST and DELETE of one response.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "config/edge_limits.hpp"
#include "net/endpoints.hpp"
#include "net/openai_answers.hpp"
#include "net/responses/response_run.hpp"
#include "net/responses/response_store.hpp"

namespace tandem::net {
namespace {

constexpr std::string_view kPath = "/v1/responses/";

std::string response_event(std::string_view json) {
  return fmt::format("event: {}\ndata: {}\n\n", event_type(json), json);
}

/// Server-sent events of one response, from any of them on. Owner: the session, as its call.
class event_stream : public running_call {
 public:
  event_stream(io_lane& lane, std::weak_ptr<response_channel> channel) : lane_(lane), channel_(std::move(channel)) {}
  void abandon() override { reader_.reset(); }

  /// False when the event numbered `from` is gone or not there yet.
  bool follow(const std::shared_ptr<response_record>& record, std::int64_t from) {
    reader_ = record->read_from(from, lane_.door, [this] { pass_on(); });
    if (!reader_) return false;
    http_response head;
    head.content_type = "text/event-stream";
    head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {"X-Request-Id", record->id()}};
    if (const auto channel = channel_.lock()) channel->begin_stream(std::move(head), kSsePing);
    pass_on();
    return true;
  }
  void pass_on();

 protected:
  io_lane& lane_;
  std::weak_ptr<response_channel> channel_;

 private:
  std::unique_ptr<response_record::reader> reader_;
};

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

/// POST /v1/responses. Owner: the session.
class create_call final : public event_stream, public response_listener {
 public:
  using event_stream::event_stream;
  bool start(std::shared_ptr<response_run> run) {
    run_ = std::move(run);
    return run_->start(*this);
  }
  void abandon() override {
    event_stream::abandon();
    run_->cancel();
  }

 private:
  void on_begun(response_run& run) override { follow(run.record(), 0); }
  void on_ended(response_run&) override { pass_on(); }
  void on_whole(response_run& run, http_response response) override {
    response.headers.emplace_back("X-Request-Id", run.record()->id());
    if (const auto channel = channel_.lock()) channel->send(std::move(response));
  }

  std::shared_ptr<response_run> run_;
};

/// POST /v1/responses/{id}/cancel: answers when the response has ended. Owner: the session.
class end_waiter final : public running_call {
 public:
  end_waiter(std::shared_ptr<response_record> record, std::weak_ptr<response_channel> channel)
      : record_(std::move(record)), channel_(std::move(channel)) {}
  void start(io_lane& lane) {
    reader_ = record_->read_from(record_->next_number(), lane.door, [this] { look(); });
  }
  void abandon() override { reader_.reset(); }
  /// Answers if it has ended.
  void look() {
    std::vector<std::string> unread;
    if (!reader_) return;
    reader_->read(unread, limits::kMaxResponseEventBytes);
    const auto channel = channel_.lock();
    if (!record_->ended() || !channel) return;
    reader_.reset();
    http_response response;
    response.body = record_->object_json();
    channel->send(std::move(response));
  }

 private:
  std::shared_ptr<response_record> record_;
  std::weak_ptr<response_channel> channel_;
  std::unique_ptr<response_record::reader> reader_;
};

answered refuse(const std::weak_ptr<response_channel>& channel, const error& reason) {
  if (const auto open = channel.lock()) open->send(error_response(reason));
  return nullptr;
}

answered refuse_create(io_lane& lane, const std::weak_ptr<response_channel>& channel, const error& reason) {
  lane.engine->count_rejected("invalid");
  return refuse(channel, reason);
}

answered reply(const std::weak_ptr<response_channel>& channel, std::string json) {
  http_response response;
  response.body = std::move(json);
  if (const auto open = channel.lock()) open->send(std::move(response));
  return nullptr;
}

/// What follows the collection's path: "<id>" or "<id>/<what>".
struct target {
  std::string id;
  std::string what;
};

target target_of(const http_request& request) {
  const std::string_view rest = std::string_view(request.path).substr(kPath.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return {std::string(rest), {}};
  return {std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
}

error unknown_part(const http_request& request) {
  return {
      error_code::not_found, fmt::format("There is no {} '{}' here.", request.method, request.path.substr(0, 256)), {}};
}

// A whole number, or nothing after a wrong value.
std::optional<std::int64_t> query_number(const http_request& request, std::string_view name, std::int64_t low,
                                         std::int64_t high, std::int64_t otherwise) {
  const auto text = request.query_value(name);
  if (!text) return otherwise;
  std::int64_t value = 0;
  const auto [end, reason] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (reason != std::errc{} || end != text->data() + text->size() || value < low || value > high) return std::nullopt;
  return value;
}

answered list_items(const http_request& request, const response_record& record,
                    const std::weak_ptr<response_channel>& channel) {
  const auto limit = query_number(request, "limit", 1, limits::kMaxListedItems, limits::kDefaultListedItems);
  const std::string_view order = request.query_value("order").value_or("desc");
  if (!limit || (order != "asc" && order != "desc")) {
    return refuse(channel, {error_code::invalid_argument,
                            fmt::format("'limit' must be 1 to {}, 'order' asc or desc.", limits::kMaxListedItems),
                            limit ? "order" : "limit"});
  }
  std::vector<const input_item*> wanted;
  for (const input_item& item : record.input_items()) wanted.push_back(&item);
  if (order == "desc") std::reverse(wanted.begin(), wanted.end());
  if (const auto after = request.query_value("after")) {
    const auto at =
        std::find_if(wanted.begin(), wanted.end(), [&](const input_item* item) { return item->id == *after; });
    wanted.erase(wanted.begin(), at == wanted.end() ? at : at + 1);
  }
  const bool more = wanted.size() > static_cast<std::size_t>(*limit);
  if (more) wanted.resize(static_cast<std::size_t>(*limit));
  json_writer out;
  out.begin_object().key("object").string("list").key("data").begin_array();
  for (const input_item* item : wanted) out.raw(item->json);
  out.end_array().key("first_id").string(wanted.empty() ? std::string() : wanted.front()->id);
  out.key("last_id").string(wanted.empty() ? std::string() : wanted.back()->id);
  out.key("has_more").boolean(more).end_object();
  return reply(channel, out.take());
}

answered stream_again(io_lane& lane, const http_request& request, const std::shared_ptr<response_record>& record,
                      std::weak_ptr<response_channel> channel) {
  const auto after = query_number(request, "starting_after", -1, kMaxInt64 - 1, -1);
  if (!after) {
    return refuse(channel,
                  {error_code::invalid_argument, "'starting_after' must be a sequence number.", "starting_after"});
  }
  auto stream = std::make_shared<event_stream>(lane, channel);
  if (stream->follow(record, *after + 1)) return stream;
  return refuse(channel,
                {error_code::not_found, "These events are not kept any more; ask without 'stream'.", "starting_after"});
}

}  // namespace

answered answer_create_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  auto id = chosen_id(lane, request, "resp_");
  if (!id) return refuse_create(lane, channel, id.error());
  auto parsed = parse_response(request.body, request.header("X-Request-Timeout-Ms"), lane.facts);
  if (!parsed) return refuse_create(lane, channel, parsed.error());
  request.body = {};  // may be large, and the answer may take long
  auto before = conversation_before(lane.edge.responses, parsed->previous_id);
  if (!before) return refuse_create(lane, channel, before.error());
  auto run = std::make_shared<response_run>(lane, std::make_shared<const response_request>(std::move(*parsed)),
                                            std::move(*before), std::move(*id));
  const auto call = std::make_shared<create_call>(lane, channel);
  if (call->start(std::move(run))) return call;
  return refuse_create(lane, channel,
                       {error_code::invalid_argument, "A response with this X-Request-Id exists.", "X-Request-Id"});
}

answered answer_get_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const target at = target_of(request);
  lane.edge.responses.expire(std::chrono::steady_clock::now());
  const auto record = lane.edge.responses.find(at.id);
  if (!record) return refuse(channel, unknown_response(at.id));
  if (at.what == "input_items") return list_items(request, *record, channel);
  if (!at.what.empty()) return refuse(channel, unknown_part(request));
  if (request.method == "GET" && request.query_value("stream") == "true")
    return stream_again(lane, request, record, std::move(channel));
  return reply(channel, record->object_json());
}

answered answer_post_to_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const target at = target_of(request);
  if (at.what != "cancel") return refuse(channel, unknown_part(request));
  const auto record = lane.edge.responses.find(at.id);
  if (!record) return refuse(channel, unknown_response(at.id));
  if (record->ended()) return reply(channel, record->object_json());
  const auto waiter = std::make_shared<end_waiter>(record, channel);
  waiter->start(lane);
  for (const request_id each : lane.edge.calls.find(at.id)) lane.engine->cancel(each);
  waiter->look();  // it may have ended on another lane meanwhile
  return waiter;
}

answered answer_delete_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const target at = target_of(request);
  if (!at.what.empty()) return refuse(channel, unknown_part(request));
  if (!lane.edge.responses.remove(at.id)) return refuse(channel, unknown_response(at.id));
  for (const request_id each : lane.edge.calls.find(at.id)) lane.engine->cancel(each);
  json_writer out;
  out.begin_object().key("id").string(at.id).key("object").string("response").key("deleted").boolean(true).end_object();
  return reply(channel, out.take());
}

}  // namespace tandem::net
