#include "net/tls_context.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <fstream>
#include <string>

#include "config/edge_limits.hpp"

namespace tandem::net {
namespace {

namespace asio = boost::asio;
using io_error = boost::system::error_code;
using shared_context = std::shared_ptr<asio::ssl::context>;

constexpr const char* kCertificateFlag = "--ssl-certfile";
constexpr const char* kKeyFlag = "--ssl-keyfile";
constexpr const char* kClientFlag = "--ssl-ca-certs";

tl::unexpected<error> refuse(const char* flag, const std::string& file, std::string_view what,
                             error_code code = error_code::invalid_argument) {
  ERR_clear_error();  // what OpenSSL keeps per thread must not be taken for a later connection's failure
  return fail(code, fmt::format("{} {}: {}.", flag, file, what), flag);
}

result<std::string> read_file(const char* flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(flag, path, "the file cannot be read; check its path and permissions", error_code::io);
  std::string text(limits::kMaxTlsFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > limits::kMaxTlsFileBytes)
    return refuse(flag, path, fmt::format("the file is larger than {} bytes", limits::kMaxTlsFileBytes));
  return text;
}

void set_rules(asio::ssl::context& context) {
  SSL_CTX* raw = context.native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);  // an idle connection stays small
  constexpr unsigned char kSessions[] = "tandem";
  SSL_CTX_set_session_id_context(raw, kSessions, sizeof kSessions - 1);
  io_error ignored;
  // Without this OpenSSL asks for a key's password on the terminal.
  context.set_password_callback([](std::size_t, auto) { return std::string(); }, ignored);
}

result<void> use_certificate(asio::ssl::context& context, const tls_files& files) {
  const auto text = read_file(kCertificateFlag, files.certificate);
  if (!text) return tl::unexpected<error>(text.error());
  io_error reason;
  context.use_certificate_chain(asio::buffer(*text), reason);
  if (!reason) return {};
  return refuse(kCertificateFlag, files.certificate, "the file holds no usable certificate in PEM form");
}

result<void> use_key(asio::ssl::context& context, const tls_files& files) {
  const bool together = files.key.empty();
  const char* flag = together ? kCertificateFlag : kKeyFlag;
  const std::string& path = together ? files.certificate : files.key;
  const auto text = read_file(flag, path);
  if (!text) return tl::unexpected<error>(text.error());
  io_error reason;
  context.use_private_key(asio::buffer(*text), asio::ssl::context::pem, reason);
  SSL_CTX* raw = context.native_handle();
  if (!reason && SSL_CTX_check_private_key(raw) == 1) return {};
  const bool of_another = ERR_GET_REASON(static_cast<unsigned long>(reason.value())) == X509_R_KEY_VALUES_MISMATCH;
  if (!reason || of_another)
    return refuse(flag, path, fmt::format("the key does not belong to the certificate in {}", files.certificate));
  return refuse(flag, path,
                "the file holds no private key in PEM form, or one with a password, which is not supported");
}

result<void> use_client_certificates(asio::ssl::context& context, const tls_files& files) {
  using from = tls_files::client_certificate;
  if (files.from_clients == from::ignored) return {};
  const auto text = read_file(kClientFlag, files.client_ca);
  if (!text) return tl::unexpected<error>(text.error());
  io_error reason;
  context.add_certificate_authority(asio::buffer(*text), reason);
  if (reason) return refuse(kClientFlag, files.client_ca, "the file holds no usable certificate in PEM form");
  const bool required = files.from_clients == from::required;
  context.set_verify_mode(asio::ssl::verify_peer | (required ? asio::ssl::verify_fail_if_no_peer_cert : 0), reason);
  return {};
}

}  // namespace

result<shared_context> load_tls(const tls_files& files) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  set_rules(*context);
  for (const auto& use : {use_certificate, use_key, use_client_certificates})
    if (auto used = use(*context, files); !used) return tl::unexpected<error>(used.error());
  return context;
}

}  // namespace tandem::net
