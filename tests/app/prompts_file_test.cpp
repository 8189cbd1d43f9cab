#include "app/prompts_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace tandem::app {
namespace {

result<std::vector<prompt_entry>> read_text(const std::string& text,
                                            const nlohmann::json& defaults = {{"max_tokens", 5}}) {
  const test::temporary_folder folder;
  const std::string path = (folder / "prompts.jsonl").string();
  std::ofstream(path) << text;
  return read_prompts_file(path, defaults);
}

TEST(prompts_file, lines_keep_their_order_and_get_ids) {
  const auto entries = read_text("{\"prompt\": \"a\"}\n\n{\"prompt\": \"b\", \"id\": \"mine\"}\r\n{\"prompt\": \"c\"}");
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ(entries->at(0).id, 0);
  EXPECT_EQ(entries->at(1).id, "mine");
  EXPECT_EQ(entries->at(2).id, 2);
}

TEST(prompts_file, a_lines_own_field_wins_over_the_flags) {
  const auto entries = read_text(
      "{\"prompt\": \"a\", \"max_tokens\": 9}\n{\"prompt\": \"b\"}\n{\"prompt\": \"c\", \"max_completion_tokens\": 7}");
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->at(2).request.stopping.max_tokens, 7);
  EXPECT_EQ(entries->at(0).request.stopping.max_tokens, 9);
  EXPECT_EQ(entries->at(1).request.stopping.max_tokens, 5);
}

TEST(prompts_file, an_error_names_file_line_and_field) {
  const auto entries = read_text("{\"prompt\": \"a\"}\n{\"prompt\": \"b\", \"n\": \"two\"}\n");
  ASSERT_FALSE(entries);
  EXPECT_NE(entries.error().message.find("prompts.jsonl line 2"), std::string::npos) << entries.error().message;
  EXPECT_NE(entries.error().message.find("\"n\""), std::string::npos);
  EXPECT_FALSE(read_text("not json\n"));
  EXPECT_FALSE(read_text("[1]\n"));
  EXPECT_FALSE(read_prompts_file("/nowhere/prompts.jsonl", {}));
}

TEST(prompts_file, a_deeply_nested_line_is_refused_and_brackets_in_strings_do_not_count) {
  EXPECT_FALSE(read_text("{\"prompt\": \"a\", \"x\": " + std::string(1'000'000, '[') + "\n"));
  EXPECT_TRUE(read_text("{\"prompt\": \"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"}\n"));
}

}  // namespace
}  // namespace tandem::app
