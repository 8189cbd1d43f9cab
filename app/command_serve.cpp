#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "app/command.hpp"
#include "app/interrupts.hpp"
#include "config/flags.hpp"
#include "engine/loader.hpp"
#include "net/server.hpp"

namespace tandem::app {
namespace {

/// Between the signal thread and the main one.
class stop_request {
 public:
  void ask() {
    const std::lock_guard lock(mutex_);
    asked_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
};

std::optional<net::tool_call_format> tool_calls_of(config::tool_call_parser chosen) {
  switch (chosen) {
    case config::tool_call_parser::automatic:
      return std::nullopt;
    case config::tool_call_parser::none:
      return net::tool_call_format::none;
    case config::tool_call_parser::hermes:
      return net::tool_call_format::hermes;
    case config::tool_call_parser::llama3_json:
      return net::tool_call_format::llama3_json;
  }
  return std::nullopt;
}

net::cross_origin_rules rules_of(const config::cross_origin_options& given) {
  const auto or_any = [](const std::vector<std::string>& entries) {
    return entries.empty() ? std::vector<std::string>{"*"} : entries;
  };
  return {given.origins, or_any(given.methods), or_any(given.headers), given.credentials, given.hosts};
}

std::optional<net::tls_files> tls_of(const config::tls_options& given) {
  if (given.certificate_file.empty()) return std::nullopt;
  using from = net::tls_files::client_certificate;
  const std::int32_t usual = given.client_ca_file.empty() ? 0 : 2;
  const auto wanted = static_cast<from>(given.client_certificates.value_or(usual));
  return net::tls_files{given.certificate_file, given.key_file, given.client_ca_file, wanted};
}

void reload_certificate(net::server& server) {
  if (const auto loaded = server.reload_certificate(); loaded) {
    spdlog::info("the certificate was read again; new connections use it");
  } else {
    spdlog::error("the old certificate stays in use: {}", loaded.error().message);
  }
}

net::server_options edge_options(const config::options& options) {
  net::server_options edge;
  edge.host = options.server.host;
  edge.port = static_cast<std::uint16_t>(options.server.port);
  edge.api_keys = options.server.api_keys;
  edge.max_requests_per_key = static_cast<std::size_t>(options.server.max_requests_per_key);
  edge.tls = tls_of(options.server.tls);
  edge.cross_origin = rules_of(options.server.cross_origin);
  if (options.server.max_body_mib > 0)
    edge.max_body_bytes = static_cast<std::size_t>(options.server.max_body_mib) << 20;
  edge.tool_calls = tool_calls_of(options.server.tool_calls);
  edge.served_names = options.server.served_model_names;
  if (edge.served_names.empty()) edge.served_names.push_back(engine::served_name(options.engine.model));
  return edge;
}

void print_ready(const net::server& server, const config::options& options, const runtime& engine) {
  fmt::print("tandem: serving {} on {} (device {})\n", edge_options(options).served_names.front(), server.url(),
             engine.device().name);
  std::fflush(stdout);
}

int serve(CLI::App& command, config::options& options) {
  if (auto ready = prepare(command, options); !ready) return report(ready.error());
  stop_request stop;
  const bool has_certificate = !options.server.tls.certificate_file.empty();
  interrupts watch(
      kExitOk, has_certificate);  // while the model loads nobody waits for an answer: a signal just ends the process
  auto server = net::server::bind(edge_options(options));
  if (!server) {
    error failed = server.error();
    failed.param.clear();  // a taken port is no wrong usage
    return report(failed);
  }
  if (has_certificate) watch.arm_hangups([&server] { reload_certificate(**server); });
  auto loaded = engine::start_engine(options.engine, [](const std::string& line) { spdlog::info(line); });
  if (!loaded) return report(loaded.error());
  const std::shared_ptr<runtime> engine = std::move(*loaded);
  (*server)->serve(engine);
  watch.arm([&stop] { stop.ask(); });
  print_ready(**server, options, *engine);

  stop.wait();
  spdlog::info("stopping: running requests get {} s; a second Ctrl-C ends at once", options.server.shutdown_timeout_s);
  const std::chrono::seconds bound(options.server.shutdown_timeout_s);
  (*server)->stop_accepting();
  engine->drain(bound);
  constexpr std::chrono::seconds kLastBytes{1};  // all answers ended; what remains is their last bytes on the wire
  (*server)->stop(kLastBytes);
  return kExitOk;
}

}  // namespace

void add_serve(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "serve", "Serve a model over HTTP and WebSocket");
  const auto options = std::make_shared<config::options>();
  config::add_server_flags(*command, *options);
  config::add_engine_flags(*command, *options);
  config::add_common_flags(*command, *options);
  commands.emplace_back(command, [command, options] { return serve(*command, *options); });
}

}  // namespace tandem::app
