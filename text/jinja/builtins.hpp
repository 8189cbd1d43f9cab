#pragma once
/// Filters, tests and methods: pure functions of values. Each is declared in vocabulary.cpp.

#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.hpp"
#include "text/jinja/vocabulary.hpp"

namespace tandem::text::jinja {

struct call_arguments {
  std::vector<value> placed;
  std::vector<std::pair<std::string_view, value>> named;
};

/// One call as its implementation sees it.
struct builtin_call {
  const signature& known;
  const value& subject;
  const call_arguments& given;
  budget& spent;

  const value* argument(std::size_t place) const;  ///< nullptr: not given
  bool flag(std::size_t place, bool fallback) const;
  std::int64_t integer(std::size_t place, std::int64_t fallback) const;
  value text(marked_text made) const { return value::of(std::move(made), &spent); }
  value list(std::vector<value> items) const { return value::list(std::move(items), &spent); }
};

value apply_filter(const builtin_call& call);
bool apply_test(const builtin_call& call);
value apply_method(const builtin_call& call);

/// What a loop over the value visits. Fails for values that are no sequence.
std::vector<value> items_of(const value& it, budget& spent);
/// x.name and x[key]; undefined when there is none. Fails on undefined subjects.
value attribute_of(const value& it, std::string_view name, budget& spent);
value item_of(const value& it, const value& key, budget& spent);
bool contains(const value& container, const value& item, budget& spent);
value slice_of(const value& it, const value* from, const value* to, const value* step, budget& spent);
value apply_operator(std::string_view symbol, const value& left, const value& right, budget& spent);

// By subject, one file each; each answers nullptr / nothing for names that are not its own.
using builtin = value (*)(const builtin_call&);
builtin find_text_builtin(std::string_view name);  ///< filters and methods with the same name and meaning
builtin find_text_method(std::string_view name);
builtin find_sequence_filter(std::string_view name);
builtin find_json_filter(std::string_view name);

}  // namespace tandem::text::jinja
