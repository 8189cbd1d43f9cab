/// Writes small good files for the fuzzers to start from: FOLDER/gguf, FOLDER/safetensors and
/// FOLDER/draft_heads.

#include <cstdio>
#include <filesystem>

#include "tests/support/file_bytes.hpp"
#include "tests/support/made_heads.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/safetensors_writer.hpp"

namespace {

using namespace tandem;

/// As fuzz_draft_heads.cpp reads it, for its target.
void write_heads_seed(const test::made_heads& made, const std::filesystem::path& file) {
  const std::size_t length = made.config.size();
  std::string seed{static_cast<char>(length % 256), static_cast<char>(length / 256)};
  seed += made.config;
  test::write_file(file, seed + test::safetensors_bytes(made.tensors));
}

void write_heads_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  test::rand_options options;
  options.hidden = 4;
  options.intermediate = 4;
  options.heads = 2;
  options.kv_heads = 1;
  options.tokenizer = test::pieces_tokenizer({"a", "b", "c", "d", "e", "f", "g", "h"});
  const auto target = test::make_rand(options);
  write_heads_seed(test::make_medusa(target, {.heads = 2}), folder / "medusa");
  write_heads_seed(test::make_eagle(target, {.third = false}), folder / "eagle");
  write_heads_seed(test::make_eagle(target, {.ids = {1, 3, 6}}), folder / "eagle3");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: fuzz_make_corpus FOLDER\n");
    return 1;
  }
  const std::filesystem::path folder = arguments[1];
  write_heads_seeds(folder / "draft_heads");
  std::filesystem::create_directories(folder / "gguf");
  std::filesystem::create_directories(folder / "safetensors");
  for (const char* architecture : {"llama", "qwen2"}) {
    test::rand_options options;
    options.architecture = architecture;
    options.layers = 1;
    options.hidden = 8;
    options.intermediate = 8;
    options.tokenizer = test::pieces_tokenizer({"a", "b", "c"});
    options.rope.scaling = model::rope_description::scaling_kind::yarn;
    options.rope.factor = 2.0;
    options.rope.original_context = 64;
    const auto made = test::make_rand(options);
    test::write_gguf(made, folder / "gguf" / architecture);
    const auto folder_made = folder / architecture;
    test::write_huggingface_folder(made, folder_made);
    for (const char* name : {"model.safetensors", "config.json"}) {
      std::filesystem::copy_file(folder_made / name, folder / "safetensors" / (std::string(architecture) + name),
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
  return 0;
}
