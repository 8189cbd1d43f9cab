#include "model/inspect.hpp"

#include <gtest/gtest.h>

#include "model/printable.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::model {
namespace {

TEST(inspect, the_report_names_sizes_kinds_memory_tokenizer_and_metadata) {
  const test::temporary_folder folder;
  test::rand_options options;
  options.kind = tensor_kind::q8_0;
  test::write_gguf(test::make_rand(options), folder / "made.gguf");
  const auto opened = open_model(folder / "made.gguf");
  ASSERT_TRUE(opened) << opened.error().message;
  const std::string report = inspect_report(**opened);
  for (const char* expected :
       {"llama (GGUF v3)", "4 heads of 16, 2 key-value heads", "512 positions", "on its own", "Q8_0       16",
        "KV of 1,000 tokens, bf16 250.0 KiB", "259 (3 control", "257 \"<|im_end|>\" 258 \"<|endoftext|>\"",
        "general.name = made for a test", "tokenizer.ggml.tokens = 259 × string"}) {
    EXPECT_NE(report.find(expected), std::string::npos) << expected << "\n" << report;
  }
}

TEST(inspect, text_of_a_file_cannot_steer_the_terminal) {
  EXPECT_EQ(printable("a\x1B[2J\nb\xC2\x9B"
                      "c",
                      100),
            "a\\x1b[2J\\nb\\xc2\\x9bc");
  EXPECT_EQ(printable("\xF0\x9F\x98\x80 \xED\xA0\x80 \xC3", 100), "\xF0\x9F\x98\x80 \\xed\\xa0\\x80 \\xc3");
  EXPECT_EQ(printable(std::string(1000, 'x'), 10), std::string(10, 'x') + "…");
}

}  // namespace
}  // namespace tandem::model
