#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/edge_limits.hpp"
#include "net/tls_context.hpp"
#include "tests/net/edge.hpp"
#include "tests/net/made_certificate.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::net::test {
namespace {

const std::string kAsk = "GET /health HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

class tls : public edge {
 protected:
  server_options options() const {
    server_options chosen;
    chosen.tls = files_;
    return chosen;
  }
  std::string refusal_of(const tls_files& files) {
    const auto loaded = load_tls(files);
    return loaded ? "" : loaded.error().message;
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  tandem::test::temporary_folder folder_;
  made_certificate first_{folder_ / "", "first"};
  tls_files files_{first_.certificate, first_.key, {}, tls_files::client_certificate::ignored};
};

TEST_F(tls, requests_are_answered_and_the_url_says_https) {
  open(options());
  EXPECT_TRUE(server_->url().starts_with("https://"));
  const tls_exchange asked = ask_over_tls(port(), kAsk);
  EXPECT_TRUE(asked.received.starts_with("HTTP/1.1 200 OK\r\n")) << asked.received;
  EXPECT_EQ(asked.server_name, "first");
  EXPECT_EQ(asked.version, "TLSv1.3");
}

TEST_F(tls, a_stream_arrives_whole) {
  open(options());
  std::string request = raw_client::message("POST", "/v1/completions", kStream, "Connection: close\r\n");
  const std::string received = ask_over_tls(port(), request).received;
  EXPECT_NE(received.find("data: [DONE]"), std::string::npos) << received;
}

TEST_F(tls, versions_before_1_2_are_refused) {
  open(options());
  EXPECT_EQ(ask_over_tls(port(), kAsk, TLS1_1_VERSION).version, "");
  EXPECT_EQ(ask_over_tls(port(), kAsk, TLS1_2_VERSION).version, "TLSv1.2");
}

TEST_F(tls, who_does_not_speak_tls_is_cut_off) {
  auto chosen = options();
  chosen.timeouts.handshake = std::chrono::milliseconds(50);
  open(std::move(chosen));
  raw_client silent(port());
  EXPECT_TRUE(silent.at_end());
  raw_client in_the_clear(port());
  in_the_clear.send(kAsk);
  EXPECT_EQ(in_the_clear.response().status, 0);
  EXPECT_TRUE(ask_over_tls(port(), kAsk).received.starts_with("HTTP/1.1 200"));
}

TEST_F(tls, a_certificate_is_read_again_and_a_broken_one_is_not_taken) {
  open(options());
  EXPECT_EQ(ask_over_tls(port(), kAsk).server_name, "first");
  const made_certificate second(folder_ / "", "second");
  std::filesystem::copy_file(second.certificate, first_.certificate, std::filesystem::copy_options::overwrite_existing);
  const auto mixed = server_->reload_certificate();  // the key is still the old one's
  ASSERT_FALSE(mixed);
  EXPECT_EQ(ask_over_tls(port(), kAsk).server_name, "first");
  std::filesystem::copy_file(second.key, first_.key, std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(server_->reload_certificate());
  EXPECT_EQ(ask_over_tls(port(), kAsk).server_name, "second");
}

TEST_F(tls, key_and_certificate_may_be_in_one_file) {
  std::ifstream certificate(first_.certificate);
  std::ifstream key(first_.key);
  std::string both((std::istreambuf_iterator<char>(certificate)), {});
  both.append(std::istreambuf_iterator<char>(key), {});
  EXPECT_EQ(refusal_of({write("both.pem", both), {}, {}, {}}), "");
}

TEST_F(tls, files_that_do_not_do_are_refused_with_flag_file_and_reason) {
  const made_certificate other(folder_ / "", "other");
  const made_certificate locked(folder_ / "", "locked", "secret");
  const auto says = [](const std::string& message, const std::string& flag, const std::string& reason) {
    EXPECT_TRUE(message.starts_with(flag)) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  says(refusal_of({(folder_ / "none.pem").string(), first_.key, {}, {}}), "--ssl-certfile", "cannot be read");
  says(refusal_of({first_.certificate, (folder_ / "none.key").string(), {}, {}}), "--ssl-keyfile", "cannot be read");
  says(refusal_of({write("words.pem", "words"), first_.key, {}, {}}), "--ssl-certfile", "no usable certificate");
  says(refusal_of({write("empty.pem", ""), first_.key, {}, {}}), "--ssl-certfile", "no usable certificate");
  says(refusal_of({first_.certificate, first_.certificate, {}, {}}), "--ssl-keyfile", "no private key");
  says(refusal_of({first_.certificate, {}, {}, {}}), "--ssl-certfile", "no private key");
  says(refusal_of({first_.certificate, other.key, {}, {}}), "--ssl-keyfile", "does not belong to the certificate");
  says(refusal_of({locked.certificate, locked.key, {}, {}}), "--ssl-keyfile", "password");
  const std::string large = write("large.pem", std::string(limits::kMaxTlsFileBytes + 1, 'x'));
  says(refusal_of({large, first_.key, {}, {}}), "--ssl-certfile", "larger than");
  using from = tls_files::client_certificate;
  says(refusal_of({first_.certificate, first_.key, write("ca.pem", "words"), from::required}), "--ssl-ca-certs",
       "no usable certificate");
}

TEST_F(tls, a_server_with_files_that_do_not_do_does_not_start) {
  auto chosen = options();
  chosen.port = 0;
  chosen.tls->key = (folder_ / "none.key").string();
  EXPECT_FALSE(server::bind(std::move(chosen)));
}

TEST_F(tls, clients_without_a_certificate_are_refused_where_one_is_required) {
  auto chosen = options();
  chosen.tls->client_ca = first_.certificate;
  chosen.tls->from_clients = tls_files::client_certificate::required;
  open(std::move(chosen));
  EXPECT_EQ(ask_over_tls(port(), kAsk).received, "");
}

}  // namespace
}  // namespace tandem::net::test
