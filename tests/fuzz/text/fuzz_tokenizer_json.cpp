#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/tokenizer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto spec = tandem::text::parse_tokenizer_json({text, {}, {}, {}, {}});
  if (!spec) return 0;
  if (const auto made = tandem::text::tokenizer::make(std::move(*spec))) (*made)->encode("a b 12", true, true);
  return 0;
}
