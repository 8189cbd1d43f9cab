#include "app/command.hpp"

#include <fmt/format.h>

#include "app/logging.hpp"
#include "config/flags.hpp"

namespace tandem::app {

CLI::App* declare(CLI::App& root, const std::string& name, const std::string& summary) {
  CLI::App* command = root.add_subcommand(name, summary);
  command->allow_extras();
  return command;
}

int report(const error& failed) {
  fmt::print(stderr, "tandem: {}\n", failed.message);
  const bool about_a_flag = failed.param.rfind("--", 0) == 0 || failed.param == "MODEL";
  return about_a_flag ? kExitUsage : kExitFailed;
}

int report_usage(const std::string& sentence) {
  fmt::print(stderr, "tandem: {}\n", sentence);
  return kExitUsage;
}

result<void> prepare(CLI::App& command, config::options& options) {
  if (auto finished = config::finish_options(command, options); !finished) {
    error usage = finished.error();
    usage.param = "--config";
    return tl::unexpected(usage);
  }
  set_up_logging(options.logging);
  if (options.engine.model.empty())
    return fail(error_code::invalid_argument,
                "no model was given: tandem " + command.get_name() + " MODEL, e.g. smollm2-135m.", "MODEL");
  return {};
}

}  // namespace tandem::app
