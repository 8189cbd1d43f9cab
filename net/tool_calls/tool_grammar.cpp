// XGrammar's structural tags: text with parts whose beginning, content and end are given.

#include "net/tool_calls/tool_grammar.hpp"

#include <algorithm>

#include "core/assert.hpp"
#include "net/json_text.hpp"

namespace tandem::net {
namespace {

constexpr std::string_view kAnyObject = R"({"type":"object","additionalProperties":true})";

/// How the text around a call's arguments goes in one format.
struct call_frame {
  std::string_view before_name;
  std::string_view before_arguments;
  std::string_view end;
  std::string_view between;
};

call_frame frame_of(tool_call_format format) {
  if (format == tool_call_format::hermes)
    return {"<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>", "\n"};
  return {"{\"name\": \"", "\", \"parameters\": ", "}", "; "};
}

void write_tag(json_writer& out, const tool_function& function, const call_frame& frame, bool with_schema) {
  out.begin_object().key("type").string("tag");
  out.key("begin").string(std::string(frame.before_name) + function.name + std::string(frame.before_arguments));
  out.key("content").begin_object().key("type").string("json_schema").key("json_schema");
  out.raw(with_schema && !function.schema_json.empty() ? std::string_view(function.schema_json) : kAnyObject);
  out.end_object().key("end").string(frame.end).end_object();
}

}  // namespace

bool any_strict(const std::vector<tool_function>& functions) {
  return std::any_of(functions.begin(), functions.end(), [](const tool_function& each) { return each.strict; });
}

bool can_enforce(tool_call_format format, const tool_demand& demand) {
  return format == tool_call_format::hermes || (format == tool_call_format::llama3_json && demand.call);
}

std::optional<structured_spec> tool_grammar(const std::vector<tool_function>& functions, const tool_calling& calling,
                                            const tool_demand& demand) {
  const bool strict = any_strict(functions);
  if (!strict && !demand.call) return std::nullopt;
  TANDEM_ASSERT(can_enforce(calling.format, demand));
  const call_frame frame = frame_of(calling.format);
  json_writer out;
  out.begin_object().key("type").string("structural_tag").key("format").begin_object();
  out.key("type").string(demand.call ? "tags_with_separator" : "triggered_tags");
  if (demand.call) {
    out.key("separator").string(frame.between).key("at_least_one").boolean(true);
  } else {
    out.key("triggers").begin_array().string("<tool_call>").end_array();
  }
  out.key("stop_after_first").boolean(demand.call && (!calling.parallel || !demand.only.empty()));
  out.key("tags").begin_array();
  for (const tool_function& each : functions)
    if (demand.only.empty() || demand.only == each.name) write_tag(out, each, frame, each.strict || !strict);
  out.end_array().end_object().end_object();
  structured_spec spec;
  spec.kind = structured_spec::form::structural_tag;
  spec.text = out.take();
  spec.strict = strict;
  spec.field = "tools";
  return spec;
}

}  // namespace tandem::net
