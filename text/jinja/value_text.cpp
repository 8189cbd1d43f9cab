// Comparing values and writing them as text, as Python does.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "text/jinja/value.hpp"
#include "text/utf8.hpp"

namespace tandem::text::jinja {
namespace {

bool equal_lists(const std::vector<value>& left, const std::vector<value>& right, budget& spent) {
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(),
                                                   [&](const value& a, const value& b) { return equals(a, b, spent); });
}

bool equal_dicts(const dict_node& left, const dict_node& right, budget& spent) {
  if (left.entries.size() != right.entries.size()) return false;
  return std::all_of(left.entries.begin(), left.entries.end(), [&](const auto& entry) {
    const value* const other = right.find(entry.first);
    return other && equals(entry.second, *other, spent);
  });
}

void append_quoted(marked_text& out, const marked_text& text) {
  const bool has_single = text.view().find('\'') != std::string_view::npos;
  const bool has_double = text.view().find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  const std::string edge(1, quote);
  out.append(edge, false);
  out.append(text.mapped([quote](std::string_view part) {
    std::string escaped;
    for (const char c : part) {
      if (c == quote || c == '\\') {
        escaped += '\\';
        escaped += c;
      } else if (c == '\n') {
        escaped += "\\n";
      } else if (c == '\r') {
        escaped += "\\r";
      } else if (c == '\t') {
        escaped += "\\t";
      } else {
        escaped += c;
      }
    }
    return escaped;
  }));
  out.append(edge, false);
}

void append_items(marked_text& out, const value& it, budget& spent) {
  const bool tuple = it.is(value_kind::tuple);
  out.append(tuple ? "(" : "[", false);
  bool first = true;
  for (const value& item : it.items()) {
    if (!first) out.append(", ", false);
    first = false;
    append_repr(out, item, spent);
  }
  if (tuple && it.items().size() == 1) out.append(",", false);
  out.append(tuple ? ")" : "]", false);
}

void append_entries(marked_text& out, const dict_node& dict, budget& spent) {
  out.append("{", false);
  bool first = true;
  for (const auto& [key, item] : dict.entries) {
    if (!first) out.append(", ", false);
    first = false;
    append_repr(out, key, spent);
    out.append(": ", false);
    append_repr(out, item, spent);
  }
  out.append("}", false);
}

}  // namespace

bool equals(const value& left, const value& right, budget& spent) {
  spent.spend(1);
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral()) return left.integer() == right.integer();
    return left.real() == right.real();
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case value_kind::undefined:
    case value_kind::none:
      return true;
    case value_kind::string:
      spent.spend_bytes(std::min(left.view().size(), right.view().size()));
      return left.view() == right.view();
    case value_kind::list:
    case value_kind::tuple:
      return equal_lists(left.items(), right.items(), spent);
    case value_kind::dict:
      return equal_dicts(left.dict(), right.dict(), spent);
    case value_kind::name_space:
      return left.names() == right.names();
    case value_kind::macro:
      return left.macro() == right.macro();
    default:
      return false;
  }
}

int compare(const value& left, const value& right, budget& spent) {
  spent.spend(1);
  const auto order = [](const auto& a, const auto& b) { return a < b ? -1 : (b < a ? 1 : 0); };
  if (left.is_integral() && right.is_integral()) return order(left.integer(), right.integer());
  if (left.is_number() && right.is_number()) return order(left.real(), right.real());
  if (left.is_string() && right.is_string()) {
    spent.spend_bytes(std::min(left.view().size(), right.view().size()));
    return order(left.view(), right.view());
  }
  if (left.is_sequence() && left.kind() == right.kind()) {
    const auto& a = left.items();
    const auto& b = right.items();
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!equals(a[i], b[i], spent)) return compare(a[i], b[i], spent);
    }
    return order(a.size(), b.size());
  }
  fail_render("a " + std::string(kind_name(left.kind())) + " and a " + std::string(kind_name(right.kind())) +
              " have no order");
}

// Python: the shortest digits that read back the same; an exponent below 1e-4 and from 1e16 on.
std::string real_to_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const double size = std::fabs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(digits, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

void append_repr(marked_text& out, const value& it, budget& spent) {
  spent.spend(1);
  if (out.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
  switch (it.kind()) {
    case value_kind::undefined:
      return out.append("Undefined", false);
    case value_kind::none:
      return out.append("None", false);
    case value_kind::boolean:
      return out.append(it.integer() != 0 ? "True" : "False", it.trusted());
    case value_kind::integer:
      return out.append(std::to_string(it.integer()), it.trusted());
    case value_kind::real:
      return out.append(real_to_text(it.real()), it.trusted());
    case value_kind::string:
      spent.spend_bytes(it.view().size());
      return append_quoted(out, it.text());
    case value_kind::list:
    case value_kind::tuple:
      return append_items(out, it, spent);
    case value_kind::dict:
      return append_entries(out, it.dict(), spent);
    default:
      fail_render("a " + std::string(kind_name(it.kind())) + " cannot be printed");
  }
}

marked_text to_text(const value& it, budget& spent) {
  if (it.is_string()) return it.text();
  marked_text out;
  if (!it.is_undefined()) append_repr(out, it, spent);
  return out;
}

}  // namespace tandem::text::jinja
