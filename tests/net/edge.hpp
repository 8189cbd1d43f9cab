#pragma once
/// A server on a free loopback port with a fake runtime behind it.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "net/server.hpp"
#include "tests/net/fake_runtime.hpp"
#include "tests/net/raw_client.hpp"

namespace tandem::net::test {

class edge : public ::testing::Test {
 protected:
  void open(server_options options = {}, bool loaded = true) {
    options.port = 0;
    auto bound = server::bind(std::move(options));
    ASSERT_TRUE(bound) << bound.error().message;
    server_ = std::move(*bound);
    if (loaded) server_->serve(runtime_);
  }
  std::uint16_t port() const { return server_->port(); }

  /// The server still answers.
  void probe() {
    raw_client client(port());
    EXPECT_EQ(client.request("GET", "/health").status, 200);
  }

  std::shared_ptr<fake_runtime> runtime_ = std::make_shared<fake_runtime>();
  std::unique_ptr<server> server_;
};

inline const std::string kCompletion = R"({"prompt":"hi","max_tokens":8})";
inline const std::string kStream = R"({"prompt":"hi","max_tokens":8,"stream":true})";

}  // namespace tandem::net::test
