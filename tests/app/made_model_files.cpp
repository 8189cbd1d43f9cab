/// made_model_files FOLDER: writes the made models that tests of the binary use.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "tests/support/made_models.hpp"

namespace tandem::test {
namespace {

using std::filesystem::path;

// Spaces in front, characters of 2, 3 and 4 bytes, combining marks, a run of CJK, emoji of several code points.
constexpr const char* kForcedText =
    "  é naïve Ωmega e\xCC\x81 a\xCC\x88 日本語中文字한국어 👩\xE2\x80\x8D👩\xE2\x80\x8D👧\xE2\x80\x8D👦 🇩🇪🇫🇷 "
    "👍🏽 "
    "\xF0\x9F\x8F\xB3\xEF\xB8\x8F\xE2\x80\x8D🌈 end.";

/// Cut so that no piece occurs twice: a ring may pass each token once. Cuts fall inside characters, too.
std::vector<std::string> distinct_pieces(const std::string& text) {
  std::vector<std::string> pieces;
  std::set<std::string> seen;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t length = 1;
    while (begin + length < text.size() && seen.contains(text.substr(begin, length))) ++length;
    pieces.push_back(text.substr(begin, length));
    TANDEM_ASSERT(seen.insert(pieces.back()).second);  // the text must end with something new
    begin += length;
  }
  return pieces;
}

/// CYCLE and CYCLE-BAD(3) that say `text` and then the end token, from any token outside the ring on.
void write_forced(const std::string& text, const path& folder) {
  const std::vector<std::string> pieces = distinct_pieces(text);
  std::vector<std::string> longer;
  std::copy_if(pieces.begin(), pieces.end(), std::back_inserter(longer), [](const auto& p) { return p.size() > 1; });
  cycle_options options;
  options.tokenizer = bytes_tokenizer(longer);
  for (const std::string& piece : pieces) options.ring.push_back(options.tokenizer.find(piece));
  options.ring.push_back(options.tokenizer.eos);
  write_gguf(make_cycle(options), folder / "cycle-text.gguf");
  options.bad_every = 3;
  write_gguf(make_cycle(options), folder / "cycle-text-bad.gguf");
  std::ofstream(folder / "cycle-text.txt", std::ios::binary) << text;
}

void write_cycles(const path& folder) {
  cycle_options options;
  write_gguf(make_cycle(options), folder / "cycle.gguf");
  options.bad_every = 3;
  write_gguf(make_cycle(options), folder / "cycle-bad.gguf");
  // The 4th token behind "abc" is an end token, the 9th the other one.
  const made_tokenizer& tokens = options.tokenizer;
  options.ring = {'a', 'b', 'c', 'd', 'e', 'f', tokens.eos, 'g', 'h', 'i', 'j', tokens.find("<|endoftext|>"),
                  'k', 'l', 'm', 'n', 'o', 'p', 'q',        'r', 's'};
  options.bad_every = 3;
  write_gguf(make_cycle(options), folder / "cycle-end-bad.gguf");
  options.bad_every = 0;
  write_gguf(make_cycle(options), folder / "cycle-end.gguf");
  write_forced(kForcedText, folder);
}

void write_rand(const rand_options& options, const path& file) {
  write_gguf(make_rand(options), file);
}

/// Rows as wide as a block of every kind, and log-probabilities as far apart as a real model's: RAND's own logits are so
/// far apart that rounding moves its perplexity by more than a real model's.
void write_wide_rand(const path& file) {
  rand_options options;
  options.hidden = 256;
  options.intermediate = 256;
  options.tokenizer = bytes_tokenizer({"th"});
  options.tokenizer.merges = {{"t", "h"}};  // the gguf package writes no empty list
  made_model made = make_rand(options);
  for (made_tensor& tensor : made.tensors)
    if (tensor.gguf_name == "output.weight")
      for (float& value : tensor.values) value *= 0.1F;
  write_gguf(made, file);
}

/// Drafts for "rand" whose vocabulary differs from its own in one way each.
void write_other_vocabularies(const path& folder) {
  rand_options options;
  options.noise = 0.1F;
  auto& tokens = options.tokenizer.tokens;
  tokens.push_back({"<|padding 1|>", text::token_kind::unused});
  tokens.push_back({"<|padding 2|>", text::token_kind::unused});
  write_rand(options, folder / "rand-padded.gguf");
  options.tokenizer = bytes_tokenizer();
  tokens.pop_back();
  write_rand(options, folder / "rand-fewer.gguf");
  options.tokenizer = bytes_tokenizer();
  std::swap(tokens['q'], tokens['z']);
  write_rand(options, folder / "rand-swapped.gguf");
  options.tokenizer = bytes_tokenizer();
  options.tokenizer.eos = 'z';
  write_rand(options, folder / "rand-other-end.gguf");
  options.tokenizer = pieces_tokenizer({"a", "b", "c"});
  write_rand(options, folder / "rand-other-tokens.gguf");
}

void write_rands(const path& folder) {
  rand_options options;
  write_rand(options, folder / "rand.gguf");
  options.noise = 0.1F;
  write_rand(options, folder / "rand-noisy.gguf");
  options.context_length = 64;
  write_rand(options, folder / "rand-short.gguf");
  write_wide_rand(folder / "rand-wide.gguf");
  options = {};
  options.tokenizer.bos = options.tokenizer.find("<|endoftext|>");
  options.tokenizer.add_bos = true;
  write_rand(options, folder / "rand-bos.gguf");
  options = {};
  options.seed = 2;
  write_rand(options, folder / "rand-stranger.gguf");
  options.seed = 1;
  options.rope.original_context = 32;
  options.rope.factor = 4;
  options.rope.scaling = model::rope_description::scaling_kind::linear;
  write_rand(options, folder / "rand-linear.gguf");
  options.rope.scaling = model::rope_description::scaling_kind::yarn;
  write_rand(options, folder / "rand-yarn.gguf");
  write_other_vocabularies(folder);
}

}  // namespace
}  // namespace tandem::test

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::cerr << "usage: made_model_files FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  tandem::test::write_cycles(folder);
  tandem::test::write_rands(folder);
  return 0;
}
