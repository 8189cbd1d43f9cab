#include "net/subprotocol.hpp"

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

TEST(subprotocol, is_offered_as_a_whole_word_only) {
  EXPECT_TRUE(offers_subprotocol("tandem"));
  EXPECT_TRUE(offers_subprotocol(" other ,\ttandem , tandem.key.eA"));
  for (const char* none : {"", ",", "Tandem", "tandem2", "tandem.key.eA", "other"})
    EXPECT_FALSE(offers_subprotocol(none)) << none;
}

TEST(subprotocol, brings_any_key_in_base64url) {
  EXPECT_EQ(key_of_subprotocol("tandem, tandem.key.c2VjcmV0"), "secret");
  EXPECT_EQ(key_of_subprotocol("tandem.key.c2VjcmV0LTE"), "secret-1");
  EXPECT_EQ(key_of_subprotocol("tandem.key._-8,tandem"), "\xFF\xEF");
}

TEST(subprotocol, without_a_readable_key_there_is_none) {
  for (const char* none : {"", "tandem", "tandem.key.c2V!", "tandem.key.c2V=", "key.c2V"})
    EXPECT_EQ(key_of_subprotocol(none), std::nullopt) << none;
  EXPECT_EQ(key_of_subprotocol("tandem.key."), "");
  EXPECT_EQ(key_of_subprotocol("tandem.key." + std::string(30'000, 'A'))->size(), 22'500U);
}

}  // namespace
}  // namespace tandem::net
