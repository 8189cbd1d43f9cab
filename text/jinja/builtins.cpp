// Dispatch by name, and the tests (`is …`).

#include "text/jinja/builtins.hpp"

#include <algorithm>
#include <cctype>

#include "core/assert.hpp"

namespace tandem::text::jinja {
namespace {

bool is_remainder(const builtin_call& call, std::int64_t divisor, bool zero) {
  if (!call.subject.is_integral()) fail_render("'" + std::string(call.known.name) + "' needs an integer");
  if (divisor == 0) fail_render("a division by zero is asked for");
  return (divisor == -1 || call.subject.integer() % divisor == 0) == zero;
}

// Every letter in that case, and one at least.
bool has_case(const builtin_call& call, bool upper) {
  const marked_text text = to_text(call.subject, call.spent);
  const auto wrong = [&](unsigned char c) { return upper ? std::islower(c) != 0 : std::isupper(c) != 0; };
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  return std::any_of(text.view().begin(), text.view().end(), letter) &&
         std::none_of(text.view().begin(), text.view().end(), wrong);
}

bool test_kind(std::string_view name, const value& it) {
  const value_kind kind = it.kind();
  if (name == "defined") return kind != value_kind::undefined;
  if (name == "undefined") return kind == value_kind::undefined;
  if (name == "none") return kind == value_kind::none;
  if (name == "boolean") return kind == value_kind::boolean;
  if (name == "true") return kind == value_kind::boolean && is_true(it);
  if (name == "false") return kind == value_kind::boolean && !is_true(it);
  if (name == "integer") return kind == value_kind::integer;
  if (name == "float") return kind == value_kind::real;
  if (name == "number") return it.is_number();
  if (name == "string") return it.is_string();
  if (name == "mapping") return it.is_dict();
  if (name == "callable") return kind == value_kind::macro || kind == value_kind::function;
  TANDEM_ASSERT(name == "iterable" || name == "sequence");
  return it.is_sequence() || it.is_string() || it.is_dict() || kind == value_kind::undefined;
}

bool test_order(std::string_view name, const value& left, const value& right, budget& spent) {
  if (name == "eq" || name == "equalto") return equals(left, right, spent);
  if (name == "ne") return !equals(left, right, spent);
  if (name == "lt") return compare(left, right, spent) < 0;
  if (name == "le") return compare(left, right, spent) <= 0;
  if (name == "gt") return compare(left, right, spent) > 0;
  TANDEM_ASSERT(name == "ge");
  return compare(left, right, spent) >= 0;
}

}  // namespace

const value* builtin_call::argument(std::size_t place) const {
  if (place < given.placed.size()) return &given.placed[place];
  for (const auto& [name, item] : given.named) {
    if (!known.parameters[place].empty() && name == known.parameters[place]) return &item;
  }
  return nullptr;
}

bool builtin_call::flag(std::size_t place, bool fallback) const {
  const value* const found = argument(place);
  return found ? is_true(*found) : fallback;
}

std::int64_t builtin_call::integer(std::size_t place, std::int64_t fallback) const {
  const value* const found = argument(place);
  if (!found) return fallback;
  if (!found->is_integral()) fail_render("'" + std::string(known.name) + "' needs an integer");
  return found->integer();
}

value apply_filter(const builtin_call& call) {
  call.spent.spend(1);
  builtin found = find_text_builtin(call.known.name);
  if (!found) found = find_sequence_filter(call.known.name);
  if (!found) found = find_json_filter(call.known.name);
  TANDEM_ASSERT(found != nullptr);
  return found(call);
}

bool apply_test(const builtin_call& call) {
  call.spent.spend(1);
  const std::string_view name = call.known.name;
  if (name == "odd") return is_remainder(call, 2, false);
  if (name == "even") return is_remainder(call, 2, true);
  if (name == "divisibleby") return is_remainder(call, call.integer(0, 1), true);
  if (name == "upper") return has_case(call, true);
  if (name == "lower") return has_case(call, false);
  if (name == "in") return contains(*call.argument(0), call.subject, call.spent);
  if (call.known.required == 1) return test_order(name, call.subject, *call.argument(0), call.spent);
  return test_kind(name, call.subject);
}

value apply_method(const builtin_call& call) {
  call.spent.spend(1);
  const std::string_view name = call.known.name;
  const value& subject = call.subject;
  if (subject.is_string()) {
    if (const builtin found = find_text_method(name)) return found(call);
  }
  if (subject.is_dict()) {
    const dict_node& dict = subject.dict();
    if (name == "items") return find_sequence_filter("items")(call);
    if (name == "keys" || name == "values") {
      std::vector<value> listed;
      for (const auto& [key, item] : dict.entries) listed.push_back(name == "keys" ? key : item);
      call.spent.spend(listed.size());
      return call.list(std::move(listed));
    }
    if (name == "get") {
      if (const value* const found = dict.find(*call.argument(0))) return *found;
      return call.argument(1) ? *call.argument(1) : value::none();
    }
  }
  if (subject.is(value_kind::loop) && name == "cycle" && !call.given.placed.empty()) {
    return call.given.placed[subject.loop().index0 % call.given.placed.size()];
  }
  if (subject.is_sequence() && name == "count") {
    const auto same = [&](const value& item) { return equals(item, *call.argument(0), call.spent); };
    return value::of(static_cast<std::int64_t>(std::count_if(subject.items().begin(), subject.items().end(), same)),
                     false);
  }
  if (subject.is_undefined()) fail_render("'" + std::string(subject.name()) + "' is undefined");
  fail_render("a " + std::string(kind_name(subject.kind())) + " has no method '" + std::string(name) + "'");
}

}  // namespace tandem::text::jinja
