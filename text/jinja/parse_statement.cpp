#include <algorithm>

#include "text/jinja/parser.hpp"

namespace tandem::text::jinja {

nesting::nesting(parser& owner) : owner_(owner) {
  if (++owner_.depth_ > limits::kMaxTemplateDepth) {
    --owner_.depth_;  // the destructor does not run
    fail_syntax(owner_.line(), "it is nested too deeply");
  }
}

const token& parser::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

token parser::take() {
  const token taken = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return taken;
}

bool parser::at_symbol(std::string_view symbol) const {
  return peek().type == token_type::symbol && peek().text == symbol;
}
bool parser::at_name(std::string_view name) const {
  return peek().type == token_type::name && peek().text == name;
}

bool parser::skip_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  take();
  return true;
}
bool parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  take();
  return true;
}
void parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail_syntax(line(), "'" + std::string(symbol) + "' is missing");
}
std::string parser::expect_name(std::string_view what) {
  if (peek().type != token_type::name) fail_syntax(line(), "the name of " + std::string(what) + " is missing");
  return take().text;
}
void parser::expect_block_end() {
  if (peek().type != token_type::block_end) fail_syntax(line(), "a tag holds more than it should");
  take();
}

block parser::parse() {
  block all = parse_block({});
  if (peek().type != token_type::end) fail_syntax(line(), "a tag '" + peek(1).text + "' ends nothing");
  for (const auto& [name, at] : called_) {
    if (!find_function(name) && !callable_.contains(name)) {
      fail_unsupported(at, "the function '" + name + "' is not supported");
    }
  }
  return all;
}

// Up to a tag named in `ends`, which stays.
block parser::parse_block(std::initializer_list<std::string_view> ends) {
  const nesting guard(*this);
  block made;
  while (peek().type != token_type::end) {
    if (peek().type == token_type::block_begin) {
      const std::string& name = peek(1).text;
      if (std::find(ends.begin(), ends.end(), name) != ends.end()) return made;
      if (name.starts_with("end") || name == "else" || name == "elif") return made;  // the caller complains
    }
    made.push_back(parse_piece());
  }
  return made;
}

std::unique_ptr<const statement> parser::parse_piece() {
  if (peek().type == token_type::block_begin) return parse_tag();
  auto made = std::make_unique<statement>();
  made->line = line();
  token piece = take();
  if (piece.type == token_type::data) {
    made->kind = statement_kind::text;
    made->text = value::of(marked_text(std::move(piece.text), true), nullptr);
    return made;
  }
  if (piece.type != token_type::print_begin) fail_syntax(piece.line, "text and tags are mixed up");
  made->kind = statement_kind::print;
  made->subject = parse_tuple();
  if (peek().type != token_type::print_end) fail_syntax(line(), "'}}' is missing");
  take();
  return made;
}

std::unique_ptr<const statement> parser::parse_tag() {
  auto made = std::make_unique<statement>();
  take();
  made->line = line();
  const std::string name = expect_name("a tag");
  if (name == "if") {
    parse_branches(*made);
  } else if (name == "for") {
    parse_loop(*made);
  } else if (name == "set") {
    parse_assignment(*made);
  } else if (name == "macro") {
    parse_macro(*made);
  } else if (name == "call") {
    parse_call_block(*made);
  } else if (name == "filter") {
    parse_filter_block(*made);
  } else if (name == "generation") {  // marks what training masks; the text inside counts as it is
    made->kind = statement_kind::group;
    expect_block_end();
    made->body = parse_block({"endgeneration"});
    expect_end("endgeneration");
  } else if (name == "break" || name == "continue") {
    if (loops_ == 0) fail_syntax(made->line, "'" + name + "' stands outside a loop");
    made->kind = name == "break" ? statement_kind::break_loop : statement_kind::continue_loop;
    expect_block_end();
  } else {
    fail_unsupported(made->line, "the tag '" + name + "' is not supported");
  }
  return made;
}

void parser::expect_end(std::string_view name) {
  if (peek().type != token_type::block_begin || peek(1).text != name) {
    fail_syntax(line(), "'" + std::string(name) + "' is missing");
  }
  take();
  take();
  expect_block_end();
}

