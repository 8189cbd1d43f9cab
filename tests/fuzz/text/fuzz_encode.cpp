#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/byte_alphabet.hpp"
#include "text/tokenizer.hpp"

namespace {

std::shared_ptr<const tandem::text::tokenizer> make_bytes(tandem::text::pre_tokenizer pre) {
  tandem::text::tokenizer_spec spec;
  for (const auto& character : tandem::text::byte_characters()) spec.pieces.push_back(character);
  spec.pieces.emplace_back("<|im_end|>");
  spec.kinds.assign(256, tandem::text::token_kind::normal);
  spec.kinds.push_back(tandem::text::token_kind::control);
  spec.pre = pre;
  return tandem::text::tokenizer::make(std::move(spec)).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kSmollm = make_bytes(tandem::text::pre_tokenizer::smollm);
  static const auto kQwen2 = make_bytes(tandem::text::pre_tokenizer::qwen2);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto smollm = kSmollm->encode(text, false, false).value();
  const auto qwen2 = kQwen2->encode(text, false, false).value();
  // With single bytes as the only pieces every split gives the same ids.
  if (smollm != qwen2) std::abort();
  return 0;
}
