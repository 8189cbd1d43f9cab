#pragma once
/// One function per endpoint. Each answers through the channel, at once (and returns null) or through what it returns.

#include <memory>

#include "net/http_message.hpp"
#include "net/io_lane.hpp"
#include "net/response_channel.hpp"

namespace tandem::net {

using answered = std::shared_ptr<running_call>;

answered answer_live(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_health(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_version(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_metrics(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_models(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_one_model(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_upgrade_required(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_cancel(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_tokenize(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_detokenize(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
/// What the batch is doing (batch_endpoint.cpp).
answered answer_batch(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
/// The page, its parts, /docs and /openapi.json (page_endpoint.cpp).
answered answer_page(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
/// /generate, /v1/completions and /v1/chat/completions (http_generation.cpp).
answered answer_generation(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);

/// POST /v1/responses, and what one response is asked (responses/).
answered answer_create_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_get_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_post_to_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);
answered answer_delete_response(io_lane& lane, http_request& request, std::weak_ptr<response_channel> channel);

/// The answer's id: the client's X-Request-Id behind the prefix, else a random one.
result<std::string> chosen_id(const io_lane& lane, const http_request& request, std::string_view prefix);
/// What answers need to know about the engine's tokens.
struct token_texts;
token_texts texts_of(const std::shared_ptr<runtime>& engine);
/// Unix seconds.
std::int64_t unix_seconds();
/// `prefix` and 24 random hexadecimal digits.
std::string fresh_id(std::string_view prefix);

}  // namespace tandem::net
