#include <algorithm>
#include <charconv>
#include <span>

#include "text/jinja/parser.hpp"

namespace tandem::text::jinja {
namespace {

// Loosest first; all of them group to the left.
constexpr std::string_view kAdd[] = {"+", "-"};
constexpr std::string_view kJoin[] = {"~"};
constexpr std::string_view kMultiply[] = {"*", "/", "//", "%"};
constexpr std::string_view kPower[] = {"**"};
constexpr std::span<const std::string_view> kLevels[] = {kAdd, kJoin, kMultiply, kPower};

constexpr std::string_view kComparisons[] = {"==", "!=", "<=", ">=", "<", ">"};

}  // namespace

std::unique_ptr<expression> parser::start(expression_kind kind) const {
  auto made = std::make_unique<expression>();
  made->kind = kind;
  made->line = line();
  return made;
}

// Chains like a + b + c grow the tree without nesting the parser, so depth is counted on the tree too.
expression_ptr parser::finish(std::unique_ptr<expression> made) const {
  std::size_t deepest = 0;
  for (const auto& part : made->parts) {
    if (part) deepest = std::max(deepest, part->depth);
  }
  made->depth = deepest + 1;
  if (made->depth > limits::kMaxTemplateDepth) fail_syntax(made->line, "an expression is nested too deeply");
  return made;
}

expression_ptr parser::parse_expression(bool with_conditional) {
  const nesting guard(*this);
  expression_ptr then = parse_or();
  while (with_conditional && at_name("if")) {
    auto made = start(expression_kind::conditional);
    take();
    made->parts.push_back(std::move(then));
    made->parts.push_back(parse_or());
    made->parts.push_back(skip_name("else") ? parse_expression() : nullptr);
    then = finish(std::move(made));
  }
  return then;
}

expression_ptr parser::parse_tuple(bool with_conditional) {
  expression_ptr first = parse_expression(with_conditional);
  if (!at_symbol(",")) return first;
  auto made = start(expression_kind::tuple);
  made->parts.push_back(std::move(first));
  while (skip_symbol(",")) {
    const token_type next = peek().type;
    if (next == token_type::block_end || next == token_type::print_end || at_symbol(")") || at_symbol("=")) break;
    made->parts.push_back(parse_expression(with_conditional));
  }
  return finish(std::move(made));
}

expression_ptr parser::parse_or() {
  expression_ptr left = parse_and();
  while (at_name("or")) {
    auto made = start(expression_kind::logical_or);
    take();
    made->parts.push_back(std::move(left));
    made->parts.push_back(parse_and());
    left = finish(std::move(made));
  }
  return left;
}

expression_ptr parser::parse_and() {
  expression_ptr left = parse_not();
  while (at_name("and")) {
    auto made = start(expression_kind::logical_and);
    take();
    made->parts.push_back(std::move(left));
    made->parts.push_back(parse_not());
    left = finish(std::move(made));
  }
  return left;
}

expression_ptr parser::parse_not() {
  if (!at_name("not")) return parse_comparison();
  const nesting guard(*this);
  auto made = start(expression_kind::logical_not);
  take();
  made->parts.push_back(parse_not());
  return finish(std::move(made));
}

expression_ptr parser::parse_comparison() {
  auto made = start(expression_kind::comparison);
  expression_ptr first = parse_binary(0);
  while (true) {
    const bool symbol = peek().type == token_type::symbol && std::find(std::begin(kComparisons), std::end(kComparisons),
                                                                       peek().text) != std::end(kComparisons);
    const bool not_in = at_name("not") && peek(1).type == token_type::name && peek(1).text == "in";
    if (!symbol && !not_in && !at_name("in")) break;
    if (made->parts.empty()) made->parts.push_back(std::move(first));
    if (not_in) take();
    made->words.push_back(not_in ? "not in" : peek().text);
    take();
    made->parts.push_back(parse_binary(0));
  }
  return made->parts.empty() ? std::move(first) : finish(std::move(made));
}

expression_ptr parser::parse_binary(std::size_t level) {
  if (level == std::size(kLevels)) return parse_unary();
  const auto& symbols = kLevels[level];
  expression_ptr left = parse_binary(level + 1);
  while (peek().type == token_type::symbol && std::find(symbols.begin(), symbols.end(), peek().text) != symbols.end()) {
    auto made = start(expression_kind::binary);
    made->name = take().text;
    made->parts.push_back(std::move(left));
    made->parts.push_back(parse_binary(level + 1));
    left = finish(std::move(made));
  }
  return left;
}

expression_ptr parser::parse_unary(bool with_filters) {
  const nesting guard(*this);
  expression_ptr subject;
  if (at_symbol("-") || at_symbol("+")) {
    auto made = start(at_symbol("-") ? expression_kind::negate : expression_kind::plus);
    take();
    made->parts.push_back(parse_unary(false));
    subject = finish(std::move(made));
  } else {
    subject = parse_primary();
  }
  subject = parse_postfix(std::move(subject));
  return with_filters ? parse_filters(std::move(subject)) : std::move(subject);
}

expression_ptr parser::parse_primary() {
  switch (peek().type) {
    case token_type::name:
      return parse_literal_name();
    case token_type::integer:
    case token_type::real:
      return parse_number();
    case token_type::string: {
      auto made = start(expression_kind::literal);
      std::string text;
      while (peek().type == token_type::string) text += take().text;
      made->literal = value::of(marked_text(std::move(text), true), nullptr);
      return finish(std::move(made));
    }
    default:
      break;
  }
  if (at_symbol("[")) return parse_list();
  if (at_symbol("{")) return parse_dict();
  if (!skip_symbol("(")) fail_syntax(line(), "an expression is missing");
  auto empty = start(expression_kind::tuple);
  if (skip_symbol(")")) return finish(std::move(empty));
  expression_ptr inner = parse_tuple();
  expect_symbol(")");
  return inner;
}

expression_ptr parser::parse_literal_name() {
  auto made = start(expression_kind::literal);
  const std::string name = take().text;
  if (name == "true" || name == "True") {
    made->literal = value::of(true);
  } else if (name == "false" || name == "False") {
    made->literal = value::of(false);
  } else if (name == "none" || name == "None") {
    made->literal = value::none();
  } else {
    made->kind = expression_kind::name;
    made->name = name;
  }
  return finish(std::move(made));
}

expression_ptr parser::parse_number() {
  auto made = start(expression_kind::literal);
  const token number = take();
  const char* const end = number.text.data() + number.text.size();
  std::from_chars_result read{};
  if (number.type == token_type::integer) {
    std::int64_t parsed = 0;
    read = std::from_chars(number.text.data(), end, parsed);
    made->literal = value::of(parsed);
  } else {
    double parsed = 0;
    read = std::from_chars(number.text.data(), end, parsed);
    made->literal = value::of(parsed);
  }
  if (read.ec != std::errc{}) fail_syntax(made->line, "a number is too large");
  return finish(std::move(made));
}

expression_ptr parser::parse_list() {
  auto made = start(expression_kind::list);
  expect_symbol("[");
  while (!at_symbol("]")) {
    made->parts.push_back(parse_expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol("]");
  return finish(std::move(made));
}

expression_ptr parser::parse_dict() {
  auto made = start(expression_kind::dict);
  expect_symbol("{");
  while (!at_symbol("}")) {
    made->parts.push_back(parse_expression());
    expect_symbol(":");
    made->parts.push_back(parse_expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol("}");
  return finish(std::move(made));
}

expression_ptr parser::parse_postfix(expression_ptr subject) {
  while (true) {
    if (at_symbol(".")) {
      subject = parse_attribute(std::move(subject));
    } else if (at_symbol("[")) {
      subject = parse_subscript(std::move(subject));
    } else if (at_symbol("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

expression_ptr parser::parse_attribute(expression_ptr subject) {
  expect_symbol(".");
  auto made = start(expression_kind::attribute);
  if (peek().type == token_type::integer) {  // x.0 is x[0]
    made->kind = expression_kind::subscript;
    made->parts.push_back(std::move(subject));
    made->parts.push_back(parse_number());
    return finish(std::move(made));
  }
  made->name = expect_name("an attribute");
  made->parts.push_back(std::move(subject));
  return finish(std::move(made));
}

expression_ptr parser::parse_subscript(expression_ptr subject) {
  auto made = start(expression_kind::subscript);
  expect_symbol("[");
  made->parts.push_back(std::move(subject));
  const auto optional_part = [this]() -> expression_ptr {
    return at_symbol(":") || at_symbol("]") ? nullptr : parse_expression();
  };
  expression_ptr first = optional_part();
  if (!first && at_symbol("]")) fail_syntax(line(), "a subscript is empty");
  made->parts.push_back(std::move(first));
  if (at_symbol(":")) {
    made->kind = expression_kind::slice;
    while (made->parts.size() < 4 && skip_symbol(":")) made->parts.push_back(optional_part());
    while (made->parts.size() < 4) made->parts.push_back(nullptr);
  }
  expect_symbol("]");
  return finish(std::move(made));
}

expression_ptr parser::parse_call(expression_ptr subject) {
  auto made = start(expression_kind::call);
  if (subject->kind == expression_kind::attribute) {
    made->kind = expression_kind::method;
    made->name = subject->name;
    // The object moves out of the attribute expression that is thrown away.
    auto& parts = const_cast<expression&>(*subject).parts;
    made->parts.push_back(std::move(parts.front()));
  } else if (subject->kind == expression_kind::name) {
    made->name = subject->name;
    called_.emplace_back(made->name, made->line);
  } else {
    fail_unsupported(made->line, "only functions, macros and methods can be called");
  }
  parse_arguments(*made);
  if (made->kind == expression_kind::method) check_arguments(*made, find_method(made->name), "method");
  if (const signature* const known = made->kind == expression_kind::call ? find_function(made->name) : nullptr) {
    check_arguments(*made, known, "function");
  }
  return finish(std::move(made));
}

expression_ptr parser::parse_filters(expression_ptr subject) {
  while (true) {
    if (at_symbol("|")) {
      subject = parse_filter(std::move(subject));
    } else if (at_name("is")) {
      subject = parse_test(std::move(subject));
    } else {
      return subject;
    }
  }
}

expression_ptr parser::parse_filter(expression_ptr subject) {
  expect_symbol("|");
  auto made = start(expression_kind::filter);
  made->name = expect_name("a filter");
  made->parts.push_back(std::move(subject));
  if (at_symbol("(")) parse_arguments(*made);
  check_arguments(*made, find_filter(made->name), "filter");
  return finish(std::move(made));
}

expression_ptr parser::parse_test(expression_ptr subject) {
  static constexpr std::string_view kNoArgument[] = {"else", "or", "and", "is", "if", "not", "in"};
  auto made = start(expression_kind::test);
  take();
  made->negated = skip_name("not");
  made->name = expect_name("a test");
  made->parts.push_back(std::move(subject));
  const token_type next = peek().type;
  const bool word = next == token_type::name &&
                    std::find(std::begin(kNoArgument), std::end(kNoArgument), peek().text) == std::end(kNoArgument);
  if (at_symbol("(")) {
    parse_arguments(*made);
  } else if (word || next == token_type::string || next == token_type::integer || next == token_type::real ||
             at_symbol("[") || at_symbol("{")) {
    made->parts.push_back(parse_postfix(parse_primary()));
  }
  for (const std::string_view python : {"None", "True", "False"}) {
    if (made->name == python) made->name[0] = static_cast<char>(made->name[0] + ('a' - 'A'));
  }
  check_arguments(*made, find_test(made->name), "test");
  return finish(std::move(made));
}

void parser::parse_arguments(expression& call) {
  const nesting guard(*this);
  expect_symbol("(");
  while (!at_symbol(")")) {
    if (at_symbol("*") || at_symbol("**")) fail_unsupported(line(), "unpacked arguments are not supported");
    const bool keyword = peek().type == token_type::name && peek(1).type == token_type::symbol && peek(1).text == "=";
    if (keyword) {
      call.words.push_back(take().text);
      take();
    } else if (!call.words.empty()) {
      fail_syntax(line(), "a positional argument follows a named one");
    }
    call.parts.push_back(parse_expression());
    if (!skip_symbol(",")) break;
  }
  expect_symbol(")");
}

void parser::check_arguments(const expression& call, const signature* known, std::string_view what) const {
  std::string name(what);
  name += " '" + call.name + "'";
  if (!known) fail_unsupported(call.line, "the " + name + " is not supported");
  if (known->open) return;
  const std::size_t subject = call.kind == expression_kind::call ? 0 : 1;
  const std::size_t given = call.parts.size() - subject;
  if (given > known->capacity()) fail_syntax(call.line, "the " + name + " gets too many arguments");
  if (given < known->required) fail_syntax(call.line, "the " + name + " gets too few arguments");
  for (std::size_t i = 0; i < call.words.size(); ++i) {
    const auto place = known->find(call.words[i]);
    if (!place) fail_unsupported(call.line, "the " + name + " has no argument '" + call.words[i] + "'");
    const bool twice =
        *place < given - call.words.size() || std::count(call.words.begin(), call.words.end(), call.words[i]) > 1;
    if (twice) fail_syntax(call.line, "the " + name + " gets '" + call.words[i] + "' twice");
  }
}

}  // namespace tandem::text::jinja
