#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>

#include "app/answer_json.hpp"
#include "app/command.hpp"
#include "app/generation_run.hpp"
#include "app/hidden_dump.hpp"
#include "app/interrupts.hpp"
#include "app/progress_bar.hpp"
#include "app/prompts_file.hpp"
#include "app/request_fields.hpp"
#include "config/flags.hpp"
#include "engine/loader.hpp"

namespace tandem::app {
namespace {

using clock = std::chrono::steady_clock;

enum class output_form : std::uint8_t { text, json, jsonl };

struct generate_options {
  config::options settings;
  std::vector<std::string> prompts;
  std::string prompts_file;
  std::string output = "text";
  std::string dump_hidden;        // where files of hidden states begin; empty: none are written
  nlohmann::ordered_json fields;  // sampling fields from flags
};

result<std::vector<prompt_entry>> read_prompts(const generate_options& options) {
  if (options.prompts.empty() == options.prompts_file.empty())
    return fail(error_code::invalid_argument, "give one of --prompt TEXT and --prompts FILE.jsonl.", "--prompt");
  if (!options.prompts_file.empty()) return read_prompts_file(options.prompts_file, options.fields);
  std::vector<prompt_entry> entries;
  for (const std::string& prompt : options.prompts) {
    nlohmann::ordered_json fields = options.fields;
    fields["prompt"] = prompt;
    auto request = read_request(fields);
    if (!request) return tl::unexpected(error{request.error().code, request.error().message, "--prompt"});
    entries.push_back({nlohmann::json(entries.size()), std::move(*request)});
  }
  return entries;
}

/// Prints answers as they come, in order, and adds them up.
class answer_printer {
 public:
  answer_printer(output_form form, const text::tokenizer& tokenizer, bool already_streamed)
      : form_(form), tokenizer_(tokenizer), already_streamed_(already_streamed) {}

  void print(const nlohmann::json& id, const engine::collected_answer& answer) {
    count(answer);
    if (form_ == output_form::text) {
      print_text(answer);
      return;
    }
    nlohmann::ordered_json object = answer_to_json(id, answer, tokenizer_);
    if (form_ == output_form::json) {
      results_.push_back(std::move(object));
      return;
    }
    fmt::print("{}\n", to_line(object));
    std::fflush(stdout);
  }

  void finish(double wall_s) {
    if (form_ != output_form::json) return;
    const double rate = wall_s > 0 ? static_cast<double>(completion_tokens_) / wall_s : 0;
    const nlohmann::ordered_json root = {{"results", std::move(results_)},
                                         {"totals",
                                          {{"wall_s", wall_s},
                                           {"prompt_tokens", prompt_tokens_},
                                           {"completion_tokens", completion_tokens_},
                                           {"tokens_per_s", rate}}}};
    fmt::print("{}\n", to_line(root));
  }

  bool failed() const { return failed_; }
  std::int64_t completion_tokens() const { return completion_tokens_; }

 private:
  void count(const engine::collected_answer& answer) {
    failed_ = failed_ || answer.refused.has_value();
    prompt_tokens_ += answer.prompt ? static_cast<std::int64_t>(answer.prompt->size()) : 0;
    for (const engine::collected_choice& choice : answer.choices) {
      completion_tokens_ += static_cast<std::int64_t>(choice.tokens.size());
      failed_ = failed_ || (choice.end && choice.end->reason == finish_reason::error);
    }
  }

  void print_text(const engine::collected_answer& answer) {
    if (answer.refused) report(*answer.refused);
    for (const engine::collected_choice& choice : answer.choices) {
      if (!answer.refused) fmt::print("{}\n", already_streamed_ ? std::string{} : choice.text);
      if (choice.end && choice.end->reason == finish_reason::error)
        fmt::print(stderr, "tandem: {}\n", choice.end->message);
    }
    std::fflush(stdout);
  }

