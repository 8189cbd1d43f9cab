#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <iterator>
#include <sstream>

#include "app/command.hpp"
#include "engine/loader.hpp"

namespace tandem::app {
namespace {

struct tokenize_options {
  std::string model;
  std::string text;
  bool ids_only = false;
  bool special = false;
};

struct detokenize_options {
  std::string model;
  std::string ids;
  bool skip_special = false;
};

void add_model(CLI::App& command, std::string& model) {
  command.add_option("model,--model", model, "A .gguf file, a Hugging Face folder or a known name")->type_name("MODEL");
}

/// The flag's text when it was given, else standard input as it is, with every byte.
std::string text_or_input(const CLI::App& command, const std::string& flag, const std::string& text) {
  if (command.get_option(flag)->count() > 0) return text;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

std::string visible(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      text += fmt::format("\\x{:02x}", byte);
    else
      text += c;
  }
  return text;
}

std::string joined(const std::vector<token_id>& ids) {
  std::string text;
  for (const token_id id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

int tokenize(const CLI::App& command, const tokenize_options& options) {
  const auto opened = engine::open_with_tokenizer(options.model);
  if (!opened) return report(opened.error());
  const text::tokenizer& tokenizer = *opened->tokenizer;
  const auto ids = tokenizer.encode(text_or_input(command, "--text", options.text), options.special, false);
  if (!ids) return report(ids.error());
  if (options.ids_only) {
    fmt::print("{}\n", joined(*ids));
    return kExitOk;
  }
  for (const token_id id : *ids) fmt::print("{:>8}  {}\n", id, visible(tokenizer.token_bytes(id, false)));
  return kExitOk;
}

result<std::vector<token_id>> parse_ids(const std::string& text, std::int32_t vocabulary) {
  std::vector<token_id> ids;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    token_id id = kNoToken;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
    const bool whole = problem == std::errc{} && end == word.data() + word.size();
    if (!whole || id < 0 || id >= vocabulary)
      return fail(error_code::invalid_argument,
                  fmt::format("\"{}\" is not a token id of this model; ids go from 0 to {}.", word, vocabulary - 1));
    ids.push_back(id);
  }
  return ids;
}

int detokenize(const CLI::App& command, const detokenize_options& options) {
  const auto opened = engine::open_with_tokenizer(options.model);
  if (!opened) return report(opened.error());
  const auto ids = parse_ids(text_or_input(command, "--ids", options.ids), opened->tokenizer->size());
  if (!ids) return report(ids.error());
  fmt::print("{}", opened->tokenizer->decode(*ids, options.skip_special));
  return kExitOk;
}

}  // namespace

void add_tokenize(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "tokenize", "Text to token ids");
  const auto options = std::make_shared<tokenize_options>();
  add_model(*command, options->model);
  command->add_option("--text", options->text, "The text; default: standard input, every byte of it");
  command->add_flag("--ids", options->ids_only, "Only the ids, separated by spaces");
  command->add_flag("--special", options->special, "Recognise special tokens such as <|im_end|>");
  commands.emplace_back(command, [command, options] { return tokenize(*command, *options); });
}

void add_detokenize(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "detokenize", "Token ids to text");
  const auto options = std::make_shared<detokenize_options>();
  add_model(*command, options->model);
  command->add_option("--ids", options->ids, "The ids in one argument, separated by spaces; default: standard input");
  command->add_flag("--skip-special", options->skip_special, "Leave special tokens out");
  commands.emplace_back(command, [command, options] { return detokenize(*command, *options); });
}

}  // namespace tandem::app
