// Filters and methods on text. Every one keeps the marks of who wrote which part.

#include <utf8proc.h>

#include <algorithm>

#include "text/jinja/builtins.hpp"
#include "text/utf8.hpp"

namespace tandem::text::jinja {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";

marked_text subject_text(const builtin_call& call) {
  marked_text text = to_text(call.subject, call.spent);
  call.spent.spend_bytes(text.size() * 4);
  return text;
}

std::string_view argument_view(const builtin_call& call, std::size_t place, std::string_view fallback) {
  const value* const given = call.argument(place);
  if (!given || given->is(value_kind::none)) return fallback;
  if (!given->is_string()) fail_render("'" + std::string(call.known.name) + "' needs a string");
  return given->view();
}

// Length of the character of `set` that `text` has at its front (or back), 0 when none.
std::size_t edge_match(std::string_view text, std::string_view set, bool front) {
  for (std::size_t at = 0; at < set.size();) {
    const std::size_t length = read_utf8(set, at).length;
    const std::string_view character = set.substr(at, length);
    if (front ? text.starts_with(character) : text.ends_with(character)) return length;
    at += length;
  }
  return 0;
}

value strip(const builtin_call& call, bool left, bool right) {
  const marked_text text = subject_text(call);
  const std::string_view set = argument_view(call, 0, kSpace);
  std::size_t begin = 0;
  std::size_t end = text.size();
  const auto rest = [&] { return text.view().substr(begin, end - begin); };
  while (left && begin < end) {
    const std::size_t cut = edge_match(rest(), set, true);
    call.spent.spend(1);
    if (cut == 0) break;
    begin += cut;
  }
  while (right && begin < end) {
    const std::size_t cut = edge_match(rest(), set, false);
    call.spent.spend(1);
    if (cut == 0) break;
    end -= cut;
  }
  return call.text(text.slice(begin, end));
}

value strip_both(const builtin_call& call) {
  return strip(call, true, true);
}
value strip_left(const builtin_call& call) {
  return strip(call, true, false);
}
value strip_right(const builtin_call& call) {
  return strip(call, false, true);
}

enum class letter_case { upper, lower, title, capital };

value change_case(const builtin_call& call, letter_case wanted) {
  bool word_begins = true;
  return call.text(subject_text(call).mapped([&](std::string_view part) {
    std::string out;
    for (std::size_t at = 0; at < part.size();) {
      const utf8_unit unit = read_utf8(part, at);
      const auto point = static_cast<utf8proc_int32_t>(unit.code_point);
      const bool up = wanted == letter_case::upper || (wanted != letter_case::lower && word_begins);
      const auto changed = up ? utf8proc_toupper(point) : utf8proc_tolower(point);
      append_utf8(out, static_cast<std::uint32_t>(changed));
      const bool letter = utf8proc_toupper(point) != point || utf8proc_tolower(point) != point;
      word_begins = wanted == letter_case::title && !letter;
      at += unit.length;
    }
    return out;
  }));
}

value upper(const builtin_call& call) {
  return change_case(call, letter_case::upper);
}
value lower(const builtin_call& call) {
  return change_case(call, letter_case::lower);
}
value title(const builtin_call& call) {
  return change_case(call, letter_case::title);
}
value capitalize(const builtin_call& call) {
  return change_case(call, letter_case::capital);
}

value replace(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const marked_text old = to_text(*call.argument(0), call.spent);
  const marked_text fresh = to_text(*call.argument(1), call.spent);
  const bool limited = call.argument(2) && call.argument(2)->is_number();
  std::int64_t left = limited ? call.integer(2, -1) : -1;
  marked_text out;
  std::size_t done = 0;
  std::size_t from = 0;
  while (left != 0 && from <= text.size()) {
    const std::size_t found = text.view().find(old.view(), from);
    if (found == std::string_view::npos) break;
    call.spent.spend(1 + fresh.size() / 64);
    out.append(text.slice(done, found));
    out.append(fresh);
    done = found + old.size();
    // An empty `old` stands between all characters.
    from = old.empty() ? (found < text.size() ? found + read_utf8(text.view(), found).length : found + 1) : done;
    if (left > 0) --left;
    if (out.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
  }
  out.append(text.slice(done, text.size()));
  return call.text(std::move(out));
}

value escape(const builtin_call& call) {
  return call.text(subject_text(call).mapped([](std::string_view part) {
    std::string out;
    for (const char c : part) {
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&#34;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          out += c;
      }
    }
    return out;
  }));
}

value as_text(const builtin_call& call) {
  return call.text(subject_text(call));
}

value indent(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const value* const width = call.argument(0);
  const std::int64_t spaces = width && width->is_string() ? 0 : call.integer(0, 4);
  if (spaces < 0 || spaces > 1000) fail_render("'indent' needs a width from 0 to 1000");
  const marked_text pad = width && width->is_string()
                              ? width->text()
                              : marked_text(std::string(static_cast<std::size_t>(spaces), ' '), true);
  const bool blank = call.flag(2, false);
  marked_text out;
  bool first_line = true;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t newline = std::min(text.view().find('\n', at), text.size());
    call.spent.spend(1 + pad.size() / 64);
    const bool padded = first_line ? call.flag(1, false) : (blank || newline > at);
    if (padded) out.append(pad);
    out.append(text.slice(at, std::min(newline + 1, text.size())));
    if (out.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
    first_line = false;
    at = newline + 1;
  }
  return call.text(std::move(out));
}

value split_at_space(const builtin_call& call, const marked_text& text, std::int64_t limit) {
  std::vector<value> parts;
  std::size_t at = text.view().find_first_not_of(kSpace);
  while (at != std::string_view::npos) {
    std::size_t end = std::min(text.view().find_first_of(kSpace, at), text.size());
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      end = text.view().find_last_not_of(kSpace) + 1;
    }
    parts.push_back(call.text(text.slice(at, end)));
    at = text.view().find_first_not_of(kSpace, end);
  }
  return call.list(std::move(parts));
}

