#pragma once
/// Runs a parsed template once.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/builtins.hpp"
#include "text/jinja/syntax.hpp"

namespace tandem::text::jinja {

/// One render. Not thread-safe; the template must outlive it.
class evaluator {
 public:
  explicit evaluator(budget& spent) : spent_(spent) {}
  /// A global variable. `name` must outlive the evaluator.
  void define(std::string_view name, value item);
  /// Throws template_failure with its line.
  marked_text run(const block& program);

 private:
  enum class flow { on, leave_loop, next_round };
  struct variable {
    std::string_view name;
    value item;
  };
  using scope = std::vector<variable>;

  // Statements (evaluate_statement.cpp).
  flow run_block(const block& body);
  flow run_statement(const statement& it);
  flow run_branches(const statement& it);
  flow run_loop(const statement& it);
  std::vector<value> loop_items(const statement& it);
  void assign(const statement& it);
  void assign_attribute(const statement& it);
  flow run_captured(const statement& it);
  void run_call_block(const statement& it);
  void bind_targets(const std::vector<std::string>& targets, const value& item);
  value call_macro(const statement& macro, const call_arguments& given, const value* caller);
  void bind_parameters(const statement& macro, const call_arguments& given);
  void write(const marked_text& text);

  // Expressions (evaluate_expression.cpp).
  value evaluate(const expression& it);
  value evaluate_inside(const expression& it);
  value evaluate_dict(const expression& it);
  value evaluate_comparison(const expression& it);
  value evaluate_slice(const expression& it);
  value evaluate_sign(const expression& it);
  value evaluate_test(const expression& it);
  value evaluate_call(const expression& it, const value* caller);
  value evaluate_method(const expression& it);
  value call_function(const signature& known, const call_arguments& given);
  value make_namespace(const call_arguments& given);
  value make_range(const builtin_call& call);
  std::vector<value> evaluate_all(const expression& it);
  call_arguments arguments_of(const expression& it, std::size_t first);

  const value* find(std::string_view name) const;
  void set(std::string_view name, value item);

  budget& spent_;
  std::vector<std::unique_ptr<namespace_node>> namespaces_;  // before the scopes, which may refer to them
  scope globals_;
  std::vector<scope> scopes_;  // innermost last
  std::size_t floor_ = 0;      // scopes below belong to a macro's caller
  std::size_t loops_ = 0;
  std::size_t depth_ = 0;
  int line_ = 0;  // where evaluation is, for failures
  marked_text* output_ = nullptr;

  friend class evaluation_depth;
};

/// Counts nested evaluations.
class evaluation_depth {
 public:
  explicit evaluation_depth(evaluator& owner) : owner_(owner) {
    if (owner.depth_ >= limits::kMaxTemplateCallDepth) fail_bound("its calls are nested too deeply");
    ++owner.depth_;
  }
  ~evaluation_depth() { --owner_.depth_; }
  evaluation_depth(const evaluation_depth&) = delete;
  evaluation_depth& operator=(const evaluation_depth&) = delete;

 private:
  evaluator& owner_;
};

}  // namespace tandem::text::jinja
