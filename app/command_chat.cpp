#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "app/command.hpp"
#include "app/draft_painter.hpp"
#include "app/generation_run.hpp"
#include "app/interrupts.hpp"
#include "app/request_fields.hpp"
#include "config/flags.hpp"
#include "engine/loader.hpp"

namespace tandem::app {
namespace {

struct chat_options {
  config::options settings;
  std::string system;
  bool show_drafts = false;
  nlohmann::ordered_json fields;
};

/// One conversation: keeps the messages, asks for one answer at a time.
class conversation {
 public:
  conversation(const chat_options& options, runtime& engine)
      : options_(options), engine_(engine), client_(engine), run_(client_, [this](const generation_event& event) {
          fmt::print("{}", painter_ ? painter_->paint(event.text, event.tokens, event.accepted) : event.text);
          std::fflush(stdout);
        }) {
    restart();
  }

  void restart() {
    messages_ = nlohmann::ordered_json::array();
    if (!options_.system.empty()) messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }

  /// False when it could not be answered.
  bool say(const std::string& line) {
    messages_.push_back({{"role", "user"}, {"content", line}});
    nlohmann::ordered_json fields = options_.fields;
    fields["messages"] = messages_;
    auto request = read_request(fields);
    if (!request) return refuse(request.error());
    request->n = 1;
    if (options_.show_drafts && output_takes_colours())
      painter_.emplace(engine_.tokenizer(), request->stopping.skip_special_tokens);
    run_.submit(std::move(*request));
    const engine::collected_answer answer = run_.take_oldest();
    if (answer.refused) return refuse(*answer.refused);
    const engine::collected_choice& choice = answer.choices.front();
    fmt::print("\n");
    if (choice.end->reason == finish_reason::error) return refuse({choice.end->code, choice.end->message, {}});
    messages_.push_back({{"role", "assistant"}, {"content", choice.text}});
    return true;
  }

  void cancel() { run_.cancel(); }

 private:
  bool refuse(const error& problem) {
    messages_.erase(messages_.size() - 1);
    report(problem);
    return false;
  }

  const chat_options& options_;
  runtime& engine_;
  std::optional<draft_painter> painter_;  // of the answer under way
  engine::client client_;
  generation_run run_;
  nlohmann::ordered_json messages_;
};

/// False at the end of input.
bool read_line(bool prompt, std::string& line) {
  if (prompt) {
    fmt::print("> ");
    std::fflush(stdout);
  }
  return static_cast<bool>(std::getline(std::cin, line)) && line.size() <= limits::kMaxChatLineBytes;
}

/// What the main thread is doing, for Ctrl-C.
struct chat_state {
  std::atomic<bool> waiting_for_line = false;
  std::atomic<bool> stopping = false;
};

int converse(conversation& talk, chat_state& state) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) fmt::print("Type a message. /reset starts again, /exit or Ctrl-D ends.\n");
  bool all_answered = true;
  std::string line;
  while (!state.stopping) {
    state.waiting_for_line = true;
    const bool more = read_line(terminal, line);
    state.waiting_for_line = false;
    if (!more) break;
    if (line == "/exit") break;
    if (line.empty()) continue;
    if (line == "/reset")
      talk.restart();
    else
      all_answered = talk.say(line) && all_answered;
  }
  return all_answered ? kExitOk : kExitFailed;
}

int chat(CLI::App& command, chat_options& options) {
  if (auto ready = prepare(command, options.settings); !ready) return report(ready.error());
  take_seed(command, options.settings.engine.seed, options.fields);
  interrupts watch(kExitInterrupted);
  auto engine = engine::start_engine(options.settings.engine, [](const std::string& text) { spdlog::info(text); });
  if (!engine) return report(engine.error());
  if (!(*engine)->has_chat_template())
    return report(
        {error_code::unsupported, "this model has no chat template; give one with --chat-template FILE.", {}});
  chat_state state;
  conversation talk(options, **engine);
  watch.arm([&] {
    state.stopping = true;
    talk.cancel();
    if (!state.waiting_for_line) return;
    fmt::print("\n");
    std::fflush(stdout);
    std::_Exit(kExitOk);  // a read of the terminal cannot be called back, and nothing is left to save
  });
  const int status = converse(talk, state);
  watch.arm([] {});  // the conversation is over: nothing is left to cancel
  return status;
}

}  // namespace

void add_chat(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "chat", "Talk to a model in the terminal");
  const auto options = std::make_shared<chat_options>();
  options->settings.logging.level = config::log_level::warning;
  command->add_option("--system", options->system, "The system message");
  command->add_flag("--show-drafts", options->show_drafts,
                    "Show what was drafted and accepted in green, on a terminal without NO_COLOR; off by default");
  add_sampling_flags(*command, options->fields);
  config::add_engine_flags(*command, options->settings);
  config::add_common_flags(*command, options->settings);
  commands.emplace_back(command, [command, options] { return chat(*command, *options); });
}

}  // namespace tandem::app
