#include "app/logging.hpp"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

class json_formatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    using milliseconds = std::chrono::milliseconds;
    const auto level = spdlog::level::to_string_view(message.level);
    const auto time = std::chrono::duration_cast<milliseconds>(message.time.time_since_epoch()).count();
    const nlohmann::ordered_json line = {{"time_ms", time},
                                         {"level", std::string(level.data(), level.size())},
                                         {"message", std::string(message.payload.data(), message.payload.size())}};
    const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<json_formatter>(); }
};

spdlog::level::level_enum level_of(config::log_level level) {
  switch (level) {
    case config::log_level::debug:
      return spdlog::level::debug;
    case config::log_level::info:
      return spdlog::level::info;
    case config::log_level::warning:
      return spdlog::level::warn;
    case config::log_level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void set_up_logging(const config::logging_options& options) {
  auto logger = std::make_shared<spdlog::logger>("tandem", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(level_of(options.level));
  if (options.json)
    logger->set_formatter(std::make_unique<json_formatter>());
  else
    logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace tandem::app
