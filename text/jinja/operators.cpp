// Operators, attributes, subscripts and iteration.

#include <algorithm>
#include <cmath>

#include "core/assert.hpp"
#include "text/jinja/builtins.hpp"
#include "text/utf8.hpp"

namespace tandem::text::jinja {
namespace {

[[noreturn]] void fail_operands(std::string_view symbol, const value& left, const value& right) {
  for (const value* side : {&left, &right}) {
    if (side->is_undefined()) fail_render("'" + std::string(side->name()) + "' is undefined");
  }
  fail_render("'" + std::string(symbol) + "' cannot be applied to a " + std::string(kind_name(left.kind())) +
              " and a " + std::string(kind_name(right.kind())));
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

value integer_power(std::int64_t base, std::int64_t exponent, bool trusted) {
  if (exponent < 0) return value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)), trusted);
  if (exponent > 64 && base != 0 && base != 1 && base != -1) fail_render("a number grows too large");
  std::int64_t made = 1;
  for (std::int64_t i = 0; i < (exponent > 64 ? 64 + exponent % 2 : exponent); ++i) {
    if (__builtin_mul_overflow(made, base, &made)) fail_render("a number grows too large");
  }
  return value::of(made, trusted);
}

value integer_operator(std::string_view symbol, const value& left, const value& right) {
  const std::int64_t a = left.integer();
  const std::int64_t b = right.integer();
  const bool trusted = left.trusted() && right.trusted();
  std::int64_t made = 0;
  bool overflow = false;
  if (symbol == "**") return integer_power(a, b, trusted);
  if (symbol == "+") {
    overflow = __builtin_add_overflow(a, b, &made);
  } else if (symbol == "-") {
    overflow = __builtin_sub_overflow(a, b, &made);
  } else if (symbol == "*") {
    overflow = __builtin_mul_overflow(a, b, &made);
  } else {
    if (b == 0) fail_render("a division by zero is asked for");
    if (symbol == "/") return value::of(static_cast<double>(a) / static_cast<double>(b), trusted);
    overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
    if (!overflow) made = symbol == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
  }
  if (overflow) fail_render("a number grows too large");
  return value::of(made, trusted);
}

value real_operator(std::string_view symbol, const value& left, const value& right) {
  const double a = left.real();
  const double b = right.real();
  const bool trusted = left.trusted() && right.trusted();
  if (symbol == "+") return value::of(a + b, trusted);
  if (symbol == "-") return value::of(a - b, trusted);
  if (symbol == "*") return value::of(a * b, trusted);
  if (symbol == "**") return value::of(std::pow(a, b), trusted);
  if (b == 0) fail_render("a division by zero is asked for");
  if (symbol == "/") return value::of(a / b, trusted);
  if (symbol == "//") return value::of(std::floor(a / b), trusted);
  return value::of(a - std::floor(a / b) * b, trusted);
}

value repeat(const value& it, std::int64_t times, budget& spent) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = it.is_string() ? it.text().size() : it.items().size();
  if (size != 0 && count > limits::kMaxTemplateOutputBytes / size) fail_bound("a repeated value grows too long");
  if (it.is_string()) {
    marked_text out;
    spent.spend(size == 0 ? 0 : count);
    for (std::size_t i = 0; size != 0 && i < count; ++i) out.append(it.text());
    return value::of(std::move(out), &spent);
  }
  spent.spend(size * count);
  std::vector<value> items;
  for (std::size_t i = 0; size != 0 && i < count; ++i) items.insert(items.end(), it.items().begin(), it.items().end());
  return value::list(std::move(items), &spent, it.is(value_kind::tuple));
}

value joined(const value& left, const value& right, budget& spent) {
  if (left.is_string()) {
    marked_text out = left.text();
    out.append(right.text());
    return value::of(std::move(out), &spent);
  }
  std::vector<value> items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  spent.spend(items.size());
  return value::list(std::move(items), &spent, left.is(value_kind::tuple));
}

std::vector<value> characters_of(const marked_text& text, budget& spent) {
  std::vector<value> characters;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = read_utf8(text.view(), at).length;
    spent.spend(1);
    characters.push_back(value::of(text.slice(at, at + length), &spent));
    at += length;
  }
  return characters;
}

value loop_attribute(const loop_node& loop, std::string_view name) {
  const auto& items = loop.items.items();
  const auto at = static_cast<std::int64_t>(loop.index0);
  const auto count = static_cast<std::int64_t>(items.size());
  if (name == "index") return value::of(at + 1);
  if (name == "index0") return value::of(at);
  if (name == "revindex") return value::of(count - at);
  if (name == "revindex0") return value::of(count - at - 1);
  if (name == "first") return value::of(at == 0);
  if (name == "last") return value::of(at + 1 == count);
  if (name == "length") return value::of(count);
  if (name == "depth") return value::of(static_cast<std::int64_t>(loop.depth0) + 1);
  if (name == "depth0") return value::of(static_cast<std::int64_t>(loop.depth0));
  if (name == "previtem") return at > 0 ? items[loop.index0 - 1] : value::undefined("loop.previtem");
  if (name == "nextitem") return at + 1 < count ? items[loop.index0 + 1] : value::undefined("loop.nextitem");
  return {};
}

struct slice_bounds {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t step = 1;
};

