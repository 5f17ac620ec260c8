#include "io/nats/nkey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

// The pair of NATS' own documentation of its nkeys.
constexpr std::string_view kDocumentedSeed =
    "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
constexpr std::string_view kDocumentedUser =
    "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

TEST(Nkey, FindsTheUserOfASeed) {
  const auto user = NkeyUserOf(kDocumentedSeed);
  ASSERT_TRUE(user) << user.error().what;
  EXPECT_EQ(*user, kDocumentedUser);
}

TEST(Nkey, TakesTheSeedsLineOfAFile) {
  const auto user = NkeyUserOf("# a user\r\n" + std::string(kDocumentedSeed) + "  \r\n" +
                               std::string(kDocumentedUser) + "\n");
  ASSERT_TRUE(user) << user.error().what;
  EXPECT_EQ(*user, kDocumentedUser);
}

TEST(Nkey, RefusesWhatIsNoSeedWithoutRepeatingIt) {
  std::string damaged(kDocumentedSeed);
  damaged[20] = damaged[20] == 'A' ? 'B' : 'A';
  for (const std::string& text : {damaged, std::string(kDocumentedUser), std::string("SU"),
                                  std::string("SU1$"), std::string()}) {
    const auto user = NkeyUserOf(text);
    ASSERT_FALSE(user);
    if (text.size() > 10) {
      EXPECT_THAT(user.error().what, testing::Not(testing::HasSubstr(text)));
    }
  }
}

}  // namespace
}  // namespace fathom
