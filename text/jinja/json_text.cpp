#include "text/jinja/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/assert.hpp"
#include "text/jinja/builtins.hpp"

namespace tandem::text::jinja {
namespace {

// Keeps the order of keys, which the library's own tree does not do in linear time.
class value_builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit value_builder(budget& spent) : spent_(spent) {}
  value take() { return std::move(root_); }

  bool null() override { return put(value::none()); }
  bool boolean(bool flag) override { return put(value::of(flag, false)); }
  bool number_integer(number_integer_t number) override { return put(value::of(std::int64_t{number}, false)); }
  bool number_unsigned(number_unsigned_t number) override {
    if (number > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return put(value::of(static_cast<double>(number), false));
    }
    return put(value::of(static_cast<std::int64_t>(number), false));
  }
  bool number_float(number_float_t number, const string_t&) override { return put(value::of(number, false)); }
  bool string(string_t& text) override { return put(value::of(marked_text(std::move(text), false), &spent_)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool key(string_t& text) override {
    open_.back().keys.push_back(value::of(marked_text(std::move(text), false), &spent_));
    return true;
  }
  bool end_object() override {
    container done = close();
    std::vector<std::pair<value, value>> entries;
    for (std::size_t i = 0; i < done.items.size(); ++i) {
      entries.emplace_back(std::move(done.keys[i]), std::move(done.items[i]));
    }
    return put(value::dict(std::move(entries), &spent_));
  }
  bool end_array() override { return put(value::list(close().items, &spent_)); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  struct container {
    bool object = false;
    std::vector<value> keys;
    std::vector<value> items;
  };
  bool open(bool object) {
    if (open_.size() + 1 > limits::kMaxTemplateJsonDepth) return false;
    open_.push_back({object, {}, {}});
    return true;
  }
  container close() {
    TANDEM_ASSERT(!open_.empty());
    container done = std::move(open_.back());
    open_.pop_back();
    return done;
  }
  bool put(value made) {
    spent_.spend(1);
    if (open_.empty()) {
      root_ = std::move(made);
    } else {
      open_.back().items.push_back(std::move(made));
    }
    return true;
  }

  budget& spent_;
  std::vector<container> open_;
  value root_;
};

// As json.dumps(…, ensure_ascii=False) writes it: what Hugging Face's templates expect of tojson.
class json_writer {
 public:
  json_writer(std::int64_t indent, std::string item_separator, std::string key_separator, bool sort_keys, budget& spent)
      : indent_(indent),
        item_(std::move(item_separator)),
        key_(std::move(key_separator)),
        sorted_(sort_keys),
        spent_(spent) {}

  void write(const value& it, std::int64_t level) {
    spent_.spend(1);
    if (out_.size() > limits::kMaxTemplateOutputBytes) fail_bound("a text in it grows too long");
    switch (it.kind()) {
      case value_kind::none:
        return out_.append("null", false);
      case value_kind::boolean:
        return out_.append(it.integer() != 0 ? "true" : "false", false);
      case value_kind::integer:
        return out_.append(std::to_string(it.integer()), false);
      case value_kind::real:
        return out_.append(number(it.real()), false);
      case value_kind::string:
        return write_string(it.text());
      case value_kind::list:
      case value_kind::tuple:
        return write_list(it.items(), level);
      case value_kind::dict:
        return write_dict(it.dict(), level);
      default:
        fail_render("a " + std::string(kind_name(it.kind())) + " cannot be written as JSON");
    }
  }
  marked_text take() { return std::move(out_); }

 private:
  static std::string number(double it) {
    if (std::isnan(it)) return "NaN";
    if (std::isinf(it)) return it < 0 ? "-Infinity" : "Infinity";
    return real_to_text(it);
  }

  static std::string escaped(std::string_view part) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    for (const char c : part) {
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\b':
          out += "\\b";
          break;
        case '\f':
          out += "\\f";
          break;
        default:
          if (static_cast<unsigned char>(c) >= 0x20) {
            out += c;
          } else {
            out += "\\u00";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[static_cast<unsigned char>(c) & 15];
          }
      }
    }
    return out;
  }

  void write_string(const marked_text& text) {
    spent_.spend_bytes(text.size());
    out_.append("\"", false);
    out_.append(text.mapped(escaped));
    out_.append("\"", false);
  }

  void new_line(std::int64_t level) {
    if (indent_ < 0) return;
    out_.append("\n" + std::string(static_cast<std::size_t>(indent_ * level), ' '), false);
  }

  void write_list(const std::vector<value>& items, std::int64_t level) {
    if (items.empty()) return out_.append("[]", false);
    out_.append("[", false);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(item_, false);
      new_line(level + 1);
      write(items[i], level + 1);
    }
    new_line(level);
    out_.append("]", false);
  }

  void write_key(const value& key) {
    if (key.is_string()) return write_string(key.text());
    out_.append("\"", false);
    write(key, 0);
    out_.append("\"", false);
  }

  void write_dict(const dict_node& dict, std::int64_t level) {
    if (dict.entries.empty()) return out_.append("{}", false);
    std::vector<const std::pair<value, value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (sorted_) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto* a, const auto* b) { return compare(a->first, b->first, spent_) < 0; });
    }
    out_.append("{", false);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_.append(item_, false);
      new_line(level + 1);
      write_key(entries[i]->first);
      out_.append(key_, false);
      write(entries[i]->second, level + 1);
    }
    new_line(level);
    out_.append("}", false);
  }

  std::int64_t indent_;  // spaces per level; negative: one line
  std::string item_;
  std::string key_;
  bool sorted_;
  budget& spent_;
  marked_text out_;
};

value to_json(const builtin_call& call) {
  if (call.subject.is_undefined()) fail_render("'" + std::string(call.subject.name()) + "' is undefined");
  const value* const given_indent = call.argument(0);
  const bool indented = given_indent && !given_indent->is(value_kind::none);
  const std::int64_t indent = indented ? call.integer(0, 0) : -1;
  if (indent > 64) fail_render("'tojson' needs an indent of at most 64");
  std::string item_separator = indented ? "," : ", ";
  std::string key_separator = ": ";
  if (const value* const pair = call.argument(2); pair && !pair->is(value_kind::none)) {
    if (!pair->is_sequence() || pair->items().size() != 2 || !pair->items()[0].is_string() ||
        !pair->items()[1].is_string()) {
      fail_render("'tojson' needs a pair of strings as separators");
    }
    item_separator = pair->items()[0].view();
    key_separator = pair->items()[1].view();
  }
  json_writer writer(indent, std::move(item_separator), std::move(key_separator), call.flag(3, false), call.spent);
  writer.write(call.subject, 0);
  return call.text(writer.take());
}

}  // namespace

value value_from_json(std::string_view json, std::string_view what, budget& spent) {
  value_builder builder(spent);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) {
    fail_render(std::string(what) + " is not valid JSON, or nested too deeply");
  }
  return builder.take();
}

builtin find_json_filter(std::string_view name) {
  return name == "tojson" ? to_json : nullptr;
}

}  // namespace tandem::text::jinja
