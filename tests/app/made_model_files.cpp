/// made_model_files FOLDER: writes the made models that tests of the binary use.

#include <filesystem>
#include <iostream>

#include "tests/support/made_models.hpp"

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::cerr << "usage: made_model_files FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  tandem::test::cycle_options bad;
  bad.bad_every = 3;
  tandem::test::write_gguf(tandem::test::make_cycle(), folder / "cycle.gguf");
  tandem::test::write_gguf(tandem::test::make_cycle(bad), folder / "cycle-bad.gguf");
  tandem::test::write_gguf(tandem::test::make_rand(), folder / "rand.gguf");
  tandem::test::rand_options noisy;
  noisy.noise = 0.1F;
  tandem::test::write_gguf(tandem::test::make_rand(noisy), folder / "rand-noisy.gguf");
  return 0;
}
