#pragma once
/// Certificates and key → what TLS connections start from.

#include <memory>

#include "core/result.hpp"
#include "net/tls_files.hpp"

namespace boost::asio::ssl {
class context;
}

namespace tandem::net {

/// TLS 1.2 and later, without compression and renegotiation. Errors: io or invalid_argument, one sentence naming flag
/// and file: not there, no PEM, a key that needs a password, a key of another certificate.
result<std::shared_ptr<boost::asio::ssl::context>> load_tls(const tls_files& files);

}  // namespace tandem::net
