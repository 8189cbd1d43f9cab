#pragma once
/// A value of the template language. Strings, lists and dicts are immutable and shared; a namespace is the one thing
/// that changes, and belongs to the evaluator.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/budget.hpp"
#include "text/jinja/marked_text.hpp"

namespace tandem::text::jinja {

enum class value_kind : std::uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  name_space,
  loop,
  macro,
  function
};

struct list_node;
struct dict_node;
struct namespace_node;
struct loop_node;
struct statement;

/// Cheap to copy.
class value {
 public:
  value() = default;                              ///< undefined
  static value undefined(std::string_view name);  ///< `name` must outlive the value (it is in the template)
  static value none();
  static value of(bool flag, bool trusted = true);
  static value of(std::int64_t number, bool trusted = true);
  static value of(double number, bool trusted = true);
  static value of(marked_text text, budget* owner);
  static value list(std::vector<value> items, budget* owner, bool tuple = false);
  static value dict(std::vector<std::pair<value, value>> entries, budget* owner);
  static value of(namespace_node* names);  ///< owned by the evaluator
  static value of(std::shared_ptr<const loop_node> loop);
  static value of_macro(const statement* macro);  ///< owned by the template
  static value of_function(std::string_view name);

  value_kind kind() const { return kind_; }
  bool is(value_kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return is(value_kind::undefined); }
  bool is_string() const { return is(value_kind::string); }
  bool is_sequence() const { return is(value_kind::list) || is(value_kind::tuple); }
  bool is_dict() const { return is(value_kind::dict); }
  bool is_integral() const { return is(value_kind::integer) || is(value_kind::boolean); }
  bool is_number() const { return is_integral() || is(value_kind::real); }
  /// Of scalars: whether the template wrote it. Text has its own marks.
  bool trusted() const { return trusted_; }

  std::int64_t integer() const;  ///< also of booleans
  double real() const;           ///< of any number
  const marked_text& text() const;
  std::string_view view() const { return text().view(); }
  const std::vector<value>& items() const;  ///< of lists and tuples
  const dict_node& dict() const;
  namespace_node* names() const;
  const loop_node& loop() const;
  const statement* macro() const;
  std::string_view name() const { return name_; }  ///< of undefined and function
  std::size_t depth() const;                       ///< nesting of lists and dicts

 private:
  value_kind kind_ = value_kind::undefined;
  bool trusted_ = true;
  union {
    std::int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<const void> node_;
  std::string_view name_;
};

struct string_node {
  string_node(marked_text t, budget* owner) : text(std::move(t)), held(owner, text.memory_bytes() + sizeof(*this)) {}
  marked_text text;
  held_bytes held;
};

struct list_node {
  list_node(std::vector<value> list, budget* owner);
  std::vector<value> items;
  std::size_t depth = 1;
  held_bytes held;
};

struct dict_node {
  dict_node(std::vector<std::pair<value, value>> pairs, budget* owner);
  const value* find(const value& key) const;  ///< nullptr when there is none
  const value* find(std::string_view key) const;
  std::vector<std::pair<value, value>> entries;  ///< in order of insertion, keys unique
  std::unordered_map<std::string, std::size_t> index;
  std::size_t depth = 1;
  held_bytes held;
};

struct namespace_node {
  std::unordered_map<std::string, value> names;
};

/// State of one running `for`; a fresh one for each round.
struct loop_node {
  value items;  ///< a list
  std::size_t index0 = 0;
  std::size_t depth0 = 0;
};

std::string_view kind_name(value_kind kind);
bool is_true(const value& it);
bool equals(const value& left, const value& right, budget& spent);
/// Negative, zero, positive. Fails for kinds without an order.
int compare(const value& left, const value& right, budget& spent);

/// As {{ … }} prints it.
marked_text to_text(const value& it, budget& spent);
/// As Python's repr shows it.
void append_repr(marked_text& out, const value& it, budget& spent);
std::string real_to_text(double number);

}  // namespace tandem::text::jinja
