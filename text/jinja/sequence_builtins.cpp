// Filters on lists, mappings and numbers.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/builtins.hpp"
#include "text/utf8.hpp"

namespace tandem::text::jinja {
namespace {

std::vector<value> subject_items(const builtin_call& call) {
  return items_of(call.subject, call.spent);
}

// "a.b.0": attributes and indices.
value follow_path(const value& from, const value& path, budget& spent) {
  if (path.is_integral()) return item_of(from, path, spent);
  if (!path.is_string()) fail_render("an attribute must be named by a string");
  value at = from;
  std::string_view rest = path.view();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view step = rest.substr(0, dot);
    std::int64_t index = 0;
    const auto read = std::from_chars(step.data(), step.data() + step.size(), index);
    const bool number = !step.empty() && read.ec == std::errc{} && read.ptr == step.data() + step.size();
    at = number ? item_of(at, value::of(index), spent) : attribute_of(at, step, spent);
    if (dot == std::string_view::npos) return at;
    rest.remove_prefix(dot + 1);
  }
}

value keyed(const builtin_call& call, std::size_t place, const value& item) {
  const value* const path = call.argument(place);
  return path && !path->is(value_kind::none) ? follow_path(item, *path, call.spent) : item;
}

value folded(const builtin_call& call, bool case_sensitive, const value& key) {
  if (case_sensitive || !key.is_string()) return key;
  const call_arguments none;
  return find_text_builtin("lower")({*find_filter("lower"), key, none, call.spent});
}

value length(const builtin_call& call) {
  const value& it = call.subject;
  if (it.is_string()) return value::of(static_cast<std::int64_t>(count_characters(it.view())), false);
  if (it.is_undefined()) return value::of(std::int64_t{0});
  if (it.is_dict()) return value::of(static_cast<std::int64_t>(it.dict().entries.size()), false);
  if (!it.is_sequence()) fail_render("a " + std::string(kind_name(it.kind())) + " has no length");
  return value::of(static_cast<std::int64_t>(it.items().size()), false);
}

value first(const builtin_call& call) {
  const auto items = subject_items(call);
  return items.empty() ? value::undefined("first") : items.front();
}
value last(const builtin_call& call) {
  const auto items = subject_items(call);
  return items.empty() ? value::undefined("last") : items.back();
}
value to_list(const builtin_call& call) {
  return call.list(subject_items(call));
}

value fallback_for(const builtin_call& call) {
  const bool missing = call.subject.is_undefined() || (call.flag(1, false) && !is_true(call.subject));
  if (!missing) return call.subject;
  return call.argument(0) ? *call.argument(0) : call.text({});
}

value entries(const builtin_call& call) {
  if (call.subject.is_undefined()) return call.list({});
  if (!call.subject.is_dict()) fail_render("'items' needs a mapping");
  std::vector<value> pairs;
  call.spent.spend(call.subject.dict().entries.size());
  for (const auto& [key, item] : call.subject.dict().entries)
    pairs.push_back(value::list({key, item}, &call.spent, true));
  return call.list(std::move(pairs));
}

value join(const builtin_call& call) {
  const marked_text separator = call.argument(0) ? to_text(*call.argument(0), call.spent) : marked_text();
  marked_text out;
  bool begun = false;
  for (const value& item : subject_items(call)) {
    if (begun) out.append(separator);
    begun = true;
    out.append(to_text(keyed(call, 1, item), call.spent));
    call.spent.spend(1);
    if (out.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
  }
  return call.text(std::move(out));
}

value reverse(const builtin_call& call) {
  auto items = subject_items(call);
  std::reverse(items.begin(), items.end());
  if (!call.subject.is_string()) return call.list(std::move(items));
  marked_text out;
  for (const value& item : items) out.append(item.text());
  return call.text(std::move(out));
}

// Keys first, so that a failing comparison never leaves std::stable_sort half done with a broken order.
value sort(const builtin_call& call) {
  std::vector<std::pair<value, value>> pairs;
  for (const value& item : subject_items(call)) {
    pairs.emplace_back(folded(call, call.flag(1, false), keyed(call, 2, item)), item);
  }
  const bool down = call.flag(0, false);
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return down ? compare(b.first, a.first, call.spent) < 0 : compare(a.first, b.first, call.spent) < 0;
  });
  std::vector<value> sorted;
  for (auto& pair : pairs) sorted.push_back(std::move(pair.second));
  return call.list(std::move(sorted));
}

