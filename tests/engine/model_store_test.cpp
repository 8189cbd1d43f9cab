#include "engine/model_store.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "engine/child_process.hpp"
#include "engine/loader.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::engine {
namespace {

/// Sets TANDEM_MODELS for one test.
class models_in_folder {
 public:
  models_in_folder() { setenv("TANDEM_MODELS", folder.path().c_str(), 1); }
  ~models_in_folder() { unsetenv("TANDEM_MODELS"); }
  test::temporary_folder folder;
};

TEST(model_store, the_folder_is_that_of_the_environment_else_of_the_cache) {
  {
    const models_in_folder scope;
    EXPECT_EQ(models_folder(), scope.folder.path());
  }
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(models_folder(), "/cache/tandem/models");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_TRUE(models_folder().string().ends_with(".cache/tandem/models"));
}

TEST(model_store, every_known_model_is_pinned_and_checked) {
  ASSERT_FALSE(known_models().empty());
  for (const known_model& entry : known_models()) {
    EXPECT_EQ(entry.sha256.size(), 64u) << entry.name;
    EXPECT_GT(entry.bytes, 0u);
    EXPECT_FALSE(entry.licence.empty());
    EXPECT_EQ(entry.package.find("{}") != std::string_view::npos, entry.parts > 1);
    EXPECT_EQ(find_known_model(entry.name), &entry);
  }
}

TEST(model_store, a_path_that_exists_is_taken_as_it_is) {
  const test::temporary_folder folder;
  std::ofstream(folder / "m.gguf") << "x";
  EXPECT_EQ(resolve_model((folder / "m.gguf").string()).value(), folder / "m.gguf");
}

TEST(model_store, a_folder_without_a_model_in_it_is_refused_with_what_to_name_instead) {
  const test::temporary_folder folder;
  const auto path = resolve_model(folder.path().string());
  ASSERT_FALSE(path);
  EXPECT_NE(path.error().message.find(".gguf file"), std::string::npos) << path.error().message;
  std::ofstream(folder / "config.json") << "{}";
  EXPECT_EQ(resolve_model(folder.path().string()).value(), folder.path());
}

TEST(model_store, an_unknown_name_is_refused_with_the_nearest_one) {
  const auto path = resolve_model("smolm2-135m");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, error_code::not_found);
  EXPECT_NE(path.error().message.find("did you mean \"smollm2-135m\"?"), std::string::npos) << path.error().message;
}

TEST(model_store, a_file_of_the_wrong_size_is_not_fetched_and_not_verified) {
  const models_in_folder scope;
  const known_model& entry = known_models().front();
  EXPECT_EQ(verify_model(entry).error().code, error_code::not_found);
  std::ofstream(path_of(entry)) << "short";
  EXPECT_FALSE(is_fetched(entry));
  EXPECT_EQ(verify_model(entry).error().code, error_code::corrupt);
  EXPECT_TRUE(remove_model(entry));
  EXPECT_FALSE(remove_model(entry));
}

TEST(child_process, gives_the_exit_status) {
  EXPECT_EQ(run_child({"true"}), 0);
  EXPECT_EQ(run_child({"sh", "-c", "exit 3"}), 3);
  EXPECT_EQ(run_child({"no-such-program-at-all"}), kChildNotFound);
}

TEST(loader, a_model_is_served_under_the_files_name) {
  EXPECT_EQ(served_name("/models/qwen-0.5b.gguf"), "qwen-0.5b");
  EXPECT_EQ(served_name("/models/folder/"), "folder");
  EXPECT_EQ(served_name("smollm2-135m"), "smollm2-135m");
  EXPECT_EQ(served_name("qwen2.5-coder-0.5b"), "qwen2.5-coder-0.5b");
}

}  // namespace
}  // namespace tandem::engine