// Python's rules: negative counts from the end, then clamp.
slice_bounds bounds_of(const value* from, const value* to, const value* step, std::int64_t count) {
  const auto read = [](const value* part, std::int64_t fallback) {
    if (!part || part->is(value_kind::none)) return fallback;
    if (!part->is_integral()) fail_render("a slice needs integers");
    return part->integer();
  };
  slice_bounds made;
  made.step = read(step, 1);
  if (made.step == 0) fail_render("a slice's step cannot be zero");
  const bool up = made.step > 0;
  const auto clamp = [&](std::int64_t at) {
    if (at < 0) at = at < -count ? -1 : at + count;
    return up ? std::clamp<std::int64_t>(at, 0, count) : std::clamp<std::int64_t>(at, -1, count - 1);
  };
  const bool has_from = from && !from->is(value_kind::none);
  const bool has_to = to && !to->is(value_kind::none);
  made.from = has_from ? clamp(read(from, 0)) : (up ? 0 : count - 1);
  made.to = has_to ? clamp(read(to, 0)) : (up ? count : -1);
  return made;
}

}  // namespace

value apply_operator(std::string_view symbol, const value& left, const value& right, budget& spent) {
  spent.spend(1);
  if (symbol == "~") {
    marked_text out = to_text(left, spent);
    out.append(to_text(right, spent));
    return value::of(std::move(out), &spent);
  }
  if (left.is_integral() && right.is_integral()) return integer_operator(symbol, left, right);
  if (left.is_number() && right.is_number()) return real_operator(symbol, left, right);
  const auto repeatable = [](const value& it) { return it.is_string() || it.is_sequence(); };
  if (symbol == "*" && repeatable(left) && right.is_integral()) return repeat(left, right.integer(), spent);
  if (symbol == "*" && repeatable(right) && left.is_integral()) return repeat(right, left.integer(), spent);
  if (symbol == "+" && repeatable(left) && left.kind() == right.kind()) return joined(left, right, spent);
  fail_operands(symbol, left, right);
}

std::vector<value> items_of(const value& it, budget& spent) {
  if (it.is_undefined()) return {};
  if (it.is_sequence()) {
    spent.spend(it.items().size());
    return it.items();
  }
  if (it.is_string()) return characters_of(it.text(), spent);
  if (!it.is_dict()) fail_render("a " + std::string(kind_name(it.kind())) + " is nothing to walk through");
  std::vector<value> keys;
  spent.spend(it.dict().entries.size());
  for (const auto& entry : it.dict().entries) keys.push_back(entry.first);
  return keys;
}

value attribute_of(const value& it, std::string_view name, budget& spent) {
  spent.spend(1);
  if (it.is_undefined()) {
    fail_render("'" + std::string(it.name().empty() ? "value" : it.name()) + "' is undefined and has no attribute '" +
                std::string(name) + "'");
  }
  if (it.is(value_kind::loop)) return loop_attribute(it.loop(), name);
  const value* found = nullptr;
  if (it.is_dict()) found = it.dict().find(name);
  if (it.is(value_kind::name_space)) {
    const auto at = it.names()->names.find(std::string(name));
    if (at != it.names()->names.end()) found = &at->second;
  }
  return found ? *found : value::undefined(name);
}

value item_of(const value& it, const value& key, budget& spent) {
  spent.spend(1);
  if (it.is_dict()) {
    const value* const found = it.dict().find(key);
    return found ? *found : value::undefined("item");
  }
  if (key.is_string() && !it.is_undefined()) {
    value found = attribute_of(it, key.view(), spent);
    return found.is_undefined() ? value::undefined("item") : found;  // the key's text may not outlive the value
  }
  if (it.is_undefined()) fail_render("'" + std::string(it.name().empty() ? "value" : it.name()) + "' is undefined");
  if (!key.is_integral()) return value::undefined("item");
  std::int64_t at = key.integer();
  if (it.is_sequence()) {
    const auto count = static_cast<std::int64_t>(it.items().size());
    if (at < 0) at += count;
    return at >= 0 && at < count ? it.items()[static_cast<std::size_t>(at)] : value::undefined("item");
  }
  if (!it.is_string()) return value::undefined("item");
  const auto characters = characters_of(it.text(), spent);
  const auto count = static_cast<std::int64_t>(characters.size());
  if (at < 0) at += count;
  return at >= 0 && at < count ? characters[static_cast<std::size_t>(at)] : value::undefined("item");
}

bool contains(const value& container, const value& item, budget& spent) {
  spent.spend(1);
  if (container.is_string()) {
    if (!item.is_string()) fail_render("'in' needs a string before a string");
    spent.spend_bytes(container.view().size());
    return container.view().find(item.view()) != std::string_view::npos;
  }
  if (container.is_dict()) return container.dict().find(item) != nullptr;
  if (container.is_undefined()) return false;
  if (!container.is_sequence()) fail_render("'in' needs a sequence, not a " + std::string(kind_name(container.kind())));
  return std::any_of(container.items().begin(), container.items().end(),
                     [&](const value& each) { return equals(each, item, spent); });
}

value slice_of(const value& it, const value* from, const value* to, const value* step, budget& spent) {
  if (it.is_undefined()) fail_render("'" + std::string(it.name()) + "' is undefined");
  if (!it.is_string() && !it.is_sequence()) fail_render("a " + std::string(kind_name(it.kind())) + " cannot be sliced");
  const std::vector<value> items = items_of(it, spent);
  const slice_bounds bounds = bounds_of(from, to, step, static_cast<std::int64_t>(items.size()));
  std::vector<value> picked;
  const auto before_end = [&](std::int64_t at) { return bounds.step > 0 ? at < bounds.to : at > bounds.to; };
  for (std::int64_t at = bounds.from; before_end(at);) {
    picked.push_back(items[static_cast<std::size_t>(at)]);
    if (__builtin_add_overflow(at, bounds.step, &at)) break;
  }
  if (!it.is_string()) return value::list(std::move(picked), &spent, it.is(value_kind::tuple));
  marked_text out;
  for (const value& character : picked) out.append(character.text());
  return value::of(std::move(out), &spent);
}

}  // namespace tandem::text::jinja
