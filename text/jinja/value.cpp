#include "text/jinja/value.hpp"

#include <algorithm>

#include "core/assert.hpp"

namespace tandem::text::jinja {
namespace {

std::size_t depth_over(std::size_t deepest) {
  if (deepest + 1 > limits::kMaxTemplateJsonDepth) fail_bound("its lists are nested too deeply");
  return deepest + 1;
}

// Keys of different kinds never meet: 1 and "1" are two keys, 1 and true are one, as in Python.
std::string index_key(const value& key) {
  if (key.is_string()) return 's' + std::string(key.view());
  if (key.is_integral()) return 'i' + std::to_string(key.integer());
  if (key.is(value_kind::real)) return 'r' + real_to_text(key.real());
  if (key.is(value_kind::none)) return "n";
  fail_render("a " + std::string(kind_name(key.kind())) + " cannot be a key");
}

}  // namespace

value value::undefined(std::string_view name) {
  value made;
  made.name_ = name;
  return made;
}
value value::none() {
  value made;
  made.kind_ = value_kind::none;
  return made;
}
value value::of(bool flag, bool trusted) {
  value made = of(std::int64_t{flag ? 1 : 0}, trusted);
  made.kind_ = value_kind::boolean;
  return made;
}
value value::of(std::int64_t number, bool trusted) {
  value made;
  made.kind_ = value_kind::integer;
  made.integer_ = number;
  made.trusted_ = trusted;
  return made;
}
value value::of(double number, bool trusted) {
  value made;
  made.kind_ = value_kind::real;
  made.real_ = number;
  made.trusted_ = trusted;
  return made;
}
value value::of(marked_text text, budget* owner) {
  if (text.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
  value made;
  made.kind_ = value_kind::string;
  made.node_ = std::make_shared<string_node>(std::move(text), owner);
  return made;
}
value value::list(std::vector<value> items, budget* owner, bool tuple) {
  value made;
  made.kind_ = tuple ? value_kind::tuple : value_kind::list;
  made.node_ = std::make_shared<list_node>(std::move(items), owner);
  return made;
}
value value::dict(std::vector<std::pair<value, value>> entries, budget* owner) {
  value made;
  made.kind_ = value_kind::dict;
  made.node_ = std::make_shared<dict_node>(std::move(entries), owner);
  return made;
}
value value::of(namespace_node* names) {
  value made;
  made.kind_ = value_kind::name_space;
  made.node_ = std::shared_ptr<const void>(std::shared_ptr<const void>(), names);  // not an owner
  return made;
}
value value::of(std::shared_ptr<const loop_node> loop) {
  value made;
  made.kind_ = value_kind::loop;
  made.node_ = std::move(loop);
  return made;
}
value value::of_macro(const statement* macro) {
  value made;
  made.kind_ = value_kind::macro;
  made.node_ = std::shared_ptr<const void>(std::shared_ptr<const void>(), macro);
  return made;
}
value value::of_function(std::string_view name) {
  value made;
  made.kind_ = value_kind::function;
  made.name_ = name;
  return made;
}

std::int64_t value::integer() const {
  TANDEM_ASSERT(is_integral());
  return integer_;
}
double value::real() const {
  TANDEM_ASSERT(is_number());
  return is(value_kind::real) ? real_ : static_cast<double>(integer_);
}
const marked_text& value::text() const {
  TANDEM_ASSERT(is_string());
  return static_cast<const string_node*>(node_.get())->text;
}
const std::vector<value>& value::items() const {
  TANDEM_ASSERT(is_sequence());
  return static_cast<const list_node*>(node_.get())->items;
}
const dict_node& value::dict() const {
  TANDEM_ASSERT(is_dict());
  return *static_cast<const dict_node*>(node_.get());
}
namespace_node* value::names() const {
  TANDEM_ASSERT(is(value_kind::name_space));
  return const_cast<namespace_node*>(static_cast<const namespace_node*>(node_.get()));
}
const loop_node& value::loop() const {
  TANDEM_ASSERT(is(value_kind::loop));
  return *static_cast<const loop_node*>(node_.get());
}
const statement* value::macro() const {
  TANDEM_ASSERT(is(value_kind::macro));
  return static_cast<const statement*>(node_.get());
}
std::size_t value::depth() const {
  if (is_sequence()) return static_cast<const list_node*>(node_.get())->depth;
  if (is_dict()) return dict().depth;
  // A loop kept in a list holds that loop's items.
  if (is(value_kind::loop)) return loop().items.depth() + 1;
  return 0;
}

list_node::list_node(std::vector<value> list, budget* owner)
    : items(std::move(list)), held(owner, sizeof(*this) + items.capacity() * sizeof(value)) {
  std::size_t deepest = 0;
  for (const value& item : items) deepest = std::max(deepest, item.depth());
  depth = depth_over(deepest);
}

dict_node::dict_node(std::vector<std::pair<value, value>> pairs, budget* owner)
    : held(owner, sizeof(*this) + pairs.size() * (2 * sizeof(value) + 64)) {
  std::size_t deepest = 0;
  for (auto& [key, item] : pairs) {
    deepest = std::max(deepest, item.depth());
    const auto [at, fresh] = index.try_emplace(index_key(key), entries.size());
    if (fresh) {
      entries.emplace_back(std::move(key), std::move(item));
    } else {
      entries[at->second].second = std::move(item);  // the last one counts, at the first one's place
    }
  }
  depth = depth_over(deepest);
}

const value* dict_node::find(const value& key) const {
  const bool possible = key.is_string() || key.is_number() || key.is(value_kind::none);
  const auto found = possible ? index.find(index_key(key)) : index.end();
  return found == index.end() ? nullptr : &entries[found->second].second;
}

const value* dict_node::find(std::string_view key) const {
  const auto found = index.find('s' + std::string(key));
  return found == index.end() ? nullptr : &entries[found->second].second;
}

std::string_view kind_name(value_kind kind) {
  switch (kind) {
    case value_kind::undefined:
      return "undefined value";
    case value_kind::none:
      return "none";
    case value_kind::boolean:
      return "boolean";
    case value_kind::integer:
      return "integer";
    case value_kind::real:
      return "number";
    case value_kind::string:
      return "string";
    case value_kind::list:
      return "list";
    case value_kind::tuple:
      return "tuple";
    case value_kind::dict:
      return "mapping";
    case value_kind::name_space:
      return "namespace";
    case value_kind::loop:
      return "loop";
    case value_kind::macro:
      return "macro";
    case value_kind::function:
      return "function";
  }
  return "value";
}

bool is_true(const value& it) {
  switch (it.kind()) {
    case value_kind::undefined:
    case value_kind::none:
      return false;
    case value_kind::boolean:
    case value_kind::integer:
      return it.integer() != 0;
    case value_kind::real:
      return it.real() != 0;
    case value_kind::string:
      return !it.text().empty();
    case value_kind::list:
    case value_kind::tuple:
      return !it.items().empty();
    case value_kind::dict:
      return !it.dict().entries.empty();
    default:
      return true;
  }
}

}  // namespace tandem::text::jinja
