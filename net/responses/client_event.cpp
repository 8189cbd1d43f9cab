#include "net/responses/client_event.hpp"

#include <array>
#include <utility>

#include "config/edge_limits.hpp"
#include "config/limits.hpp"
#include "net/endpoints.hpp"

namespace tandem::net {
namespace {

constexpr std::array<std::pair<std::string_view, client_event_kind>, 6> kKinds{{
    {"response.create", client_event_kind::create},
    {"response.steer", client_event_kind::steer},
    {"response.cancel", client_event_kind::cancel},
    {"response.pause", client_event_kind::pause},
    {"response.resume", client_event_kind::resume},
    {"response.resume_from", client_event_kind::resume_from},
}};

client_event_kind kind_of(field_reader& fields) {
  const auto type = fields.string("type", 64);
  for (const auto& [name, kind] : kKinds) {
    if (type == name) return kind;
  }
  fields.refuse("type", "'type' must be response.create, .steer, .cancel, .pause, .resume or .resume_from.");
  return client_event_kind::unknown;
}

void read_response_id(field_reader& fields, std::string_view name, client_event& out) {
  const auto id = fields.string(name, 2 * limits::kMaxExternalIdBytes);
  if (id) out.response_id = std::string(*id);
  const bool may_lack = out.kind == client_event_kind::cancel;  // it may name a lane instead
  if (out.response_id.empty() && !may_lack) fields.refuse(name, "The event must say which response it is about.");
}

void read_fields(field_reader& fields, const request_facts& facts, client_event& out) {
  if (const auto lane = fields.string("stream_id", limits::kMaxStreamIdBytes)) out.stream_id = std::string(*lane);
  switch (out.kind) {
    case client_event_kind::unknown:
      return;
    case client_event_kind::create:
      out.create = read_response(fields, {}, facts);
      out.create.call.stream = true;
      if (out.create.background) {
        fields.refuse("background", "'background' is for POST /v1/responses; on a socket any response can be resumed.",
                      error_code::unsupported);
      }
      return;
    case client_event_kind::steer:
      if (const auto input = fields.any("input")) out.steering_json = json_text(*input);
      read_response_id(fields, "previous_response_id", out);
      out.steering = read_steering_input(fields, fresh_id("item_"));
      return;
    case client_event_kind::resume_from:
      out.after = fields.integer("sequence_number", -1, kMaxInt64 - 1).value_or(-1);
      return read_response_id(fields, "response_id", out);
    case client_event_kind::cancel:
    case client_event_kind::pause:
    case client_event_kind::resume:
      return read_response_id(fields, "response_id", out);
  }
}

}  // namespace

client_event parse_client_event(std::string_view text, const request_facts& facts) {
  client_event out;
  const auto document = json_document::parse(text, limits::kMaxJsonDepth);
  const auto object = document ? as_object(document->root()) : std::nullopt;
  if (!object) {
    out.problem =
        document ? error{error_code::invalid_argument, "An event must be a JSON object.", {}} : document.error();
    return out;
  }
  field_reader fields(*object);
  out.kind = kind_of(fields);
  read_fields(fields, facts, out);
  out.problem = fields.problem();
  return out;
}

}  // namespace tandem::net
