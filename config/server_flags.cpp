// The flags that only `serve` takes.

#include <nlohmann/json.hpp>

#include "config/edge_limits.hpp"
#include "config/flag_kinds.hpp"
#include "config/flags.hpp"

namespace tandem::config {
namespace {

/// As vLLM: a JSON list of strings. One plain string is taken as a list of one.
void add_list(CLI::App& command, const std::string& flag, std::vector<std::string>& target, const std::string& help) {
  const auto refuse = [flag] {
    throw CLI::ValidationError(flag, "the value must be a JSON list of at most " +
                                         std::to_string(limits::kMaxCrossOriginEntries) +
                                         " strings, e.g. '[\"https://example.com\"]'.");
  };
  const auto read = [&target, refuse](const std::string& given) {
    if (!given.starts_with('[')) {
      target.push_back(given);
      if (given.empty() || target.size() > limits::kMaxCrossOriginEntries) refuse();
      return;
    }
    const auto list = nlohmann::json::parse(given, nullptr, false);
    if (!list.is_array() || target.size() + list.size() > limits::kMaxCrossOriginEntries) refuse();
    for (const auto& entry : list) {
      if (!entry.is_string() || entry.get_ref<const std::string&>().empty()) refuse();
      target.push_back(entry.get<std::string>());
    }
  };
  command
      .add_option_function<std::vector<std::string>>(
          flag,
          [read](const std::vector<std::string>& values) {
            for (const std::string& value : values) read(value);
          },
          help)
      ->type_name("JSON")
      ->allow_extra_args(false)
      ->group(kServerGroup);
}

void add_cross_origin_flags(CLI::App& command, cross_origin_options& rules) {
  add_list(command, "--allowed-origins", rules.origins,
           "Origins whose pages may use the API from a browser, [\"*\"] for all; default none");
  add_list(command, "--allowed-methods", rules.methods, "HTTP methods of such pages; default all");
  add_list(command, "--allowed-headers", rules.headers, "HTTP header fields of such pages; default all");
  command.add_flag("--allow-credentials", rules.credentials, "Let such pages send cookies and certificates")
      ->group(kServerGroup);
}

void add_key_flags(CLI::App& command, server_options& server) {
  command.add_option("--api-key", server.api_keys, "Key that clients must send; repeatable; default none")
      ->envname("TANDEM_API_KEY")
      ->allow_extra_args(false)
      ->group(kServerGroup);
  add_number(command, "--max-requests-per-key", server.max_requests_per_key, 0,
             static_cast<std::int32_t>(limits::kMaxRequestsPerKey),
             "Requests of one API key at once before 429; default 0: no bound")
      ->group(kServerGroup);
}

void add_tool_flags(CLI::App& command, server_options& server) {
  add_choice<tool_call_parser>(command, "--tool-call-parser", server.tool_calls,
                               {{"auto", tool_call_parser::automatic},
                                {"none", tool_call_parser::none},
                                {"hermes", tool_call_parser::hermes},
                                {"llama3_json", tool_call_parser::llama3_json}},
                               "How the model writes calls of tools; default auto: as its chat template asks it to")
      ->group(kServerGroup);
  // vLLM's: here calls are read wherever tools are sent.
  command.add_flag_function("--enable-auto-tool-choice", [](std::int64_t) {})->group(kHidden);
}

}  // namespace

void add_server_flags(CLI::App& command, options& target) {
  server_options& server = target.server;
  command.add_option("--host", server.host, "Address to listen on; default 127.0.0.1")->group(kServerGroup);
  add_number(command, "--port", server.port, 0, 65535, "Port to listen on, 0 for a free one; default 8000")
      ->group(kServerGroup);
  add_key_flags(command, server);
  command
      .add_option("--served-model-name", server.served_model_names,
                  "Name clients use; repeatable; default: the model's name")
      ->allow_extra_args(false)
      ->group(kServerGroup);
  add_number(command, "--shutdown-timeout", server.shutdown_timeout_s, 0, 3600,
             "Seconds that running requests get at shutdown; default 30")
      ->group(kServerGroup);
  add_tool_flags(command, server);
  add_cross_origin_flags(command, server.cross_origin);
  for (const char* flag : {"--ssl-keyfile", "--ssl-certfile"})
    refuse_flag(command, flag, "TLS is not offered yet; put a TLS proxy in front.");
}

}  // namespace tandem::config
