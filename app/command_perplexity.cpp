#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>

#include "app/answer_json.hpp"
#include "app/command.hpp"
#include "app/generation_run.hpp"
#include "app/interrupts.hpp"
#include "app/perplexity.hpp"
#include "app/progress_bar.hpp"
#include "config/flags.hpp"
#include "engine/loader.hpp"
#include "text/utf8.hpp"

namespace tandem::app {
namespace {

using clock = std::chrono::steady_clock;

constexpr const char* kMethod =
    "What is scored: the text is encoded as plain text (special tokens are not recognised); its first --max-tokens "
    "tokens\n"
    "are cut into chunks of --context tokens, the last one shorter. Each chunk is a prompt of its own that sees "
    "nothing of\n"
    "the others. Every token of a chunk but its first is scored: its log-probability given all tokens before it in "
    "the\n"
    "same chunk, before temperature and penalties. For a model that wants a BOS token each chunk is that token and\n"
    "--context - 1 tokens of the text, all of which are scored. Perplexity = e^(mean negative log-likelihood per "
    "scored\n"
    "token, in nats); the error behind ± is one standard error, tokens taken as independent. (llama.cpp's tool of the "
    "same\n"
    "name scores only the second half of each chunk, so its figures are lower.)";

struct perplexity_options {
  config::options settings;
  std::string file = "-";
  std::int32_t max_tokens = limits::kDefaultPerplexityTokens;
  std::int32_t context = limits::kDefaultPerplexityContext;
  std::string output = "text";
};

/// What one run gave.
struct measurement {
  likelihood_tally tally;
  std::size_t text_tokens = 0;
  std::size_t chunks = 0;
  double wall_s = 0;
};

/// At most one byte more than may be encoded: a device or pipe may never end.
result<std::string> read_text(const std::string& file) {
  const bool standard_input = file == "-";
  std::ifstream opened;
  if (!standard_input) opened.open(file, std::ios::binary);
  std::istream& stream = standard_input ? std::cin : opened;
  if (!stream || (!standard_input && !opened.is_open()))
    return fail(error_code::not_found, fmt::format("--file: cannot read {}.", file), file);
  std::string text;
  std::string piece(limits::kReadChunkBytes, '\0');
  while (text.size() <= limits::kMaxEncodeBytes) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (stream.bad()) return fail(error_code::io, fmt::format("--file: reading {} failed.", file), file);
    if (stream.gcount() == 0) return text;
    text.append(piece, 0, static_cast<std::size_t>(stream.gcount()));
  }
  return fail(error_code::too_large,
              fmt::format("--file: {} has more than {} bytes; give less text.", file, limits::kMaxEncodeBytes), file);
}

/// Replacement characters would give a confident figure of another text.
result<void> check_text(const std::string& text) {
  if (text.empty()) return fail(error_code::invalid_argument, "--file: the text is empty; give more text.", "--file");
  if (text::is_valid_utf8(text)) return {};
  return fail(error_code::invalid_argument, "--file: the text is not UTF-8; convert it first, with iconv for example.",
              "--file");
}

result<chunked_text> cut(const std::string& text, const text::tokenizer& tokenizer, const perplexity_options& options) {
  auto tokens = tokenizer.encode(text, false, false);
  if (!tokens) return tl::unexpected(tokens.error());
  const auto most = static_cast<std::size_t>(options.max_tokens);
  if (tokens->size() > most) tokens->resize(most);
  const text::tokenizer_spec& spec = tokenizer.spec();
  chunked_text chunks(std::move(*tokens), spec.add_bos ? spec.bos : kNoToken, options.context);
  if (chunks.chunks() > 0) return chunks;
  return fail(error_code::invalid_argument,
              fmt::format("--file: the text has {} {}, too few to score one; give more text.", chunks.tokens(),
                          chunks.tokens() == 1 ? "token" : "tokens"),
              "--file");
}

generation_request scoring_request(std::vector<token_id> prompt) {
  generation_request request;
  request.prompt = std::move(prompt);
  request.stopping.max_tokens = 0;
  request.logprobs.prompt_top = 0;
  request.speculation.method = draft_method::none;
  return request;
}

/// Adds a chunk's log-probabilities. Errors: the request's own; device_failed; unavailable when it was cut short.
result<void> add_chunk(const engine::collected_answer& answer, std::size_t scored, likelihood_tally& tally) {
  if (answer.refused) return tl::unexpected(*answer.refused);
  const finish& end = *answer.choices.front().end;
  if (end.reason == finish_reason::error) return fail(error_code::device_failed, end.message);
  if (end.reason == finish_reason::cancelled) return fail(error_code::unavailable, "interrupted; nothing is reported.");
  if (answer.prompt_logprobs.size() != scored)
    return fail(error_code::device_failed,
                fmt::format("the engine scored {} of {} tokens of a chunk.", answer.prompt_logprobs.size(), scored));
  for (const token_logprobs& token : answer.prompt_logprobs) {
    if (!std::isfinite(token.logprob))
      return fail(
          error_code::device_failed,
          fmt::format("the model gave token {} the log-probability {}; its weights are broken, or too large for "
                      "this --dtype or --quantization.",
                      token.token, token.logprob));
    tally.add(token.logprob);
  }
  return {};
}

result<measurement> measure(const chunked_text& text, generation_run& run) {
  measurement measured;
  measured.text_tokens = text.tokens();
  measured.chunks = text.chunks();
  progress_bar bar(text.chunks());
  const auto started = clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(clock::now() - started).count(); };
  std::size_t submitted = 0;
  for (std::size_t done = 0; done < text.chunks(); ++done) {
    while (submitted < text.chunks() && run.in_flight() < limits::kPerplexityChunksInFlight)
      run.submit(scoring_request(text.prompt(submitted++)));
    const engine::collected_answer answer = run.take_oldest();
    const std::size_t scored = text.prompt(done).size() - 1;
    if (auto added = add_chunk(answer, scored, measured.tally); !added) return tl::unexpected(added.error());
    bar.show(done + 1, measured.tally.tokens(), seconds());
  }
  measured.wall_s = seconds();
  return measured;
}