value split(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const std::int64_t limit = call.integer(1, -1);
  const value* const given = call.argument(0);
  if (!given || given->is(value_kind::none)) return split_at_space(call, text, limit);
  const std::string_view separator = argument_view(call, 0, "");
  if (separator.empty()) fail_render("'split' needs a separator that is not empty");
  std::vector<value> parts;
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t found = text.view().find(separator, at);
    if (found == std::string_view::npos) break;
    parts.push_back(call.text(text.slice(at, found)));
    at = found + separator.size();
  }
  parts.push_back(call.text(text.slice(at, text.size())));
  return call.list(std::move(parts));
}

value split_from_right(const builtin_call& call) {
  const std::int64_t limit = call.integer(1, -1);
  const value* const given = call.argument(0);
  if (limit < 0) return split(call);
  if (!given || given->is(value_kind::none)) fail_render("'rsplit' with a limit needs a separator");
  const marked_text text = subject_text(call);
  const std::string_view separator = argument_view(call, 0, "");
  if (separator.empty()) fail_render("'rsplit' needs a separator that is not empty");
  std::vector<value> parts;
  std::size_t end = text.size();
  while (static_cast<std::int64_t>(parts.size()) < limit) {
    const std::size_t found = text.view().substr(0, end).rfind(separator);
    if (found == std::string_view::npos) break;
    parts.push_back(call.text(text.slice(found + separator.size(), end)));
    end = found;
  }
  parts.push_back(call.text(text.slice(0, end)));
  std::reverse(parts.begin(), parts.end());
  return call.list(std::move(parts));
}

value split_lines(const builtin_call& call) {
  const marked_text text = subject_text(call);
  std::vector<value> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.view().find_first_of("\r\n", at), text.size());
    parts.push_back(call.text(text.slice(at, end)));
    at = end + (text.view().substr(end, 2) == "\r\n" ? 2 : 1);
  }
  return call.list(std::move(parts));
}

