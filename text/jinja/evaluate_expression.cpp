#include <array>
#include <ctime>

#include "core/assert.hpp"
#include "text/jinja/evaluator.hpp"
#include "text/utf8.hpp"

namespace tandem::text::jinja {
namespace {

// The template's own call: the local wall clock, as Hugging Face's strftime_now.
value format_now(const builtin_call& call) {
  const value& format = *call.argument(0);
  if (!format.is_string()) fail_render("'strftime_now' needs a format string");
  if (format.view().size() > 256) fail_render("'strftime_now' needs a shorter format");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 4096> made{};
  const std::string text(format.view());
  const std::size_t length = std::strftime(made.data(), made.size(), text.c_str(), &local);
  std::string shown(made.data(), length);
  if (!is_valid_utf8(shown)) fail_render("'strftime_now' gives text that is no UTF-8");
  return call.text(marked_text(std::move(shown), format.text().trusted()));
}

}  // namespace

const value* evaluator::find(std::string_view name) const {
  for (std::size_t i = scopes_.size(); i-- > floor_;) {
    for (const variable& each : scopes_[i]) {
      if (each.name == name) return &each.item;
    }
  }
  for (const variable& each : globals_) {
    if (each.name == name) return &each.item;
  }
  return nullptr;
}

void evaluator::set(std::string_view name, value item) {
  scope& inner = scopes_.size() > floor_ ? scopes_.back() : globals_;
  for (variable& each : inner) {
    if (each.name != name) continue;
    each.item = std::move(item);
    return;
  }
  inner.push_back({name, std::move(item)});
}

value evaluator::evaluate(const expression& it) {
  const evaluation_depth guard(*this);
  spent_.spend(1);
  line_ = it.line;
  value made = evaluate_inside(it);
  line_ = it.line;
  return made;
}

value evaluator::evaluate_inside(const expression& it) {
  switch (it.kind) {
    case expression_kind::literal:
      return it.literal;
    case expression_kind::name: {
      if (const value* const found = find(it.name)) return *found;
      return find_function(it.name) ? value::of_function(it.name) : value::undefined(it.name);
    }
    case expression_kind::attribute:
      return attribute_of(evaluate(*it.parts[0]), it.name, spent_);
    case expression_kind::subscript: {
      const value subject = evaluate(*it.parts[0]);
      return item_of(subject, evaluate(*it.parts[1]), spent_);
    }
    case expression_kind::slice:
      return evaluate_slice(it);
    case expression_kind::list:
      return value::list(evaluate_all(it), &spent_);
    case expression_kind::tuple:
      return value::list(evaluate_all(it), &spent_, true);
    case expression_kind::dict:
      return evaluate_dict(it);
    case expression_kind::negate:
    case expression_kind::plus:
      return evaluate_sign(it);
    case expression_kind::logical_not:
      return value::of(!is_true(evaluate(*it.parts[0])));
    case expression_kind::logical_and: {
      value left = evaluate(*it.parts[0]);
      return is_true(left) ? evaluate(*it.parts[1]) : left;
    }
    case expression_kind::logical_or: {
      value left = evaluate(*it.parts[0]);
      return is_true(left) ? left : evaluate(*it.parts[1]);
    }
    case expression_kind::binary: {
      const value left = evaluate(*it.parts[0]);
      const value right = evaluate(*it.parts[1]);
      line_ = it.line;
      return apply_operator(it.name, left, right, spent_);
    }
    case expression_kind::comparison:
      return evaluate_comparison(it);
    case expression_kind::conditional: {
      if (is_true(evaluate(*it.parts[1]))) return evaluate(*it.parts[0]);
      return it.parts[2] ? evaluate(*it.parts[2]) : value::undefined("the missing else");
    }
    case expression_kind::filter: {
      const value subject = evaluate(*it.parts[0]);
      const call_arguments given = arguments_of(it, 1);
      return apply_filter({*find_filter(it.name), subject, given, spent_});
    }
    case expression_kind::test:
      return evaluate_test(it);
    case expression_kind::call:
      return evaluate_call(it, nullptr);
    case expression_kind::method:
      return evaluate_method(it);
  }
  TANDEM_ASSERT(false);
}

std::vector<value> evaluator::evaluate_all(const expression& it) {
  std::vector<value> items;
  for (const auto& part : it.parts) items.push_back(evaluate(*part));
  return items;
}

value evaluator::evaluate_dict(const expression& it) {
  std::vector<std::pair<value, value>> entries;
  for (std::size_t i = 0; i + 1 < it.parts.size(); i += 2) {
    value key = evaluate(*it.parts[i]);
    entries.emplace_back(std::move(key), evaluate(*it.parts[i + 1]));
  }
  return value::dict(std::move(entries), &spent_);
}

value evaluator::evaluate_comparison(const expression& it) {
  value left = evaluate(*it.parts[0]);
  for (std::size_t i = 0; i < it.words.size(); ++i) {
    value right = evaluate(*it.parts[i + 1]);
    const std::string& word = it.words[i];
    bool holds = false;
    if (word == "==" || word == "!=") {
      holds = equals(left, right, spent_) == (word == "==");
    } else if (word == "in" || word == "not in") {
      holds = contains(right, left, spent_) == (word == "in");
    } else {
      const int order = compare(left, right, spent_);
      holds = word == "<" ? order < 0 : word == "<=" ? order <= 0 : word == ">" ? order > 0 : order >= 0;
    }
    if (!holds) return value::of(false);
    left = std::move(right);
  }
  return value::of(true);
}

value evaluator::evaluate_slice(const expression& it) {
  const value subject = evaluate(*it.parts[0]);
  std::array<value, 3> bounds;
  std::array<const value*, 3> given{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!it.parts[i + 1]) continue;
    bounds[i] = evaluate(*it.parts[i + 1]);
    given[i] = &bounds[i];
  }
  return slice_of(subject, given[0], given[1], given[2], spent_);
}

