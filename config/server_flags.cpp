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
  add_list(command, "--allowed-hosts", rules.hosts,
           "Names of this server under which a browser may reach its page without TLS; local names need no mention");
  command.add_flag("--allow-credentials", rules.credentials, "Let such pages send cookies and certificates")
      ->group(kServerGroup);
}

void add_tls_flags(CLI::App& command, tls_options& tls) {
  const auto add_file = [&command](const char* flag, std::string& target, const char* help) {
    command.add_option(flag, target, help)->type_name("FILE")->group(kServerGroup);
  };
  add_file("--ssl-certfile", tls.certificate_file,
           "Certificate in PEM form, those that signed it behind it: HTTPS and WSS only; SIGHUP reads it again");
  add_file("--ssl-keyfile", tls.key_file, "Its key; default: in the file of the certificate");
  add_file("--ssl-ca-certs", tls.client_ca_file, "Who signs clients' certificates, which are wanted then");
  command
      .add_option("--ssl-cert-reqs", tls.client_certificates,
                  "Clients' certificates: 0 ignored, 1 optional, 2 required; default 2 with --ssl-ca-certs, else 0")
      ->check(CLI::Range(0, 2).description(""))
      ->type_name("0..2")
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

void add_body_flags(CLI::App& command, server_options& server) {
  add_number(command, "--max-body-mib", server.max_body_mib, 1, limits::kMaxBodyMebibytes,
             "MiB of one request's body before 413; default " + std::to_string(limits::kMaxBodyBytes >> 20))
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
  add_body_flags(command, server);
  add_tool_flags(command, server);
  add_cross_origin_flags(command, server.cross_origin);
  add_tls_flags(command, server.tls);
}

result<void> check_server_options(const server_options& server) {
  const tls_options& tls = server.tls;
  const auto refuse = [](const std::string& flag, const std::string& rest) {
    return fail(error_code::invalid_argument, flag + " " + rest, flag);
  };
  if (tls.certificate_file.empty() && !tls.key_file.empty()) return refuse("--ssl-keyfile", "needs --ssl-certfile.");
  if (tls.certificate_file.empty() && !tls.client_ca_file.empty())
    return refuse("--ssl-ca-certs", "needs --ssl-certfile.");
  if (tls.client_certificates.value_or(0) > 0 && tls.client_ca_file.empty())
    return refuse("--ssl-cert-reqs", "above 0 needs --ssl-ca-certs.");
  if (server.max_requests_per_key > 0 && server.api_keys.empty())
    return refuse("--max-requests-per-key", "needs --api-key.");
  if (server.api_keys.size() > limits::kMaxApiKeys)
    return refuse("--api-key", "is given more than " + std::to_string(limits::kMaxApiKeys) + " times.");
  for (const std::string& key : server.api_keys)
    if (key.empty()) return refuse("--api-key", "must not be empty.");
  return {};
}

}  // namespace tandem::config
