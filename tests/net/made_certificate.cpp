#include "tests/net/made_certificate.hpp"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "core/assert.hpp"

namespace tandem::net::test {
namespace {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using key_pointer = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_pointer = std::unique_ptr<X509, freed_by<X509_free>>;
using context_pointer = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;
using connection_pointer = std::unique_ptr<SSL, freed_by<SSL_free>>;
using file_pointer = std::unique_ptr<std::FILE, freed_by<std::fclose>>;

certificate_pointer sign(EVP_PKEY* key, const std::string& name) {
  certificate_pointer made(X509_new());
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 86400);
  X509_set_pubkey(made.get(), key);
  X509_NAME* subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(made.get(), subject);
  TANDEM_ASSERT(X509_sign(made.get(), key, EVP_sha256()) > 0);
  return made;
}

std::string name_in(X509* certificate) {
  if (certificate == nullptr) return {};
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  return name;
}

int connected_socket(unsigned short port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval limit{20, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  TANDEM_ASSERT(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

}  // namespace

made_certificate::made_certificate(const std::filesystem::path& folder, const std::string& name,
                                   const std::string& key_password)
    : certificate((folder / (name + ".pem")).string()), key((folder / (name + ".key")).string()) {
  const key_pointer pair(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  TANDEM_ASSERT(pair != nullptr);
  const certificate_pointer signed_one = sign(pair.get(), name);
  const file_pointer certificate_file(std::fopen(certificate.c_str(), "w"));
  TANDEM_ASSERT(PEM_write_X509(certificate_file.get(), signed_one.get()) == 1);
  const file_pointer key_file(std::fopen(key.c_str(), "w"));
  const EVP_CIPHER* cipher = key_password.empty() ? nullptr : EVP_aes_256_cbc();
  const auto* password = key_password.empty() ? nullptr : reinterpret_cast<const unsigned char*>(key_password.data());
  TANDEM_ASSERT(PEM_write_PrivateKey(key_file.get(), pair.get(), cipher, password,
                                     static_cast<int>(key_password.size()), nullptr, nullptr) == 1);
}

tls_exchange ask_over_tls(unsigned short port, const std::string& request, int highest) {
  tls_exchange out;
  const context_pointer context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_security_level(context.get(), 0);  // so that it is the server that refuses
  if (highest != 0) SSL_CTX_set_max_proto_version(context.get(), highest);
  const connection_pointer connection(SSL_new(context.get()));
  const int socket = connected_socket(port);
  SSL_set_fd(connection.get(), socket);
  if (SSL_connect(connection.get()) == 1) {
    out.version = SSL_get_version(connection.get());
    out.server_name = name_in(certificate_pointer(SSL_get1_peer_certificate(connection.get())).get());
    SSL_write(connection.get(), request.data(), static_cast<int>(request.size()));
    char chunk[4096];
    for (int got = 0; (got = SSL_read(connection.get(), chunk, sizeof chunk)) > 0;)
      out.received.append(chunk, static_cast<std::size_t>(got));
  }
  ::close(socket);
  return out;
}

}  // namespace tandem::net::test
