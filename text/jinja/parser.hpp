#pragma once
/// Tokens → syntax tree, by recursive descent with bounded depth. Precedence is Jinja2's.

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/jinja/lexer.hpp"
#include "text/jinja/syntax.hpp"
#include "text/jinja/vocabulary.hpp"

namespace tandem::text::jinja {

/// One use per template.
class parser {
 public:
  explicit parser(std::string_view source) : tokens_(tokenize(source)) {}
  /// Throws template_failure.
  block parse();

 private:
  // Reading tokens.
  const token& peek(std::size_t ahead = 0) const;
  token take();
  bool at_symbol(std::string_view symbol) const;
  bool at_name(std::string_view name) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  std::string expect_name(std::string_view what);
  void expect_block_end();

  // Statements (parse_statement.cpp).
  block parse_block(std::initializer_list<std::string_view> ends);
  std::unique_ptr<const statement> parse_piece();
  std::unique_ptr<const statement> parse_tag();
  void parse_branches(statement& made);
  void parse_loop(statement& made);
  void parse_assignment(statement& made);
  void parse_macro(statement& made);
  void parse_call_block(statement& made);
  void parse_filter_block(statement& made);
  void parse_parameters(statement& made);
  std::vector<std::string> parse_targets();
  void expect_end(std::string_view name);

  // Expressions (parse_expression.cpp).
  expression_ptr parse_expression(bool with_conditional = true);
  expression_ptr parse_tuple(bool with_conditional = true);
  expression_ptr parse_or();
  expression_ptr parse_and();
  expression_ptr parse_not();
  expression_ptr parse_comparison();
  expression_ptr parse_binary(std::size_t level);
  expression_ptr parse_unary(bool with_filters = true);
  expression_ptr parse_primary();
  expression_ptr parse_literal_name();
  expression_ptr parse_number();
  expression_ptr parse_list();
  expression_ptr parse_dict();
  expression_ptr parse_postfix(expression_ptr subject);
  expression_ptr parse_attribute(expression_ptr subject);
  expression_ptr parse_subscript(expression_ptr subject);
  expression_ptr parse_call(expression_ptr subject);
  expression_ptr parse_filters(expression_ptr subject);
  expression_ptr parse_filter(expression_ptr subject);
  expression_ptr parse_test(expression_ptr subject);
  void parse_arguments(expression& call);
  void check_arguments(const expression& call, const signature* known, std::string_view what) const;

  std::unique_ptr<expression> start(expression_kind kind) const;
  expression_ptr finish(std::unique_ptr<expression> made) const;
  int line() const { return peek().line; }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t loops_ = 0;
  std::unordered_set<std::string> callable_;         // macros and assigned names: may be called besides the functions
  std::vector<std::pair<std::string, int>> called_;  // checked when all are known

  friend class nesting;
};

/// Counts how deep the parser is.
class nesting {
 public:
  explicit nesting(parser& owner);
  ~nesting() { --owner_.depth_; }
  nesting(const nesting&) = delete;
  nesting& operator=(const nesting&) = delete;

 private:
  parser& owner_;
};

}  // namespace tandem::text::jinja
