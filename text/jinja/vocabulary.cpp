#include "text/jinja/vocabulary.hpp"

#include <algorithm>
#include <span>

namespace tandem::text::jinja {
namespace {

constexpr signature kFilters[] = {
    {"abs", 0, {}},
    {"batch", 1, {"linecount", "fill_with"}},
    {"capitalize", 0, {}},
    {"count", 0, {}},
    {"d", 0, {"default_value", "boolean"}},
    {"default", 0, {"default_value", "boolean"}},
    {"dictsort", 0, {"case_sensitive", "by", "reverse"}},
    {"e", 0, {}},
    {"escape", 0, {}},
    {"first", 0, {}},
    {"float", 0, {"default"}},
    {"indent", 0, {"width", "first", "blank"}},
    {"int", 0, {"default", "base"}},
    {"items", 0, {}},
    {"join", 0, {"d", "attribute"}},
    {"last", 0, {}},
    {"length", 0, {}},
    {"list", 0, {}},
    {"lower", 0, {}},
    {"map", 0, {}, true},
    {"max", 0, {"case_sensitive", "attribute"}},
    {"min", 0, {"case_sensitive", "attribute"}},
    {"reject", 0, {}, true},
    {"rejectattr", 1, {}, true},
    {"replace", 2, {"old", "new", "count"}},
    {"reverse", 0, {}},
    {"round", 0, {"precision", "method"}},
    {"safe", 0, {}},
    {"select", 0, {}, true},
    {"selectattr", 1, {}, true},
    {"sort", 0, {"reverse", "case_sensitive", "attribute"}},
    {"string", 0, {}},
    {"sum", 0, {"attribute", "start"}},
    {"title", 0, {}},
    {"tojson", 0, {"indent", "ensure_ascii", "separators", "sort_keys"}},
    {"trim", 0, {"chars"}},
    {"unique", 0, {"case_sensitive", "attribute"}},
    {"upper", 0, {}},
};

constexpr signature kTests[] = {
    {"boolean", 0, {}}, {"callable", 0, {}},   {"defined", 0, {}},  {"divisibleby", 1, {"num"}},
    {"eq", 1, {"b"}},   {"equalto", 1, {"b"}}, {"even", 0, {}},     {"false", 0, {}},
    {"float", 0, {}},   {"ge", 1, {"b"}},      {"gt", 1, {"b"}},    {"in", 1, {"seq"}},
    {"integer", 0, {}}, {"iterable", 0, {}},   {"le", 1, {"b"}},    {"lower", 0, {}},
    {"lt", 1, {"b"}},   {"mapping", 0, {}},    {"ne", 1, {"b"}},    {"none", 0, {}},
    {"number", 0, {}},  {"odd", 0, {}},        {"sequence", 0, {}}, {"string", 0, {}},
    {"true", 0, {}},    {"undefined", 0, {}},  {"upper", 0, {}},
};

constexpr signature kMethods[] = {
    {"capitalize", 0, {}},
    {"count", 1, {"sub"}},
    {"cycle", 0, {}, true},
    {"endswith", 1, {"suffix"}},
    {"find", 1, {"sub"}},
    {"get", 1, {"key", "default"}},
    {"isdigit", 0, {}},
    {"items", 0, {}},
    {"join", 1, {"iterable"}},
    {"keys", 0, {}},
    {"lower", 0, {}},
    {"lstrip", 0, {"chars"}},
    {"removeprefix", 1, {"prefix"}},
    {"removesuffix", 1, {"suffix"}},
    {"replace", 2, {"old", "new", "count"}},
    {"rsplit", 0, {"sep", "maxsplit"}},
    {"rstrip", 0, {"chars"}},
    {"split", 0, {"sep", "maxsplit"}},
    {"splitlines", 0, {}},
    {"startswith", 1, {"prefix"}},
    {"strip", 0, {"chars"}},
    {"title", 0, {}},
    {"upper", 0, {}},
    {"values", 0, {}},
};

constexpr signature kFunctions[] = {
    {"dict", 0, {}, true},
    {"namespace", 0, {}, true},
    {"raise_exception", 1, {"message"}},
    {"range", 1, {"start", "stop", "step"}},
    {"strftime_now", 1, {"format"}},
};

const signature* find(std::span<const signature> all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [name](const signature& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::size_t signature::capacity() const {
  return static_cast<std::size_t>(
      std::count_if(parameters.begin(), parameters.end(), [](std::string_view each) { return !each.empty(); }));
}

std::optional<std::size_t> signature::find(std::string_view parameter) const {
  const auto found = std::find(parameters.begin(), parameters.end(), parameter);
  if (parameter.empty() || found == parameters.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters.begin());
}

const signature* find_filter(std::string_view name) {
  return find(kFilters, name);
}
const signature* find_test(std::string_view name) {
  return find(kTests, name);
}
const signature* find_method(std::string_view name) {
  return find(kMethods, name);
}
const signature* find_function(std::string_view name) {
  return find(kFunctions, name);
}

}  // namespace tandem::text::jinja