value sort_dict(const builtin_call& call) {
  if (!call.subject.is_dict()) fail_render("'dictsort' needs a mapping");
  const bool by_value = call.argument(1) && call.argument(1)->is_string() && call.argument(1)->view() == "value";
  const bool down = call.flag(2, false);
  std::vector<std::pair<value, value>> pairs;  // sort key, (key, item)
  for (const auto& [key, item] : call.subject.dict().entries) {
    pairs.emplace_back(folded(call, call.flag(0, false), by_value ? item : key),
                       value::list({key, item}, &call.spent, true));
  }
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return down ? compare(b.first, a.first, call.spent) < 0 : compare(a.first, b.first, call.spent) < 0;
  });
  std::vector<value> sorted;
  for (auto& pair : pairs) sorted.push_back(std::move(pair.second));
  return call.list(std::move(sorted));
}

value unique(const builtin_call& call) {
  std::vector<std::pair<value, value>> seen;
  for (const value& item : subject_items(call)) {
    const value key = folded(call, call.flag(0, false), keyed(call, 1, item));
    const bool known =
        std::any_of(seen.begin(), seen.end(), [&](const auto& each) { return equals(each.first, key, call.spent); });
    if (!known) seen.emplace_back(key, item);
  }
  std::vector<value> kept;
  for (auto& each : seen) kept.push_back(std::move(each.second));
  return call.list(std::move(kept));
}

value extreme(const builtin_call& call, int sign) {
  value best = value::undefined("an empty sequence");
  value best_key;
  for (const value& item : subject_items(call)) {
    const value key = folded(call, call.flag(0, false), keyed(call, 1, item));
    if (!best.is_undefined() && sign * compare(key, best_key, call.spent) <= 0) continue;
    best = item;
    best_key = key;
  }
  return best;
}
value smallest(const builtin_call& call) {
  return extreme(call, -1);
}
value largest(const builtin_call& call) {
  return extreme(call, 1);
}

value sum(const builtin_call& call) {
  value total = call.argument(1) ? *call.argument(1) : value::of(std::int64_t{0});
  for (const value& item : subject_items(call)) total = apply_operator("+", total, keyed(call, 0, item), call.spent);
  return total;
}

value absolute(const builtin_call& call) {
  if (!call.subject.is_number()) fail_render("'abs' needs a number");
  if (compare(call.subject, value::of(std::int64_t{0}), call.spent) >= 0) return call.subject;
  return apply_operator("-", value::of(std::int64_t{0}), call.subject, call.spent);
}

value to_integer(const builtin_call& call) {
  const value fallback = call.argument(0) ? *call.argument(0) : value::of(std::int64_t{0});
  const value& it = call.subject;
  if (it.is_integral()) return value::of(it.integer(), it.trusted());
  double number = 0;
  if (it.is(value_kind::real)) {
    number = it.real();
  } else {
    if (!it.is_string()) return fallback;
    const std::string_view text = it.view();
    std::int64_t whole = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (read.ec == std::errc{} && read.ptr == text.data() + text.size()) return value::of(whole, it.text().trusted());
    const auto real = std::from_chars(text.data(), text.data() + text.size(), number);
    if (real.ec != std::errc{} || real.ptr != text.data() + text.size()) return fallback;
  }
  if (!(std::fabs(number) < 9e18)) return fallback;
  return value::of(static_cast<std::int64_t>(number), it.is_string() ? it.text().trusted() : it.trusted());
}

value to_real(const builtin_call& call) {
  const value& it = call.subject;
  if (it.is_number()) return value::of(it.real(), it.trusted());
  double number = 0;
  if (it.is_string()) {
    const std::string_view text = it.view();
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && read.ec == std::errc{} && read.ptr == text.data() + text.size()) {
      return value::of(number, it.text().trusted());
    }
  }
  return call.argument(0) ? *call.argument(0) : value::of(0.0);
}

value round(const builtin_call& call) {
  if (!call.subject.is_number()) fail_render("'round' needs a number");
  const std::int64_t precision = call.integer(0, 0);
  if (precision < -15 || precision > 15) fail_render("'round' needs a precision from -15 to 15");
  const std::string_view method =
      call.argument(1) && call.argument(1)->is_string() ? call.argument(1)->view() : "common";
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = call.subject.real() * scale;
  const double whole = method == "ceil"    ? std::ceil(scaled)
                       : method == "floor" ? std::floor(scaled)
                                           : std::nearbyint(scaled);
  return value::of(whole / scale, call.subject.trusted());
}

