#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/chat_template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = tandem::text::chat_template::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  tandem::chat_prompt chat;
  chat.messages_json = R"([{"role":"user","content":"a"},{"role":"assistant","content":"b","n":[1,2.5,{"k":null}]}])";
  (void)parsed->render(chat, {"<s>", "</s>"});
  return 0;
}
