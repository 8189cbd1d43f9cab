#pragma once
/// Calls of functions in chat's answers: what /v1/chat/completions says of them. Pure.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/json_text.hpp"
#include "net/tool_calls/tool_call_parser.hpp"

namespace tandem::net {

/// One choice of a stream. Owner: the answer.
class chat_call_stream {
 public:
  /// `id_stem` begins the ids of its calls.
  chat_call_stream(const tool_calling& calling, std::string id_stem)
      : parser_(make_tool_call_parser(calling)), id_stem_(std::move(id_stem)) {}

  /// Values of `delta`, one per chunk, in order.
  std::vector<std::string> feed(std::string_view text, bool ended);
  /// A call was told.
  bool called() const { return calls_ > 0; }

 private:
  std::string delta_of(const tool_event& event);

  std::unique_ptr<tool_call_parser> parser_;
  std::string id_stem_;
  int calls_ = 0;
};

/// The value of `message` of a whole answer: content null where there are only calls.
void write_tool_message(json_writer& out, const tool_message& message, std::string_view id_stem);

}  // namespace tandem::net
