#include "net/endpoints.hpp"

#include <fmt/format.h>

#include <chrono>
#include <random>

#include "net/openai_answers.hpp"

namespace tandem::net {
namespace {

answered reply(const std::weak_ptr<response_channel>& channel, http_response response) {
  if (const auto open = channel.lock()) open->send(std::move(response));
  return nullptr;
}

answered reply_json(const std::weak_ptr<response_channel>& channel, std::string json) {
  http_response response;
  response.body = std::move(json);
  return reply(channel, std::move(response));
}

void write_model(json_writer& out, const io_lane& lane, std::string_view name) {
  out.begin_object().key("id").string(name).key("object").string("model");
  out.key("created").integer(unix_seconds()).key("owned_by").string("tandem");
  out.key("root").string(lane.engine->options().model_name).key("parent").null();
  out.key("max_model_len").integer(lane.facts.max_model_len).end_object();
}

}  // namespace

token_texts texts_of(const std::shared_ptr<runtime>& engine) {
  return {[engine](token_id id) { return engine->tokenizer().token_bytes(id, false); },
          [engine](std::span<const token_id> ids) { return engine->tokenizer().decode(ids, false); },
          [engine](token_id id) { return engine->tokenizer().token_bytes(id, true); }};
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string fresh_id(std::string_view prefix) {
  std::random_device entropy;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, entropy(), entropy(), entropy());
}

answered answer_live(io_lane&, http_request&, std::weak_ptr<response_channel> channel) {
  return reply_json(channel, R"({"status":"live"})");
}

answered answer_health(io_lane& lane, http_request&, std::weak_ptr<response_channel> channel) {
  std::string_view trouble;
  std::string_view healthy = R"({"status":"ready"})";
  if (!lane.engine) {
    trouble = "The model is still loading; try again soon.";
  } else if (const runtime_status now = lane.engine->status(); now.draining || lane.stopping) {
    trouble = "The server is shutting down; use another one.";
  } else if (now.stuck) {
    trouble = "Work waits and the engine makes no step; restart the server if this lasts.";
  } else if (!now.ready) {
    trouble = "The engine is not ready yet; try again soon.";
  } else if (now.grammars_stuck) {
    healthy = R"({"status":"ready","structured_output":"stuck"})";
  }
  if (trouble.empty()) return reply_json(channel, std::string(healthy));
  return reply(channel, error_response(error{error_code::unavailable, std::string(trouble), {}}));
}

answered answer_version(io_lane&, http_request&, std::weak_ptr<response_channel> channel) {
  return reply_json(channel, R"({"version":")" TANDEM_VERSION R"("})");
}

answered answer_metrics(io_lane& lane, http_request&, std::weak_ptr<response_channel> channel) {
  http_response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = lane.engine->metrics_text();
  return reply(channel, std::move(response));
}

answered answer_models(io_lane& lane, http_request&, std::weak_ptr<response_channel> channel) {
  json_writer out;
  out.begin_object().key("object").string("list").key("data").begin_array();
  for (const std::string& name : lane.facts.model_names) write_model(out, lane, name);
  out.end_array().end_object();
  return reply_json(channel, out.take());
}

answered answer_one_model(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const std::string name = request.path.substr(std::string_view("/v1/models/").size());
  for (const std::string& served : lane.facts.model_names) {
    if (served != name) continue;
    json_writer out;
    write_model(out, lane, name);
    return reply_json(channel, out.take());
  }
  return reply(channel,
               error_response(error{error_code::not_found,
                                    fmt::format("The model '{}' does not exist here.", name.substr(0, 256)), "model"}));
}

answered answer_upgrade_required(io_lane&, http_request& request, std::weak_ptr<response_channel> channel) {
  http_response response =
      error_response(426, fmt::format("GET '{}' speaks WebSocket; connect with a WebSocket client.", request.path),
                     "upgrade_required");
  response.headers.emplace_back("Upgrade", "websocket");
  return reply(channel, std::move(response));
}

answered answer_cancel(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const std::string id = request.path.substr(std::string_view("/v1/cancel/").size());
  const std::vector<request_id> requests = lane.edge.calls.find(id);
  if (requests.empty()) {
    return reply(channel, error_response(error{error_code::not_found,
                                               fmt::format("No request '{}' is running.", id.substr(0, 256)), "id"}));
  }
  for (const request_id each : requests) lane.engine->cancel(each);
  json_writer out;
  out.begin_object().key("id").string(id).key("cancelled").boolean(true).end_object();
  return reply_json(channel, out.take());
}

answered answer_tokenize(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  auto parsed = parse_tokenize(request.body, lane.facts);
  if (!parsed) return reply(channel, error_response(parsed.error()));
  const auto finish = [channel, length = lane.facts.max_model_len](const result<std::vector<token_id>>& tokens) {
    if (!tokens) return reply(channel, error_response(tokens.error()));
    json_writer out;
    out.begin_object().key("count").integer(static_cast<std::int64_t>(tokens->size()));
    out.key("max_model_len").integer(length).key("tokens");
    write_tokens(out, *tokens);
    out.end_object();
    return reply_json(channel, out.take());
  };
  // Called on an encoder's thread: back to the lane first.
  lane.engine->encode(std::move(parsed->prompt), [door = lane.door, finish](result<std::vector<token_id>> tokens) {
    door->run([finish, tokens = std::move(tokens)] { finish(tokens); });
  });
  return nullptr;
}

answered answer_detokenize(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel) {
  const auto tokens = parse_detokenize(request.body, lane.facts);
  if (!tokens) return reply(channel, error_response(tokens.error()));
  json_writer out;
  out.begin_object().key("prompt").string(lane.engine->tokenizer().decode(*tokens, false)).end_object();
  return reply_json(channel, out.take());
}

}  // namespace tandem::net
