// Reads the layout of Hugging Face's tokenizers library (tokenizer.json, "BPE" with "ByteLevel").

#include <algorithm>
#include <string>

#include "config/limits.hpp"
#include "text/json_document.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizer_config.hpp"

namespace tandem::text {
namespace {

constexpr std::string_view kFile = "tokenizer.json";
constexpr std::string_view kQwen2Regex =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

tl::unexpected<error> corrupt(const std::string& what) {
  return fail(error_code::corrupt, "tokenizer.json: " + what, std::string(kFile));
}

tl::unexpected<error> unsupported(const std::string& what) {
  return fail(error_code::unsupported,
              "tokenizer.json: " + what +
                  " is not supported; use a model with a byte-level BPE "
                  "tokenizer of the smollm or qwen2 kind.",
              std::string(kFile));
}

result<void> put_piece(tokenizer_spec& spec, std::string_view piece, std::int64_t id, token_kind kind) {
  if (id < 0 || static_cast<std::uint64_t>(id) >= limits::kMaxVocabulary) {
    return corrupt("token id " + std::to_string(id) + " is out of range.");
  }
  const auto at = static_cast<std::size_t>(id);
  if (at >= spec.pieces.size()) {
    spec.pieces.resize(at + 1);
    spec.kinds.resize(at + 1, token_kind::unused);
  }
  if (kind == token_kind::normal && spec.kinds[at] != token_kind::unused) {
    return corrupt("two tokens have the id " + std::to_string(id) + ".");
  }
  spec.pieces[at] = std::string(piece);
  spec.kinds[at] = kind;
  return {};
}

result<void> read_vocabulary(json_field vocabulary, tokenizer_spec& spec) {
  if (!vocabulary.is_object()) return corrupt("model.vocab must be an object.");
  for (const auto [piece, element] : vocabulary.members()) {
    const std::int64_t id = json_field(element).integer_or(-1);
    if (auto put = put_piece(spec, piece, id, token_kind::normal); !put) return put;
  }
  return {};
}

result<std::pair<std::string, std::string>> read_merge(json_field merge) {
  if (merge.is_string()) {  // "left right"; pieces hold no space in the byte alphabet
    const std::string_view both = merge.text_or("");
    const std::size_t space = both.find(' ');
    if (space == 0 || space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos ||
        space + 1 == both.size()) {
      return corrupt("the merge \"" + std::string(both) + "\" is not two pieces.");
    }
    return std::pair(std::string(both.substr(0, space)), std::string(both.substr(space + 1)));
  }
  if (!merge.is_array() || merge.items().size() != 2) return corrupt("a merge is neither a string nor a pair.");
  const json_field left(merge.items().at(0).value_unsafe());
  const json_field right(merge.items().at(1).value_unsafe());
  if (!left.is_string() || !right.is_string()) return corrupt("a merge's pieces must be strings.");
  return std::pair(std::string(left.text_or("")), std::string(right.text_or("")));
}

result<void> read_merges(json_field merges, tokenizer_spec& spec) {
  if (!merges) return {};
  if (!merges.is_array()) return corrupt("model.merges must be a list.");
  for (const auto element : merges.items()) {
    auto merge = read_merge(element);
    if (!merge) return tl::unexpected(merge.error());
    spec.merges.push_back(std::move(*merge));
    if (spec.merges.size() > limits::kMaxVocabulary) return corrupt("it has too many merges.");
  }
  return {};
}

result<void> check_model(json_field model) {
  const std::string_view type = model["type"].text_or("BPE");
  if (type != "BPE") return unsupported("the model type \"" + std::string(type) + "\"");
  if (model["byte_fallback"].flag_or(false)) return unsupported("model.byte_fallback");
  if (model["ignore_merges"].flag_or(false)) return unsupported("model.ignore_merges");
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[key].text_or("").empty()) return unsupported("model." + std::string(key));
  }
  return {};
}

