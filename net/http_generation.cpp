// POST /generate, /v1/completions, /v1/chat/completions: from the body to the last byte of the answer.

#include <fmt/format.h>

#include <algorithm>

#include "config/limits.hpp"
#include "net/endpoints.hpp"
#include "net/generation.hpp"
#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

class http_generation final : public running_call, public generation_listener {
 public:
  http_generation(std::weak_ptr<response_channel> channel, std::shared_ptr<generation> work, std::string public_id,
                  std::string_view content_type, std::string_view ping)
      : channel_(std::move(channel)),
        work_(std::move(work)),
        public_id_(std::move(public_id)),
        content_type_(content_type),
        ping_(ping) {}

  void start() { work_->start(*this); }
  void abandon() override { work_->cancel(); }

 private:
  void on_begin(std::string bytes) override {
    const auto channel = channel_.lock();
    if (!channel) return;
    http_response head;
    head.content_type = content_type_;
    head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {"X-Request-Id", public_id_}};
    channel->begin_stream(std::move(head), ping_);
    if (!bytes.empty()) channel->write(bytes);
  }

  void on_bytes(std::string bytes) override {
    if (const auto channel = channel_.lock()) channel->write(bytes);
  }

  void on_finish(std::string bytes) override { end(bytes, false); }
  void on_broken(std::string bytes) override { end(bytes, true); }

  void on_whole(http_response response) override {
    response.headers.emplace_back("X-Request-Id", public_id_);
    if (const auto channel = channel_.lock()) channel->send(std::move(response));
  }

  void end(const std::string& bytes, bool broken) {
    const auto channel = channel_.lock();
    if (!channel) return;
    if (!bytes.empty()) channel->write(bytes);
    channel->end_stream(broken);
  }

  std::weak_ptr<response_channel> channel_;
  std::shared_ptr<generation> work_;
  std::string public_id_;
  std::string content_type_;
  std::string_view ping_;  // static text
};

struct call_kind {
  result<api_request> (*parse)(std::string_view, std::string_view, const request_facts&);
  std::string_view id_prefix;
};

call_kind kind_of(std::string_view path) {
  if (path == "/generate") return {parse_generate, "gen-"};
  if (path == "/v1/completions") return {parse_completion, "cmpl-"};
  return {parse_chat, "chatcmpl-"};
}

answered refuse(io_lane& lane, const std::weak_ptr<response_channel>& channel, const error& reason) {
  lane.engine->count_rejected("invalid");
  if (const auto open = channel.lock()) open->send(error_response(reason));
  return nullptr;
}

}  // namespace

// The client's own id where it sends one, so that it can cancel before the answer begins.
result<std::string> chosen_id(const io_lane& lane, const http_request& request, std::string_view prefix) {
  const std::string_view given = request.header("X-Request-Id");
  if (given.empty()) return fresh_id(prefix);
  const bool plain = std::all_of(given.begin(), given.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!plain || given.size() > limits::kMaxExternalIdBytes) {
    return fail(
        error_code::invalid_argument,
        fmt::format("X-Request-Id must be at most {} letters, digits, '-', '_' and '.'.", limits::kMaxExternalIdBytes),
        "X-Request-Id");
  }
  std::string id = fmt::format("{}{}", prefix, given);
  if (lane.edge.calls.contains(id)) {
    return fail(error_code::invalid_argument, "A request with this X-Request-Id is running; choose another id.",
                "X-Request-Id");
  }
  return id;
}

answered answer_generation(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const call_kind kind = kind_of(request.path);
  auto id = chosen_id(lane, request, kind.id_prefix);
  if (!id) return refuse(lane, channel, id.error());
  auto parsed = kind.parse(request.body, request.header("X-Request-Timeout-Ms"), lane.facts);
  if (!parsed) return refuse(lane, channel, parsed.error());
  request.body = {};  // may be large, and the answer may take long
  auto answer =
      make_answer(*parsed, answer_context{*id, unix_seconds(), texts_of(lane.engine), fresh_id("call_") + "_"});
  const std::string_view content_type = answer->content_type();
  const std::string_view ping = answer->ping();
  auto work = std::make_shared<generation>(lane, std::move(*parsed), std::move(answer), *id);
  auto call =
      std::make_shared<http_generation>(std::move(channel), std::move(work), std::move(*id), content_type, ping);
  call->start();
  return call;
}

}  // namespace tandem::net