value batch(const builtin_call& call) {
  const std::int64_t size = call.integer(0, 0);
  if (size < 1) fail_render("'batch' needs a size of at least 1");
  std::vector<value> batches;
  std::vector<value> current;
  for (value& item : subject_items(call)) {
    current.push_back(std::move(item));
    if (static_cast<std::int64_t>(current.size()) < size) continue;
    batches.push_back(call.list(std::exchange(current, {})));
  }
  if (!current.empty()) {
    while (call.argument(1) && static_cast<std::int64_t>(current.size()) < size) {
      call.spent.spend(1);
      current.push_back(*call.argument(1));
    }
    batches.push_back(call.list(std::move(current)));
  }
  return call.list(std::move(batches));
}

const signature& named_builtin(const value& name, const signature* (*find)(std::string_view)) {
  const signature* const known = name.is_string() ? find(name.view()) : nullptr;
  if (!known) fail_render("a filter or test named in an argument is not supported");
  return *known;
}

call_arguments arguments_from(const builtin_call& call, std::size_t first) {
  call_arguments rest;
  for (std::size_t i = first; i < call.given.placed.size(); ++i) rest.placed.push_back(call.given.placed[i]);
  rest.named = call.given.named;
  return rest;
}

void check_required(const signature& known, const call_arguments& given) {
  if (given.placed.size() + given.named.size() < known.required) {
    fail_render("'" + std::string(known.name) + "' gets too few arguments");
  }
}

value map_attribute(const builtin_call& call, const value& path) {
  const value* fallback = nullptr;
  for (const auto& [name, given] : call.given.named) {
    if (name == "default") fallback = &given;
  }
  std::vector<value> mapped;
  for (const value& item : subject_items(call)) {
    value found = follow_path(item, path, call.spent);
    mapped.push_back(found.is_undefined() && fallback ? *fallback : std::move(found));
  }
  return call.list(std::move(mapped));
}

value map(const builtin_call& call) {
  for (const auto& [name, given] : call.given.named) {
    if (name == "attribute") return map_attribute(call, given);
  }
  if (call.given.placed.empty()) fail_render("'map' needs a filter or an attribute");
  const signature& filter = named_builtin(call.given.placed.front(), find_filter);
  const call_arguments rest = arguments_from(call, 1);
  check_required(filter, rest);
  std::vector<value> mapped;
  for (const value& item : subject_items(call)) {
    call.spent.spend(1);
    mapped.push_back(apply_filter({filter, item, rest, call.spent}));
  }
  return call.list(std::move(mapped));
}

// select, reject: the first argument names the test; selectattr, rejectattr: an attribute comes before it.
value choose(const builtin_call& call, bool by_attribute, bool wanted) {
  const std::size_t test_place = by_attribute ? 1 : 0;
  const auto& placed = call.given.placed;
  if (by_attribute && placed.empty()) fail_render("'" + std::string(call.known.name) + "' needs an attribute");
  const signature* const test = placed.size() > test_place ? &named_builtin(placed[test_place], find_test) : nullptr;
  const call_arguments rest = arguments_from(call, test_place + 1);
  if (test) check_required(*test, rest);
  std::vector<value> chosen;
  for (const value& item : subject_items(call)) {
    call.spent.spend(1);
    const value tested = by_attribute ? follow_path(item, placed.front(), call.spent) : item;
    const bool holds = test ? apply_test({*test, tested, rest, call.spent}) : is_true(tested);
    if (holds == wanted) chosen.push_back(item);
  }
  return call.list(std::move(chosen));
}
value select(const builtin_call& call) {
  return choose(call, false, true);
}
value reject(const builtin_call& call) {
  return choose(call, false, false);
}
value select_attribute(const builtin_call& call) {
  return choose(call, true, true);
}
value reject_attribute(const builtin_call& call) {
  return choose(call, true, false);
}

struct entry {
  std::string_view name;
  builtin function;
};
constexpr entry kFilters[] = {{"abs", absolute},
                              {"batch", batch},
                              {"count", length},
                              {"length", length},
                              {"d", fallback_for},
                              {"default", fallback_for},
                              {"dictsort", sort_dict},
                              {"first", first},
                              {"float", to_real},
                              {"int", to_integer},
                              {"items", entries},
                              {"join", join},
                              {"last", last},
                              {"list", to_list},
                              {"map", map},
                              {"max", largest},
                              {"min", smallest},
                              {"reject", reject},
                              {"rejectattr", reject_attribute},
                              {"reverse", reverse},
                              {"round", round},
                              {"select", select},
                              {"selectattr", select_attribute},
                              {"sort", sort},
                              {"sum", sum},
                              {"unique", unique}};

}  // namespace

builtin find_sequence_filter(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const entry& each) { return each.name == name; });
  return found == std::end(kFilters) ? nullptr : found->function;
}

}  // namespace tandem::text::jinja