void parser::parse_branches(statement& made) {
  made.kind = statement_kind::branch;
  expression_ptr condition = parse_tuple(true);
  while (true) {
    expect_block_end();
    const bool last = !condition;
    block body = parse_block({"elif", "else", "endif"});
    made.branches.push_back({std::move(condition), std::move(body)});
    const std::string& next = peek(1).text;
    if (peek().type != token_type::block_begin || last || next == "endif") return expect_end("endif");
    if (next != "elif" && next != "else") fail_syntax(line(), "'endif' is missing");
    take();
    condition = take().text == "elif" ? parse_tuple() : nullptr;
  }
}

std::vector<std::string> parser::parse_targets() {
  std::vector<std::string> names;
  const bool grouped = skip_symbol("(");
  do {
    if (!names.empty() && peek().type != token_type::name) break;
    names.push_back(expect_name("a variable"));
    callable_.insert(names.back());
  } while (skip_symbol(","));
  if (grouped) expect_symbol(")");
  return names;
}

void parser::parse_loop(statement& made) {
  made.kind = statement_kind::loop;
  made.targets = parse_targets();
  if (!skip_name("in")) fail_syntax(line(), "'in' is missing");
  made.subject = parse_tuple(false);
  if (skip_name("if")) made.condition = parse_expression();
  if (at_name("recursive")) fail_unsupported(line(), "a recursive loop is not supported");
  expect_block_end();
  ++loops_;
  made.body = parse_block({"else", "endfor"});
  --loops_;
  if (peek().type == token_type::block_begin && peek(1).text == "else") {
    take();
    take();
    expect_block_end();
    made.otherwise = parse_block({"endfor"});
  }
  expect_end("endfor");
}

void parser::parse_assignment(statement& made) {
  if (peek(1).type == token_type::symbol && peek(1).text == ".") {
    made.kind = statement_kind::assign_attribute;
    made.name = expect_name("a namespace");
    expect_symbol(".");
    made.attribute = expect_name("an attribute");
  } else {
    made.kind = statement_kind::assign;
    made.targets = parse_targets();
  }
  if (skip_symbol("=")) {
    made.subject = parse_tuple();
    return expect_block_end();
  }
  if (made.kind != statement_kind::assign || made.targets.size() != 1) fail_syntax(line(), "'=' is missing");
  made.kind = statement_kind::assign_block;
  made.name = made.targets.front();
  auto captured = start(expression_kind::name);
  captured->name = kCaptured;
  made.subject = parse_filters(finish(std::move(captured)));
  expect_block_end();
  made.body = parse_block({"endset"});
  expect_end("endset");
}

void parser::parse_parameters(statement& made) {
  expect_symbol("(");
  while (!at_symbol(")")) {
    parameter each;
    each.name = expect_name("a parameter");
    if (skip_symbol("=")) {
      each.fallback = parse_expression();
    } else if (!made.parameters.empty() && made.parameters.back().fallback) {
      fail_syntax(line(), "a parameter without a default follows one with a default");
    }
    callable_.insert(each.name);
    made.parameters.push_back(std::move(each));
    if (!skip_symbol(",")) break;
  }
  expect_symbol(")");
}

void parser::parse_macro(statement& made) {
  made.kind = statement_kind::macro;
  made.name = expect_name("a macro");
  callable_.insert(made.name);
  callable_.insert("caller");
  parse_parameters(made);
  expect_block_end();
  const std::size_t outer_loops = std::exchange(loops_, 0);
  made.body = parse_block({"endmacro"});
  loops_ = outer_loops;
  expect_end("endmacro");
}

void parser::parse_call_block(statement& made) {
  made.kind = statement_kind::call_block;
  if (at_symbol("(")) parse_parameters(made);
  made.subject = parse_unary(false);
  if (made.subject->kind != expression_kind::call) fail_syntax(made.line, "'call' needs a macro");
  expect_block_end();
  const std::size_t outer_loops = std::exchange(loops_, 0);
  made.body = parse_block({"endcall"});
  loops_ = outer_loops;
  expect_end("endcall");
}

void parser::parse_filter_block(statement& made) {
  made.kind = statement_kind::filter_block;
  auto captured = start(expression_kind::name);
  captured->name = kCaptured;
  auto filter = start(expression_kind::filter);
  filter->name = expect_name("a filter");
  filter->parts.push_back(finish(std::move(captured)));
  if (at_symbol("(")) parse_arguments(*filter);
  check_arguments(*filter, find_filter(filter->name), "filter");
  made.subject = parse_filters(finish(std::move(filter)));
  expect_block_end();
  made.body = parse_block({"endfilter"});
  expect_end("endfilter");
}

}  // namespace tandem::text::jinja
