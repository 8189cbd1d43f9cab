#pragma once
/// Where the server's certificate comes from.

#include <cstdint>
#include <string>

namespace tandem::net {

/// PEM files, at most limits::kMaxTlsFileBytes each.
struct tls_files {
  enum class client_certificate : std::uint8_t { ignored, optional, required };

  std::string certificate;  ///< the server's own first, then those that signed it
  std::string key;          ///< without a password
  std::string client_ca;    ///< who signs clients' certificates; empty: nobody
  client_certificate from_clients = client_certificate::ignored;
};

}  // namespace tandem::net
