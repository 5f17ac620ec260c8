#include "router/gateway/key_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace fathom {
namespace {

bool Admits(const KeyRing& ring, const std::string& header) {
  const std::string text = "GET / HTTP/1.1\r\nhost: x\r\n" + header + "\r\n";
  RequestHead head;
  EXPECT_TRUE(ParseRequestHead(text, head)) << text;
  return ring.Admits(head);
}

TEST(KeyRing, AdmitsEverybodyWithoutKeys) {
  EXPECT_FALSE(KeyRing().required());
  EXPECT_TRUE(Admits(KeyRing(), ""));
  EXPECT_TRUE(Admits(KeyRing(), "authorization: Bearer whatever\r\n"));
}

TEST(KeyRing, AdmitsABearerOfAnyOfItsKeys) {
  const KeyRing ring({"alpha", "beta"});
  EXPECT_TRUE(ring.required());
  for (const char* header :
       {"authorization: Bearer alpha\r\n", "Authorization: bearer beta\r\n",
        "AUTHORIZATION:BEARER   beta  \r\n", "x-api-key: alpha\r\n", "X-Api-Key: beta\r\n"}) {
    EXPECT_TRUE(Admits(ring, header)) << header;
  }
}

TEST(KeyRing, TurnsEverybodyElseAway) {
  const KeyRing ring({"alpha", "beta"});
  for (const char* header :
       {"", "authorization: Bearer gamma\r\n", "authorization: Bearer alph\r\n",
        "authorization: Bearer alphaa\r\n", "authorization: Bearer Alpha\r\n",
        "authorization: Bearer\r\n", "authorization: Bearer \r\n", "authorization:\r\n",
        "authorization: alpha\r\n", "authorization: Basic alpha\r\n",
        "authorization: Beareralpha\r\n", "x-api-key: gamma\r\n", "x-api-key:\r\n",
        "x-api-key: Bearer alpha\r\n", "proxy-authorization: Bearer alpha\r\n"}) {
    EXPECT_FALSE(Admits(ring, header)) << header;
  }
}

TEST(KeyRing, TakesOtherKeysWhileItIsUsed) {
  KeyRing ring({"alpha"});
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) EXPECT_FALSE(Admits(ring, "authorization: Bearer other\r\n"));
  });
  std::vector<std::unique_ptr<const KeyRing::Keys>> former;
  for (int i = 0; i < 100; ++i) former.push_back(ring.Replace({"key-" + std::to_string(i)}));
  stop = true;
  reader.join();
  EXPECT_EQ(former[0]->front(), "alpha");
  EXPECT_EQ(former[1]->front(), "key-0");
  EXPECT_TRUE(Admits(ring, "authorization: Bearer key-99\r\n"));
  EXPECT_FALSE(Admits(ring, "authorization: Bearer alpha\r\n"));
}

TEST(KeyRing, LooksAtTheFirstAuthorizationOnly) {
  const KeyRing ring({"alpha"});
  EXPECT_FALSE(Admits(ring, "authorization: Bearer x\r\nauthorization: Bearer alpha\r\n"));
  EXPECT_FALSE(Admits(ring, "authorization: Bearer x\r\nx-api-key: alpha\r\n"));
}

}  // namespace
}  // namespace fathom
