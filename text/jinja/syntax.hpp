#pragma once
/// The syntax tree of a template. Immutable after parsing.

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/value.hpp"

namespace tandem::text::jinja {

enum class expression_kind : std::uint8_t {
  literal,
  name,
  attribute,
  subscript,
  slice,
  list,
  tuple,
  dict,
  negate,
  plus,
  logical_not,
  logical_and,
  logical_or,
  binary,
  comparison,
  conditional,
  filter,
  test,
  call,
  method
};

struct expression;
using expression_ptr = std::unique_ptr<const expression>;

/// parts by kind: attribute [object]; subscript [object, key]; slice [object, from, to, step] (null = absent);
/// dict [key, item, key, item …]; conditional [then, condition, otherwise or null]; filter, test and method [subject,
/// arguments …]; call [arguments …]; comparison [first, second, …] with one operator between neighbours in `words`.
/// The last arguments belong to the keywords in `words`.
struct expression {
  expression_kind kind = expression_kind::literal;
  int line = 0;
  std::size_t depth = 1;
  bool negated = false;  ///< of a test: `is not`
  value literal;
  std::string name;  ///< variable, attribute, filter, test, function, method or binary operator
  std::vector<expression_ptr> parts;
  std::vector<std::string> words;
};

enum class statement_kind : std::uint8_t {
  text,
  print,
  branch,
  loop,
  assign,
  assign_attribute,
  assign_block,
  macro,
  call_block,
  filter_block,
  group,
  break_loop,
  continue_loop
};

struct statement;
using block = std::vector<std::unique_ptr<const statement>>;

struct branch {
  expression_ptr condition;  ///< null: else
  block body;
};

struct parameter {
  std::string name;
  expression_ptr fallback;  ///< null: required
};

struct statement {
  statement_kind kind = statement_kind::text;
  int line = 0;
  std::string name;                  ///< namespace, macro; target of assign_block
  std::string attribute;             ///< of assign_attribute
  value text;                        ///< of text
  std::vector<std::string> targets;  ///< of loop and assign
  expression_ptr subject;    ///< printed, iterated, assigned; call of call_block; filters of a block (over kCaptured)
  expression_ptr condition;  ///< of loop: its `if`
  std::vector<branch> branches;
  std::vector<parameter> parameters;
  block body;
  block otherwise;  ///< of loop: its `else`
};

/// The variable that filters of a block read its text from; no template can write this name.
inline constexpr const char* kCaptured = "(captured)";

}  // namespace tandem::text::jinja
