#include "text/tokenizer_config.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "config/limits.hpp"
#include "text/json_document.hpp"

namespace tandem::text {
namespace {

// "<s>" or {"content": "<s>", …}.
std::optional<std::string_view> token_name(json_field field) {
  if (field.is_object()) field = field["content"];
  if (!field.is_string()) return std::nullopt;
  return field.text_or("");
}

result<token_id> named_token(const tokenizer_spec& spec, json_field config, std::string_view key) {
  const auto name = token_name(config[key]);
  if (!name) return kNoToken;
  const token_id id = find_piece(spec, *name);
  if (id == kNoToken) {
    return fail(
        error_code::corrupt,
        "tokenizer_config.json: " + std::string(key) + " \"" + std::string(*name) + "\" is not in the vocabulary.",
        "tokenizer_config.json");
  }
  return id;
}

// One template, or a list of named ones of which "default" is meant.
std::string_view pick_template(json_field field) {
  if (field.is_string()) return field.text_or("");
  if (!field.is_array()) return {};
  std::string_view picked;
  for (const auto element : field.items()) {
    const json_field named(element);
    if (picked.empty() || named["name"].text_or("") == "default") picked = named["template"].text_or("");
  }
  return picked;
}

result<void> read_config(json_field config, tokenizer_spec& spec) {
  struct named {
    std::string_view key;
    token_id& id;
  };
  for (const named& each : {named{"bos_token", spec.bos}, named{"eos_token", spec.eos},
                            named{"unk_token", spec.unknown}, named{"pad_token", spec.padding}}) {
    auto id = named_token(spec, config, each.key);
    if (!id) return tl::unexpected(id.error());
    if (*id != kNoToken) each.id = *id;
  }
  spec.add_bos = config["add_bos_token"].flag_or(false);
  spec.chat_template = std::string(pick_template(config["chat_template"]));
  return {};
}

void add_end_token(tokenizer_spec& spec, std::int64_t id) {
  // Ids past this vocabulary belong to rows that encode and decode know nothing of.
  if (id < 0 || id >= static_cast<std::int64_t>(spec.pieces.size())) return;
  spec.end_tokens.push_back(static_cast<token_id>(id));
}

void add_end_tokens(json_field field, tokenizer_spec& spec) {
  if (!field.is_array()) return add_end_token(spec, field.integer_or(-1));
  for (const auto element : field.items()) add_end_token(spec, json_field(element).integer_or(-1));
}

// `read` gets the root of a file that may be missing.
template <class Read>
result<void> with_file(std::string_view text, std::string_view file, Read read) {
  if (text.empty()) return {};
  json_document document;
  auto root = document.parse(text, file);
  if (!root) return tl::unexpected(root.error());
  return read(json_field(*root));
}

}  // namespace

token_id find_piece(const tokenizer_spec& spec, std::string_view piece) {
  token_id normal = kNoToken;
  for (std::size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.kinds[id] == token_kind::unused || spec.pieces[id] != piece) continue;
    if (spec.kinds[id] != token_kind::normal) return static_cast<token_id>(id);
    if (normal == kNoToken) normal = static_cast<token_id>(id);
  }
  return normal;
}

result<void> read_tokenizer_config(const tokenizer_files& files, tokenizer_spec& spec) {
  const auto read_named = [&](json_field config) { return read_config(config, spec); };
  const auto read_ends = [&](json_field config) {
    add_end_tokens(config["eos_token_id"], spec);
    return result<void>{};
  };
  if (auto read = with_file(files.tokenizer_config_json, "tokenizer_config.json", read_named); !read) return read;
  if (auto read = with_file(files.generation_config_json, "generation_config.json", read_ends); !read) return read;
  if (auto read = with_file(files.config_json, "config.json", read_ends); !read) return read;
  if (!files.chat_template_jinja.empty()) spec.chat_template = std::string(files.chat_template_jinja);
  if (spec.chat_template.size() > limits::kMaxTemplateBytes) {
    return fail(error_code::too_large, "The chat template is larger than a template may be.", "chat_template");
  }
  if (spec.eos != kNoToken) spec.end_tokens.push_back(spec.eos);
  std::sort(spec.end_tokens.begin(), spec.end_tokens.end());
  spec.end_tokens.erase(std::unique(spec.end_tokens.begin(), spec.end_tokens.end()), spec.end_tokens.end());
  return {};
}

}  // namespace tandem::text