const char* name_of(config::weight_dtype dtype) {
  if (dtype == config::weight_dtype::bf16) return "bf16";
  return dtype == config::weight_dtype::fp32 ? "fp32" : "auto";
}

void print_json(const measurement& measured, const perplexity_options& options, const runtime& engine) {
  const config::engine_options& asked = options.settings.engine;
  const nlohmann::ordered_json root = {
      {"perplexity", measured.tally.perplexity()},
      {"perplexity_error", measured.tally.perplexity_error()},
      {"mean_nll", measured.tally.mean()},
      {"mean_nll_error", measured.tally.mean_error()},
      {"tokens_scored", measured.tally.tokens()},
      {"tokens", measured.text_tokens},
      {"chunks", measured.chunks},
      {"context", options.context},
      {"model", engine.options().model_name},
      {"device", engine.device().name},
      {"dtype", name_of(asked.dtype)},
      {"quantization", asked.quantization == config::weight_quantization::int8 ? "int8" : "none"},
      {"weight_bytes", engine.device().weight_bytes},
      {"wall_s", measured.wall_s},
      {"tokens_per_s", measured.wall_s > 0 ? static_cast<double>(measured.tally.tokens()) / measured.wall_s : 0}};
  fmt::print("{}\n", to_line(root));
}

void print_text(const measurement& measured, const perplexity_options& options) {
  const likelihood_tally& tally = measured.tally;
  fmt::print("perplexity {:.4f} ± {:.4f}\n", tally.perplexity(), tally.perplexity_error());
  fmt::print("mean negative log-likelihood {:.5f} ± {:.5f} nats per token\n", tally.mean(), tally.mean_error());
  fmt::print("tokens scored: {} of {}, in {} {} of up to {}\n", tally.tokens(), measured.text_tokens, measured.chunks,
             measured.chunks == 1 ? "chunk" : "chunks", options.context);
}

result<void> check_context(const perplexity_options& options, const runtime& engine) {
  const std::int32_t most = engine.options().max_model_len;
  if (options.context <= most) return {};
  return fail(error_code::invalid_argument,
              fmt::format("--context is {}, but the model can hold {} tokens; lower it.", options.context, most),
              "--context");
}

int perplexity(CLI::App& command, perplexity_options& options) {
  if (auto ready = prepare(command, options.settings); !ready) return report(ready.error());
  const auto text = read_text(options.file);
  if (!text) return report(text.error());
  if (auto fits = check_text(*text); !fits) return report(fits.error());
  interrupts watch(kExitInterrupted);
  auto engine = engine::start_engine(options.settings.engine, [](const std::string& line) { spdlog::info(line); });
  if (!engine) return report(engine.error());
  if (auto fits = check_context(options, **engine); !fits) return report(fits.error());
  const auto chunks = cut(*text, (*engine)->tokenizer(), options);
  if (!chunks) return report(chunks.error());

  engine::client client(**engine);
  generation_run run(client);
  watch.arm([&run] { run.cancel(); });
  const auto measured = measure(*chunks, run);
  const bool interrupted = run.cancelled();
  run.cancel();  // after a failure: what is still in flight refers to `run`
  while (run.in_flight() > 0) run.take_oldest();
  watch.arm([] {});
  if (!measured) {
    report(measured.error());
    return interrupted ? kExitInterrupted : kExitFailed;
  }
  if (options.output == "json")
    print_json(*measured, options, **engine);
  else
    print_text(*measured, options);
  return kExitOk;
}

}  // namespace

void add_perplexity(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "perplexity", "How well a model predicts a text");
  command->footer(kMethod);
  const auto options = std::make_shared<perplexity_options>();
  options->settings.logging.level = config::log_level::warning;
  config::add_engine_flags(*command, options->settings);
  command->add_option("file,--file", options->file, "The text; default -: standard input")->type_name("FILE");
  command
      ->add_option("--max-tokens", options->max_tokens,
                   fmt::format("Tokens of the text to take; default {}", limits::kDefaultPerplexityTokens))
      ->check(CLI::Range(1, limits::kMaxPerplexityTokens).description(""))
      ->type_name(fmt::format("1..{}", limits::kMaxPerplexityTokens));
  command
      ->add_option("--context", options->context,
                   fmt::format("Tokens of a chunk; default {}", limits::kDefaultPerplexityContext))
      ->check(CLI::Range(2, limits::kMaxModelLength).description(""))
      ->type_name(fmt::format("2..{}", limits::kMaxModelLength));
  command->add_option("--output", options->output, "Form of the result; default text")
      ->check(CLI::IsMember({"text", "json"}).description(""))
      ->type_name("text|json");
  config::add_common_flags(*command, options->settings);
  commands.emplace_back(command, [command, options] { return perplexity(*command, *options); });
}

}  // namespace tandem::app