  output_form form_;
  const text::tokenizer& tokenizer_;
  bool already_streamed_;
  bool failed_ = false;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t completion_tokens_ = 0;
  nlohmann::ordered_json results_ = nlohmann::ordered_json::array();
};

void print_piece(const generation_event& event) {
  fmt::print("{}", event.text);
  std::fflush(stdout);
}

/// Called with the place of the prompt among all of them, in order.
using answer_consumer = std::function<void(std::size_t place, const engine::collected_answer&)>;

/// Keeps a window of requests in flight until all are answered or Ctrl-C stopped it.
void run_all(std::vector<prompt_entry>& entries, generation_run& run, std::size_t window, const answer_printer& printer,
             const answer_consumer& consume) {
  progress_bar bar(entries.size());
  const auto started = clock::now();
  std::size_t submitted = 0;
  std::size_t printed = 0;
  while (printed < entries.size()) {
    const bool room = submitted < entries.size() && run.in_flight() < window && !run.cancelled();
    if (room) {
      run.submit(std::move(entries[submitted++].request));
      continue;
    }
    if (run.in_flight() == 0) break;  // cancelled before the rest was submitted
    consume(printed++, run.take_oldest());
    bar.show(printed, printer.completion_tokens(), std::chrono::duration<double>(clock::now() - started).count());
  }
}

std::size_t window_of(const config::engine_options& engine) {
  const std::size_t queued = engine.max_queued_requests == 0 ? limits::kMaxQueuedRequests : engine.max_queued_requests;
  return std::min(limits::kMaxGenerateInFlight, queued);
}

output_form form_of(const std::string& name) {
  if (name == "json") return output_form::json;
  return name == "jsonl" ? output_form::jsonl : output_form::text;
}

void log_line(const std::string& line) {
  spdlog::info(line);
}

/// Answers and prints everything; the sequences stay in `dumped` when their hidden states are wanted.
int answer_all(std::vector<prompt_entry>& entries, const generate_options& options, interrupts& watch,
               std::vector<dumped_sequence>& dumped) {
  auto engine = engine::start_engine(options.settings.engine, log_line);
  if (!engine) return report(engine.error());

  engine::client client(**engine);
  const output_form form = form_of(options.output);
  const bool stream = form == output_form::text && entries.size() == 1 && entries.front().request.n == 1;
  generation_run run(client, stream ? print_piece : generation_run::piece_listener{});
  watch.arm([&run] { run.cancel(); });
  answer_printer printer(form, (*engine)->tokenizer(), stream);
  const auto started = clock::now();
  const bool keeps = !options.dump_hidden.empty();
  run_all(entries, run, window_of(options.settings.engine), printer,
          [&](std::size_t place, const engine::collected_answer& answer) {
            printer.print(entries[place].id, answer);
            if (keeps) std::ranges::move(sequences_of(place, answer), std::back_inserter(dumped));
          });
  watch.arm([] {});  // the run is over: nothing is left to cancel
  printer.finish(std::chrono::duration<double>(clock::now() - started).count());
  if (run.cancelled()) dumped.clear();  // whoever stopped it does not wait for more
  return printer.failed() ? kExitFailed : kExitOk;
}

/// The engine is gone by now: the model is loaded again, for this alone.
int dump_hidden(const generate_options& options, interrupts& watch, std::span<const dumped_sequence> sequences) {
  auto reader = engine::hidden_state_reader::open(options.settings.engine, log_line);
  if (!reader) return report(reader.error());
  const std::string name = engine::served_name(options.settings.engine.model);
  std::atomic<bool> stop = false;
  watch.arm([&stop] { stop = true; });
  const auto written = write_hidden_states(options.dump_hidden, name, sequences, *reader, stop);
  watch.arm([] {});
  if (stop) return kExitInterrupted;
  return written ? kExitOk : report(written.error());
}

int generate(CLI::App& command, generate_options& options) {
  if (auto ready = prepare(command, options.settings); !ready) return report(ready.error());
  take_seed(command, options.settings.engine.seed, options.fields);
  auto entries = read_prompts(options);
  if (!entries) return report(entries.error());
  interrupts watch(kExitInterrupted);
  std::vector<dumped_sequence> dumped;
  const int answered = answer_all(*entries, options, watch, dumped);
  if (dumped.empty()) return answered;
  const int written = dump_hidden(options, watch, dumped);
  return answered == kExitOk ? written : answered;
}

}  // namespace

void add_generate(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "generate", "Answer prompts and end; many at once");
  const auto options = std::make_shared<generate_options>();
  options->settings.logging.level = config::log_level::warning;
  command->add_option("--prompt", options->prompts, "A prompt; repeatable")->allow_extra_args(false);
  command->add_option("--prompts", options->prompts_file, "A file with one JSON object a line; - is standard input")
      ->type_name("FILE.jsonl");
  command->add_option("--output", options->output, "Form of the answers; default text")
      ->check(CLI::IsMember({"text", "json", "jsonl"}).description(""))
      ->type_name("text|json|jsonl");
  command
      ->add_option("--dump-hidden", options->dump_hidden,
                   "Also write the tokens' hidden states, for training draft heads: PREFIX-00001.safetensors, …")
      ->type_name("PREFIX");
  add_sampling_flags(*command, options->fields);
  config::add_engine_flags(*command, options->settings);
  config::add_common_flags(*command, options->settings);
  commands.emplace_back(command, [command, options] { return generate(*command, *options); });
}

}  // namespace tandem::app
