#pragma once
/// Golden data of the text tests.

#include <memory>
#include <string>

#include "text/tokenizer.hpp"

namespace tandem::text {

/// A file of tests/golden; `.gz` is unpacked.
std::string read_golden(const std::string& name);

/// The real vocabularies, made once per process. `nfc` overrides what the file says.
std::shared_ptr<const tokenizer> smollm2_tokenizer();
std::shared_ptr<const tokenizer> qwen2_tokenizer(bool nfc);

/// 256 single bytes (id = byte), then <|im_start|> 256, <|im_end|> 257, <tool> 258 (user-defined), one unused row.
tokenizer_spec bytes_spec();

}  // namespace tandem::text