result<void> read_added_tokens(json_field added, tokenizer_spec& spec) {
  if (!added) return {};
  if (!added.is_array()) return corrupt("added_tokens must be a list.");
  for (const auto element : added.items()) {
    const json_field token(element);
    const std::string_view content = token["content"].text_or("");
    if (content.empty()) return corrupt("an added token has no content.");
    for (const std::string_view flag : {"lstrip", "rstrip", "single_word"}) {
      if (token[flag].flag_or(false)) {
        return unsupported(std::string(flag) + " of the added token " + std::string(content));
      }
    }
    const token_kind kind = token["special"].flag_or(false) ? token_kind::control : token_kind::user_defined;
    if (auto put = put_piece(spec, content, token["id"].integer_or(-1), kind); !put) return put;
  }
  return {};
}

result<void> read_normalizer(json_field normalizer, tokenizer_spec& spec) {
  if (!normalizer) return {};
  const std::string_view type = normalizer["type"].text_or("");
  if (type == "Sequence" && normalizer["normalizers"].is_array()) {
    for (const auto element : normalizer["normalizers"].items()) {
      if (json_field(element)["type"].text_or("") != "NFC") return unsupported("its sequence of normalizers");
    }
    spec.normalize_nfc = normalizer["normalizers"].items().size() > 0;
    return {};
  }
  if (type != "NFC") return unsupported("the normalizer \"" + std::string(type) + "\"");
  spec.normalize_nfc = true;
  return {};
}

bool is_byte_level(json_field step, bool with_pattern) {
  return step["type"].text_or("") == "ByteLevel" && !step["add_prefix_space"].flag_or(true) &&
         step["use_regex"].flag_or(true) == with_pattern;
}

bool is_single_digits(json_field step) {
  return step["type"].text_or("") == "Digits" && step["individual_digits"].flag_or(false);
}

bool is_qwen2_split(json_field step) {
  return step["type"].text_or("") == "Split" && step["pattern"]["Regex"].text_or("") == kQwen2Regex &&
         step["behavior"].text_or("") == "Isolated" && !step["invert"].flag_or(false);
}

std::string describe_steps(json_field pre) {
  std::string names(pre["type"].text_or("none"));
  if (!pre["pretokenizers"].is_array()) return names;
  for (const auto element : pre["pretokenizers"].items()) {
    names += ' ';
    names += json_field(element)["type"].text_or("?");
  }
  return names;
}

result<void> read_pre_tokenizer(json_field pre, tokenizer_spec& spec) {
  const json_field steps = pre["pretokenizers"];
  if (pre["type"].text_or("") == "Sequence" && steps.is_array() && steps.items().size() == 2) {
    const json_field first(steps.items().at(0).value_unsafe());
    const json_field second(steps.items().at(1).value_unsafe());
    if (is_single_digits(first) && is_byte_level(second, true)) {
      spec.pre = pre_tokenizer::smollm;
      return {};
    }
    if (is_qwen2_split(first) && is_byte_level(second, false)) {
      spec.pre = pre_tokenizer::qwen2;
      return {};
    }
  }
  return unsupported("the pre-tokenizer (" + describe_steps(pre) + ")");
}

result<void> read_tokenizer(json_field root, tokenizer_spec& spec) {
  if (!root.is_object()) return corrupt("it must hold an object.");
  const json_field model = root["model"];
  if (!model.is_object()) return corrupt("it has no model.");
  if (auto checked = check_model(model); !checked) return checked;
  if (auto read = read_pre_tokenizer(root["pre_tokenizer"], spec); !read) return read;
  if (auto read = read_normalizer(root["normalizer"], spec); !read) return read;
  if (auto read = read_vocabulary(model["vocab"], spec); !read) return read;
  if (auto read = read_merges(model["merges"], spec); !read) return read;
  if (auto read = read_added_tokens(root["added_tokens"], spec); !read) return read;
  if (const json_field unknown = model["unk_token"]; unknown.is_string()) {
    spec.unknown = find_piece(spec, unknown.text_or(""));
  }
  if (spec.pieces.empty()) return corrupt("its vocabulary is empty.");
  return {};
}

}  // namespace

result<tokenizer_spec> parse_tokenizer_json(const tokenizer_files& files) {
  tokenizer_spec spec;
  json_document document;
  auto root = document.parse(files.tokenizer_json, kFile);
  if (!root) return tl::unexpected(root.error());
  if (auto read = read_tokenizer(*root, spec); !read) return tl::unexpected(read.error());
  if (auto read = read_tokenizer_config(files, spec); !read) return tl::unexpected(read.error());
  return spec;
}

}  // namespace tandem::text