value evaluator::evaluate_sign(const expression& it) {
  const value subject = evaluate(*it.parts[0]);
  const value zero = value::of(std::int64_t{0});
  if (!subject.is_number()) fail_render("a sign needs a number");
  return apply_operator(it.kind == expression_kind::negate ? "-" : "+", zero, subject, spent_);
}

value evaluator::evaluate_test(const expression& it) {
  const value subject = evaluate(*it.parts[0]);
  const call_arguments given = arguments_of(it, 1);
  return value::of(apply_test({*find_test(it.name), subject, given, spent_}) != it.negated);
}

value evaluator::evaluate_method(const expression& it) {
  const value subject = evaluate(*it.parts[0]);
  const call_arguments given = arguments_of(it, 1);
  line_ = it.line;
  return apply_method({*find_method(it.name), subject, given, spent_});
}

call_arguments evaluator::arguments_of(const expression& it, std::size_t first) {
  call_arguments given;
  const std::size_t placed_end = it.parts.size() - it.words.size();
  for (std::size_t i = first; i < it.parts.size(); ++i) {
    if (i < placed_end) {
      given.placed.push_back(evaluate(*it.parts[i]));
    } else {
      given.named.emplace_back(it.words[i - placed_end], evaluate(*it.parts[i]));
    }
  }
  return given;
}

value evaluator::evaluate_call(const expression& it, const value* caller) {
  const call_arguments given = arguments_of(it, 0);
  line_ = it.line;
  const value* const found = find(it.name);
  if (found && found->is(value_kind::macro)) {
    const statement* const macro = found->macro();
    return call_macro(*macro, given, caller);
  }
  if (found && !found->is(value_kind::function)) fail_render("'" + it.name + "' is not callable");
  const signature* const known = find_function(found ? found->name() : std::string_view(it.name));
  if (!known) fail_render("'" + it.name + "' is undefined");
  return call_function(*known, given);
}

value evaluator::call_function(const signature& known, const call_arguments& given) {
  if (given.placed.size() + given.named.size() < known.required) {
    fail_render("'" + std::string(known.name) + "' gets too few arguments");
  }
  const value none{};
  const builtin_call call{known, none, given, spent_};
  if (known.name == "namespace") return make_namespace(given);
  if (known.name == "range") return make_range(call);
  if (known.name == "strftime_now") return format_now(call);
  if (known.name == "raise_exception") {
    const value* const message = call.argument(0);
    std::string text = message ? std::string(to_text(*message, spent_).view()) : std::string();
    throw template_failure{error_code::invalid_argument, line_, std::move(text), true};
  }
  TANDEM_ASSERT(known.name == "dict");
  std::vector<std::pair<value, value>> entries;
  for (const value& source : given.placed) {
    if (!source.is_dict()) fail_render("'dict' needs a mapping");
    spent_.spend(source.dict().entries.size());
    entries.insert(entries.end(), source.dict().entries.begin(), source.dict().entries.end());
  }
  for (const auto& [name, item] : given.named) {
    entries.emplace_back(value::of(marked_text(std::string(name), true), &spent_), item);
  }
  return value::dict(std::move(entries), &spent_);
}

value evaluator::make_namespace(const call_arguments& given) {
  spent_.hold(sizeof(namespace_node) * 4);  // until the render ends
  namespaces_.push_back(std::make_unique<namespace_node>());
  namespace_node* const made = namespaces_.back().get();
  for (const value& source : given.placed) {
    if (!source.is_dict()) fail_render("'namespace' needs a mapping");
    for (const auto& [key, item] : source.dict().entries) {
      spent_.spend(1);
      if (key.is_string()) made->names[std::string(key.view())] = item;
    }
  }
  for (const auto& [name, item] : given.named) made->names[std::string(name)] = item;
  return value::of(made);
}

value evaluator::make_range(const builtin_call& call) {
  const bool one = !call.argument(1);
  const std::int64_t from = one ? 0 : call.integer(0, 0);
  const std::int64_t to = one ? call.integer(0, 0) : call.integer(1, 0);
  const std::int64_t step = call.integer(2, 1);
  if (step == 0) fail_render("'range' needs a step that is not zero");
  std::vector<value> items;
  std::int64_t at = from;
  while (step > 0 ? at < to : at > to) {
    if (items.size() >= limits::kMaxTemplateRange) fail_bound("a range in it is too long");
    spent_.spend(1);
    items.push_back(value::of(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return call.list(std::move(items));
}

}  // namespace tandem::text::jinja
