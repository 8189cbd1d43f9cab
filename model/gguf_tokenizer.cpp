/// Key names and numbers: the GGUF specification, section on the tokenizer.

#include "model/gguf_tokenizer.hpp"

#include <fmt/format.h>

#include <optional>

#include "config/limits.hpp"
#include "model/end_tokens.hpp"
#include "model/gguf_fields.hpp"
#include "model/printable.hpp"

namespace tandem::model {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTokenTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

void read_scheme(gguf_fields& fields, text::tokenizer_spec& spec) {
  const std::string model = fields.text("tokenizer.ggml.model");
  if (!fields.failure() && model != "gpt2") {
    fields.refuse(
        error_code::unsupported, "tokenizer.ggml.model",
        fmt::format("tokenizer \"{}\" is not supported, only \"gpt2\" (byte-level BPE) is", printable(model, 40)));
  }
  const std::string pre = fields.text("tokenizer.ggml.pre");
  if (fields.failure()) return;
  if (pre == "smollm") {
    spec.pre = text::pre_tokenizer::smollm;
  } else if (pre == "qwen2") {
    spec.pre = text::pre_tokenizer::qwen2;
    spec.normalize_nfc = true;
  } else {
    fields.refuse(
        error_code::unsupported, "tokenizer.ggml.pre",
        fmt::format("pre-tokenizer \"{}\" is not supported, only \"smollm\" and \"qwen2\" are", printable(pre, 40)));
  }
}

void read_pieces(gguf_fields& fields, text::tokenizer_spec& spec) {
  const auto pieces = fields.strings(kTokens);
  if (!fields.failure() && pieces.empty()) fields.refuse(error_code::corrupt, kTokens, "the vocabulary is empty");
  if (pieces.size() > limits::kMaxVocabulary) {
    fields.refuse(error_code::corrupt, kTokens,
                  fmt::format("{} tokens are over the limit of {}", pieces.size(), limits::kMaxVocabulary));
  }
  if (fields.failure()) return;
  spec.pieces.reserve(pieces.size());
  for (const std::string_view piece : pieces) {
    if (piece.size() > limits::kMaxTokenBytes) {
      fields.refuse(error_code::corrupt, kTokens,
                    fmt::format("token {} has {} bytes, over the limit of {}", spec.pieces.size(), piece.size(),
                                limits::kMaxTokenBytes));
      return;
    }
    spec.pieces.emplace_back(piece);
  }
}

std::optional<text::token_kind> kind_of(std::int64_t number) {
  switch (number) {
    case 1:
      return text::token_kind::normal;
    case 2:  // unknown
    case 3:
      return text::token_kind::control;
    case 4:
      return text::token_kind::user_defined;
    case 5:
      return text::token_kind::unused;
    default:  // 6, a byte token, belongs to SentencePiece vocabularies
      return std::nullopt;
  }
}

void read_kinds(gguf_fields& fields, text::tokenizer_spec& spec) {
  const auto numbers = fields.integers(kTokenTypes);
  if (fields.failure()) return;
  if (numbers.size() != spec.pieces.size()) {
    fields.refuse(error_code::corrupt, kTokenTypes,
                  fmt::format("it has {} entries for {} tokens", numbers.size(), spec.pieces.size()));
    return;
  }
  spec.kinds.reserve(numbers.size());
  for (const std::int64_t number : numbers) {
    const auto kind = kind_of(number);
    if (!kind) {
      fields.refuse(error_code::corrupt, kTokenTypes,
                    fmt::format("entry {} is {}, which a gpt2 vocabulary cannot have", spec.kinds.size(), number));
      return;
    }
    spec.kinds.push_back(*kind);
  }
}

void read_merges(gguf_fields& fields, text::tokenizer_spec& spec) {
  const auto lines = fields.strings(kMerges);
  if (lines.size() > limits::kMaxVocabulary) {
    fields.refuse(error_code::corrupt, kMerges,
                  fmt::format("{} merges are over the limit of {}", lines.size(), limits::kMaxVocabulary));
  }
  if (fields.failure()) return;
  spec.merges.reserve(lines.size());
  for (const std::string_view line : lines) {
    const std::size_t space = line.find(' ', 1);  // a space itself is written Ġ
    if (line.size() > 2 * limits::kMaxTokenBytes || space == std::string_view::npos || space + 1 == line.size()) {
      fields.refuse(error_code::corrupt, kMerges,
                    fmt::format("merge {} \"{}\" is not two pieces", spec.merges.size(), printable(line, 80)));
      return;
    }
    spec.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
}

token_id read_id(gguf_fields& fields, const text::tokenizer_spec& spec, std::string_view name) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const auto last = static_cast<std::int64_t>(spec.pieces.size()) - 1;
  return static_cast<token_id>(fields.integer_or(key, 0, last, kNoToken));
}

void read_specials(gguf_fields& fields, text::tokenizer_spec& spec) {
  spec.bos = read_id(fields, spec, "bos");
  spec.eos = read_id(fields, spec, "eos");
  spec.unknown = read_id(fields, spec, "unknown");
  spec.padding = read_id(fields, spec, "padding");
  spec.add_bos = fields.boolean_or("tokenizer.ggml.add_bos_token", false);
  if (spec.add_bos && spec.bos == kNoToken) {
    fields.refuse(error_code::corrupt, "tokenizer.ggml.add_bos_token", "it is true but there is no BOS token");
  }
  for (const token_id id : {spec.eos, read_id(fields, spec, "eot"), read_id(fields, spec, "eom")}) {
    if (id != kNoToken) spec.end_tokens.push_back(id);
  }
}

}  // namespace

result<text::tokenizer_spec> read_gguf_tokenizer(const gguf_file& file) {
  gguf_fields fields(file);
  text::tokenizer_spec spec;
  read_scheme(fields, spec);
  read_pieces(fields, spec);
  read_kinds(fields, spec);
  read_merges(fields, spec);
  if (!fields.failure()) read_specials(fields, spec);
  spec.chat_template = fields.text_or("tokenizer.chat_template", "");
  if (spec.chat_template.size() > limits::kMaxTemplateBytes) {
    fields.refuse(
        error_code::too_large, "tokenizer.chat_template",
        fmt::format("its {} bytes are over the limit of {}", spec.chat_template.size(), limits::kMaxTemplateBytes));
  }
  if (fields.failure()) return tl::unexpected(*fields.failure());
  add_named_end_tokens(spec);
  return spec;
}

}  // namespace tandem::model
