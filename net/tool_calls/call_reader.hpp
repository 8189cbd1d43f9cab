#pragma once
/// One call as models write it, byte by byte: {"name": NAME, "arguments": {…}}, where Llama says "parameters".

#include <string>
#include <string_view>
#include <vector>

#include "net/tool_calls/json_scanner.hpp"
#include "net/tool_calls/tool_event.hpp"

namespace tandem::net {

/// Tells begin and arguments as soon as name and the arguments' first brace are there, in this order; else when the
/// object ends. Other members are read over. Broken: no JSON object, a function that was not offered, no object as
/// arguments, a member given twice, more than limits::kMaxToolCallBytes. Absent or null arguments are {}.
class call_reader {
 public:
  enum class state { open, complete, broken };

  /// `offered` must outlive the reader. `name_first`: an object that begins otherwise is broken at once, because
  /// nothing but its name tells that it is a call.
  call_reader(const std::vector<std::string>& offered, bool name_first) : offered_(&offered), name_first_(name_first) {}

  /// The byte that breaks it is not taken.
  state feed(char byte, tool_events& out);
  /// Every byte taken.
  const std::string& raw() const { return raw_; }
  /// begin was told.
  bool begun() const { return begun_; }

 private:
  enum class place { before, first_key, key, in_key, colon, value, after_value };

  state outside_value(char byte, tool_events& out);
  state begin_key(char byte);
  state in_key(char byte);
  state in_value(char byte, tool_events& out);
  state end_value(tool_events& out);
  state end_object(tool_events& out);
  bool take_name();
  bool offers(std::string_view name) const;
  bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }
  void begin(tool_events& out);

  const std::vector<std::string>* offered_;
  std::string raw_;
  std::string key_;
  std::string value_;  // of the member being read: name, or arguments that are not told yet
  std::string name_;
  std::string arguments_;  // read before the name, or no object
  json_scanner scanner_;
  place at_ = place::before;
  bool name_first_ = false;
  bool named_ = false;
  bool has_arguments_ = false;
  bool begun_ = false;
  bool streams_ = false;  // the value being read goes out as it comes
};

}  // namespace tandem::net