// A string, or a tuple of strings of which one must fit.
bool has_edge(const builtin_call& call, bool front) {
  const marked_text text = subject_text(call);
  const auto fits = [&](const value& edge) {
    if (!edge.is_string()) fail_render("'" + std::string(call.known.name) + "' needs a string");
    return front ? text.view().starts_with(edge.view()) : text.view().ends_with(edge.view());
  };
  const value& edge = *call.argument(0);
  if (!edge.is(value_kind::tuple)) return fits(edge);
  return std::any_of(edge.items().begin(), edge.items().end(), fits);
}

value starts_with(const builtin_call& call) {
  return value::of(has_edge(call, true));
}
value ends_with(const builtin_call& call) {
  return value::of(has_edge(call, false));
}

value remove_prefix(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const std::size_t cut = has_edge(call, true) ? argument_view(call, 0, "").size() : 0;
  return call.text(text.slice(cut, text.size()));
}
value remove_suffix(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const std::size_t cut = has_edge(call, false) ? argument_view(call, 0, "").size() : 0;
  return call.text(text.slice(0, text.size() - cut));
}

value find_place(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const std::size_t found = text.view().find(argument_view(call, 0, ""));
  if (found == std::string_view::npos) return value::of(std::int64_t{-1}, text.trusted());
  return value::of(static_cast<std::int64_t>(count_characters(text.view().substr(0, found))), text.trusted());
}

value count_places(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const std::string_view part = argument_view(call, 0, "");
  if (part.empty()) fail_render("'count' needs a text that is not empty");
  std::int64_t count = 0;
  for (std::size_t at = text.view().find(part); at != std::string_view::npos;
       at = text.view().find(part, at + part.size())) {
    ++count;
  }
  return value::of(count, text.trusted());
}

value is_digits(const builtin_call& call) {
  const marked_text text = subject_text(call);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return value::of(!text.empty() && std::all_of(text.view().begin(), text.view().end(), digit));
}

value join_method(const builtin_call& call) {
  const marked_text separator = subject_text(call);
  marked_text out;
  bool first = true;
  for (const value& item : items_of(*call.argument(0), call.spent)) {
    if (!item.is_string()) fail_render("'join' needs strings");
    if (!first) out.append(separator);
    first = false;
    out.append(item.text());
    if (out.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
  }
  return call.text(std::move(out));
}

struct entry {
  std::string_view name;
  builtin function;
};

constexpr entry kShared[] = {{"upper", upper},     {"lower", lower},     {"title", title},   {"capitalize", capitalize},
                             {"replace", replace}, {"trim", strip_both}, {"escape", escape}, {"e", escape},
                             {"string", as_text},  {"safe", as_text},    {"indent", indent}};

constexpr entry kMethods[] = {{"strip", strip_both},
                              {"lstrip", strip_left},
                              {"rstrip", strip_right},
                              {"split", split},
                              {"rsplit", split_from_right},
                              {"splitlines", split_lines},
                              {"startswith", starts_with},
                              {"endswith", ends_with},
                              {"removeprefix", remove_prefix},
                              {"removesuffix", remove_suffix},
                              {"find", find_place},
                              {"count", count_places},
                              {"isdigit", is_digits},
                              {"join", join_method},
                              {"upper", upper},
                              {"lower", lower},
                              {"title", title},
                              {"capitalize", capitalize},
                              {"replace", replace}};

template <class Table>
builtin find_in(const Table& table, std::string_view name) {
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const entry& each) { return each.name == name; });
  return found == std::end(table) ? nullptr : found->function;
}

}  // namespace

builtin find_text_builtin(std::string_view name) {
  return find_in(kShared, name);
}
builtin find_text_method(std::string_view name) {
  return find_in(kMethods, name);
}

}  // namespace tandem::text::jinja
