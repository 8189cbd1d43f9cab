// GET, POST and DELETE of one response.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "config/edge_limits.hpp"
#include "net/endpoints.hpp"
#include "net/openai_answers.hpp"
#include "net/responses/event_stream.hpp"
#include "net/responses/response_store.hpp"

namespace tandem::net {
namespace {

constexpr std::string_view kPath = "/v1/responses/";

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
