// The fuzz target on reproducible mutations of real requests, for compilers without a fuzzer.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const std::string kSeeds[] = {
    R"({"prompt":"hi","max_tokens":4,"stop":["a","b"],"logit_bias":{"1":2.5},"stream":true})",
    R"({"prompt":[[1,2],[3]],"n":2,"speculative":{"method":"ngram","num_speculative_tokens":4},"seed":-1})",
    R"({"messages":[{"role":"user","content":[{"type":"text","text":"\ud83d\ude00"}]},{"role":"assistant",)"
    R"("tool_calls":[{"function":{"arguments":"{\"a\":[1]}"}}]}],"tools":[{"type":"function","function":{"name":"f","strict":false}}],"logprobs":true,"top_logprobs":2})",
    R"({"id":"x","cancel":true,"tokens":[1,2,3]})",
    "POST /v1/completions?x=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}GET /live HTTP/1.0\r\n\r\n",
    "POST http://h/generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: "
    "100-continue\r\n\r\n2\r\n{}\r\n0\r\n\r\n"};

TEST(request_parsers, survive_mutated_requests) {
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (int round = 0; round < 60'000; ++round) {
    std::string input(1, static_cast<char>(below(7)));
    input += kSeeds[below(std::size(kSeeds))];
    for (std::size_t edits = below(6); edits > 0; --edits) {
      const std::size_t at = below(input.size());
      switch (below(4)) {
        case 0:
          input[at] = static_cast<char>(below(256));
          break;
        case 1:
          input.erase(at, 1 + below(4));
          break;
        case 2:
          input.insert(at, input.substr(below(input.size()), below(16)));
          break;
        default:
          input.insert(at, 1, "\"\\{}[],:0-.eu"[below(13)]);
      }
      if (input.empty()) input.push_back('x');
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
