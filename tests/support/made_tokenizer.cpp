#include "tests/support/made_tokenizer.hpp"

namespace tandem::test {
namespace {

constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n' "
    "}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

// The others follow from U+0100 on, in order (GPT-2's encoder).
unsigned character_of(unsigned byte) {
  if (stands_for_itself(byte)) return byte;
  unsigned next = 256;
  for (unsigned before = 0; before < byte; ++before) next += stands_for_itself(before) ? 0 : 1;
  return next;
}

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    const unsigned character = character_of(static_cast<unsigned char>(byte));
    if (character < 0x80) {
      out.push_back(static_cast<char>(character));
    } else {
      out.push_back(static_cast<char>(0xC0 | (character >> 6)));
      out.push_back(static_cast<char>(0x80 | (character & 0x3F)));
    }
  }
  return out;
}

token_id made_tokenizer::find(std::string_view bytes) const {
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].bytes == bytes) return static_cast<token_id>(id);
  }
  return kNoToken;
}

made_tokenizer pieces_tokenizer(const std::vector<std::string>& pieces) {
  made_tokenizer made;
  for (const std::string& piece : pieces) made.tokens.push_back({piece, text::token_kind::normal});
  return made;
}

made_tokenizer bytes_tokenizer(const std::vector<std::string>& extra_pieces) {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.insert(pieces.end(), extra_pieces.begin(), extra_pieces.end());
  made_tokenizer made = pieces_tokenizer(pieces);
  for (const char* name : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) {
    made.tokens.push_back({name, text::token_kind::control});
  }
  made.eos = static_cast<token_id>(made.tokens.size()) - 2;
  made.chat_template = kChatTemplate;
  return made;
}

}  // namespace tandem::test
