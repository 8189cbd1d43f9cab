#pragma once
/// Self-signed certificates for tests of TLS.

#include <filesystem>
#include <string>

namespace tandem::net::test {

/// A key of its own and a certificate for `name`, valid for a day, written as `<name>.pem` and `<name>.key` into
/// `folder`.
struct made_certificate {
  made_certificate(const std::filesystem::path& folder, const std::string& name, const std::string& key_password = {});
  std::string certificate;  ///< path
  std::string key;          ///< path
};

/// One request over TLS, without checking the certificate: everything the server says until it closes, and the name in
/// its certificate.
struct tls_exchange {
  std::string received;
  std::string server_name;
  std::string version;  ///< as OpenSSL calls it; empty: no handshake
};
/// `highest`: the highest version of TLS the client offers, as OpenSSL's numbers; 0: any.
tls_exchange ask_over_tls(unsigned short port, const std::string& request, int highest = 0);

}  // namespace tandem::net::test
