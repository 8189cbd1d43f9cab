// The fuzz target on reproducible mutations of real requests, for compilers without a fuzzer.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace std::string_literals;

const std::string kSeeds[] = {
    R"({"prompt":"hi","max_tokens":4,"stop":["a","b"],"logit_bias":{"1":2.5},"stream":true})",
    R"({"prompt":[[1,2],[3]],"n":2,"speculative":{"method":"ngram","num_speculative_tokens":4},"seed":-1})",
    R"({"messages":[{"role":"user","content":[{"type":"text","text":"\ud83d\ude00"}]},{"role":"assistant",)"
    R"("tool_calls":[{"function":{"arguments":"{\"a\":[1]}"}}]}],"tools":[{"type":"function","function":{"name":"f","strict":false}}],"logprobs":true,"top_logprobs":2})",
    R"({"id":"x","cancel":true,"tokens":[1,2,3]})",
    R"({"type":"response.create","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":)"
    R"("function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c",)"
    R"("output":"x"}],"metadata":{"a":"b"},"include":["message.output_text.logprobs"],"stream_id":"s"})",
    R"({"type":"response.steer","previous_response_id":"resp_1","input":"x"})",
    R"({"type":"response.resume_from","response_id":"resp_1","sequence_number":3})",
    "\x01\x81\x85\x37\xFA\x21\x3D\x7F\x9F\x4D\x51\x58\x89\x80\x00\x00\x00\x00\x01\x81\x00\x00\x00\x00\x61"
    "\x80\x81\x00\x00\x00\x00\x62\x88\x82\x00\x00\x00\x00\x03\xE8"s,
    "\x09\xC1\x87\x00\x00\x00\x00\xF2\x48\xCD\xC9\xC9\x07\x00\x41\x83\x00\x00\x00\x00\xF2\x48\xCD\x80\x84"
    "\x00\x00\x00\x00\xC9\xC9\x07\x00"s,
    "permessage-deflate; server_max_window_bits=\"10\", tandem, api-key.Zmlyc3Q, openai-insecure-api-key.x",
    "POST /v1/completions?x=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}GET /live HTTP/1.0\r\n\r\n",
    "POST http://h/generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: "
    "100-continue\r\n\r\n2\r\n{}\r\n0\r\n\r\n"};

TEST(request_parsers, survive_mutated_requests) {
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (int round = 0; round < 60'000; ++round) {
    std::string input(1, static_cast<char>(below(11)));
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
