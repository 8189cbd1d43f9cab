/// Writes small good files for the fuzzers to start from: FOLDER/gguf and FOLDER/safetensors.

#include <cstdio>
#include <filesystem>

#include "tests/support/file_bytes.hpp"
#include "tests/support/made_models.hpp"
#include "tests/support/safetensors_writer.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: fuzz_make_corpus FOLDER\n");
    return 1;
  }
  using namespace tandem;
  const std::filesystem::path folder = arguments[1];
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
