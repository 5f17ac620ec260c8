#include "io/net/ed25519.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

std::string FromHex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// Test 2 of RFC 8032, section 7.1.
TEST(Ed25519, DerivesAndSignsAsTheStandardDoes) {
  const std::string seed =
      FromHex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  EXPECT_EQ(Ed25519PublicKey(seed),
            FromHex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
  EXPECT_EQ(Ed25519Sign(seed, "\x72"),
            FromHex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"));
}

TEST(Ed25519, RefusesASeedOfAnotherLength) {
  EXPECT_FALSE(Ed25519PublicKey("short"));
  EXPECT_FALSE(Ed25519Sign("short", "message"));
}

}  // namespace
}  // namespace fathom
