#include "tests/text/golden_files.hpp"

#include <zlib.h>

#include <stdexcept>

#include "text/byte_alphabet.hpp"

namespace tandem::text {
namespace {

std::shared_ptr<const tokenizer> load(const std::string& name, bool nfc) {
  const std::string json = read_golden(name);
  auto spec = parse_tokenizer_json({json, {}, {}, {}, {}});
  if (!spec) throw std::runtime_error(spec.error().message);
  spec->normalize_nfc = nfc;
  auto made = tokenizer::make(std::move(*spec));
  if (!made) throw std::runtime_error(made.error().message);
  return *made;
}

}  // namespace

std::string read_golden(const std::string& name) {
  const std::string path = std::string(TANDEM_SOURCE_DIR) + "/tests/golden/" + name;
  const gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (!file) throw std::runtime_error("cannot open " + path);
  std::string text;
  std::string part(1 << 16, '\0');
  int got = 0;
  while ((got = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0) {
    text.append(part, 0, static_cast<std::size_t>(got));
  }
  gzclose(file);
  return text;
}

std::shared_ptr<const tokenizer> smollm2_tokenizer() {
  static const auto kTokenizer = load("smollm2-tokenizer.json.gz", false);
  return kTokenizer;
}

std::shared_ptr<const tokenizer> qwen2_tokenizer(bool nfc) {
  static const auto kPlain = load("qwen2-tokenizer.json.gz", false);
  if (!nfc) return kPlain;
  static const auto kNormalizing = load("qwen2-tokenizer.json.gz", true);
  return kNormalizing;
}

tokenizer_spec bytes_spec() {
  tokenizer_spec spec;
  for (const std::string& character : byte_characters()) spec.pieces.push_back(character);
  spec.kinds.assign(256, token_kind::normal);
  const auto add = [&](const char* piece, token_kind kind) {
    spec.pieces.emplace_back(piece);
    spec.kinds.push_back(kind);
  };
  add("<|im_start|>", token_kind::control);
  add("<|im_end|>", token_kind::control);
  add("<tool>", token_kind::user_defined);
  add("[PAD259]", token_kind::unused);
  return spec;
}

}  // namespace tandem::text
