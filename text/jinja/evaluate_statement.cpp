#include <algorithm>

#include "core/assert.hpp"
#include "text/jinja/evaluator.hpp"

namespace tandem::text::jinja {

void evaluator::define(std::string_view name, value item) {
  globals_.push_back({name, std::move(item)});
}

marked_text evaluator::run(const block& program) {
  marked_text out;
  output_ = &out;
  try {
    run_block(program);
  } catch (template_failure& failure) {
    if (failure.line == 0) failure.line = line_;
    throw;
  }
  return out;
}

void evaluator::write(const marked_text& text) {
  spent_.spend_bytes(text.size());
  if (output_->size() + text.size() > limits::kMaxTemplateOutputBytes) fail_bound("it writes too much");
  output_->append(text);
}

evaluator::flow evaluator::run_block(const block& body) {
  const evaluation_depth guard(*this);
  for (const auto& each : body) {
    const flow next = run_statement(*each);
    if (next != flow::on) return next;
  }
  return flow::on;
}

evaluator::flow evaluator::run_statement(const statement& it) {
  spent_.spend(1);
  line_ = it.line;
  switch (it.kind) {
    case statement_kind::text:
      write(it.text.text());
      return flow::on;
    case statement_kind::print:
      write(to_text(evaluate(*it.subject), spent_));
      return flow::on;
    case statement_kind::branch:
      return run_branches(it);
    case statement_kind::loop:
      return run_loop(it);
    case statement_kind::assign:
      assign(it);
      return flow::on;
    case statement_kind::assign_attribute:
      assign_attribute(it);
      return flow::on;
    case statement_kind::assign_block:
    case statement_kind::filter_block:
      return run_captured(it);
    case statement_kind::macro:
      set(it.name, value::of_macro(&it));
      return flow::on;
    case statement_kind::call_block:
      run_call_block(it);
      return flow::on;
    case statement_kind::group:
      return run_block(it.body);
    case statement_kind::break_loop:
      return flow::leave_loop;
    case statement_kind::continue_loop:
      return flow::next_round;
  }
  TANDEM_ASSERT(false);
}

evaluator::flow evaluator::run_branches(const statement& it) {
  for (const branch& each : it.branches) {
    if (!each.condition || is_true(evaluate(*each.condition))) return run_block(each.body);
  }
  return flow::on;
}

void evaluator::bind_targets(const std::vector<std::string>& targets, const value& item) {
  if (targets.size() == 1) return set(targets.front(), item);
  const std::vector<value> parts = items_of(item, spent_);
  if (parts.size() != targets.size()) {
    fail_render("a value of " + std::to_string(parts.size()) + " parts is unpacked into " +
                std::to_string(targets.size()) + " names");
  }
  for (std::size_t i = 0; i < targets.size(); ++i) set(targets[i], parts[i]);
}

// The loop's `if` sees the loop's names but not `loop`.
std::vector<value> evaluator::loop_items(const statement& it) {
  std::vector<value> items = items_of(evaluate(*it.subject), spent_);
  if (!it.condition) return items;
  std::vector<value> kept;
  for (value& item : items) {
    scopes_.emplace_back();
    bind_targets(it.targets, item);
    const bool keep = is_true(evaluate(*it.condition));
    scopes_.pop_back();
    if (keep) kept.push_back(std::move(item));
  }
  return kept;
}

evaluator::flow evaluator::run_loop(const statement& it) {
  const value items = value::list(loop_items(it), &spent_);
  if (items.items().empty()) return run_block(it.otherwise);
  ++loops_;
  for (std::size_t index = 0; index < items.items().size(); ++index) {
    spent_.spend(1);
    scopes_.emplace_back();
    set("loop", value::of(std::make_shared<const loop_node>(loop_node{items, index, loops_ - 1})));
    bind_targets(it.targets, items.items()[index]);
    const flow next = run_block(it.body);
    scopes_.pop_back();
    if (next == flow::leave_loop) break;
  }
  --loops_;
  return flow::on;
}

void evaluator::assign(const statement& it) {
  bind_targets(it.targets, evaluate(*it.subject));
}

void evaluator::assign_attribute(const statement& it) {
  value item = evaluate(*it.subject);
  const value* const target = find(it.name);
  if (!target || !target->is(value_kind::name_space)) fail_render("'" + it.name + "' is not a namespace");
  target->names()->names[it.attribute] = std::move(item);
}

// Runs the body aside, then hands its text to the filters.
evaluator::flow evaluator::run_captured(const statement& it) {
  marked_text captured;
  marked_text* const outer = std::exchange(output_, &captured);
  scopes_.emplace_back();
  const flow next = run_block(it.body);
  output_ = outer;
  scopes_.back().clear();
  set(kCaptured, value::of(std::move(captured), &spent_));
  value made = evaluate(*it.subject);
  scopes_.pop_back();
  if (it.kind == statement_kind::assign_block) {
    set(it.name, std::move(made));
  } else {
    write(to_text(made, spent_));
  }
  return next;
}

void evaluator::run_call_block(const statement& it) {
  // The block itself is the macro `caller`.
  const value caller = value::of_macro(&it);
  write(to_text(evaluate_call(*it.subject, &caller), spent_));
}

void evaluator::bind_parameters(const statement& macro, const call_arguments& given) {
  if (given.placed.size() > macro.parameters.size()) fail_render("'" + macro.name + "' gets too many arguments");
  for (const auto& named : given.named) {
    const auto known = [&](const parameter& each) { return each.name == named.first; };
    if (std::none_of(macro.parameters.begin(), macro.parameters.end(), known)) {
      fail_render("'" + macro.name + "' has no argument '" + std::string(named.first) + "'");
    }
  }
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const parameter& each = macro.parameters[i];
    const auto named = std::find_if(given.named.begin(), given.named.end(),
                                    [&](const auto& candidate) { return candidate.first == each.name; });
    if (i < given.placed.size()) {
      set(each.name, given.placed[i]);
    } else if (named != given.named.end()) {
      set(each.name, named->second);
    } else {
      set(each.name, each.fallback ? evaluate(*each.fallback) : value::undefined(each.name));
    }
  }
}

// A macro sees its arguments and the globals; the body of a call block also sees where it stands.
value evaluator::call_macro(const statement& macro, const call_arguments& given, const value* caller) {
  const evaluation_depth guard(*this);
  const value called_with = caller ? *caller : value();
  const std::size_t outer_floor = floor_;
  if (macro.kind == statement_kind::macro) floor_ = scopes_.size();
  scopes_.emplace_back();
  if (caller) set("caller", called_with);
  bind_parameters(macro, given);
  marked_text written;
  marked_text* const outer = std::exchange(output_, &written);
  run_block(macro.body);
  output_ = outer;
  scopes_.pop_back();
  floor_ = outer_floor;
  return value::of(std::move(written), &spent_);
}

}  // namespace tandem::text::jinja
