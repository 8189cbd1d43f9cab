// The fuzz target on reproducible mixtures of what models write, for compilers without a fuzzer.

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const std::string kParts[] = {
    "<tool_call>",
    "</tool_call>",
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": \"c\"}]}}\n</tool_call>\n",
    "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}",
    "{\"arguments\": {}, \"name\": \"f\"}",
                              "```json\n",
                              "```",
                              "<|python_tag|>",
    "<think>",
    "</think>",
    "; ",
    "\n",
    "some words ",
    "{\"name\": \"f\", ",
    "\"arguments\": {",
    "\"arguments\": \"{}\"",
    "}",
    "\xC3\xA9"};

TEST(tool_call_parsers, survive_mixtures_of_what_models_write) {
  std::mt19937 random(20261130);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (int round = 0; round < 40'000; ++round) {
    std::string input(1, static_cast<char>(below(256)));
    for (std::size_t parts = 1 + below(6); parts > 0; --parts) input += kParts[below(std::size(kParts))];
    for (std::size_t edits = below(4); edits > 0; --edits) {
      const std::size_t at = 1 + below(input.size() - 1);
      switch (below(3)) {
        case 0:
          input.erase(at, 1 + below(4));
          break;
        case 1:
          input.insert(at, input.substr(below(input.size()), below(16)));
          break;
        default:
          input.insert(at, 1, "\"\\{}[],:0-.eu< \n"[below(16)]);
      }
      if (input.size() < 2) input += "xx";
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
