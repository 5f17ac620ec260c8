#include "router/events/topic_owner.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom {
namespace {

std::optional<size_t> Owner(std::string_view topic, const std::vector<TopicClaim>& claims) {
  return OwnerOfTopic(topic, claims);
}

TEST(TopicOwner, IsTheWorkerWhoseWholeAddressTheTopicContains) {
  const std::vector<TopicClaim> claims = {
      {{}, "h", 80}, {{}, "h", 8000}, {{}, "0.0.0.1", 8000}, {{}, "10.0.0.1", 8000}};
  EXPECT_EQ(Owner("kv@h:8000@model", claims), 1u);
  EXPECT_EQ(Owner("kv@h:80@model", claims), 0u);
  EXPECT_EQ(Owner("h:80", claims), 0u);
  EXPECT_EQ(Owner("kv@10.0.0.1:8000@model", claims), 3u);
  EXPECT_EQ(Owner("kv@10.0.0.1:80001@model", claims), std::nullopt);
  EXPECT_EQ(Owner("kv@long-h:80@model", claims), std::nullopt);
  EXPECT_EQ(Owner("h:8000 and h:80", {{{}, "h", 80}}), 0u);  // the second one is whole
}

TEST(TopicOwner, FindsIpv6AddressesWithAndWithoutBrackets) {
  const std::vector<TopicClaim> claims = {
      {{}, "fd00::1", 80}, {{}, "fd00::1", 8000}, {{}, "::1", 80}};
  EXPECT_EQ(Owner("kv@[fd00::1]:80@model", claims), 0u);
  EXPECT_EQ(Owner("kv@fd00::1:8000@model", claims), 1u);
  EXPECT_EQ(Owner("[::1]:80", claims), 2u);
  EXPECT_EQ(Owner("[2::1]:80", claims), std::nullopt);
}

TEST(TopicOwner, IsFirstOfAllTheWorkerWithThatTopic) {
  const std::vector<TopicClaim> claims = {{{}, "a", 80}, {"kv@a:80", "b", 80}, {"", "c", 80}};
  EXPECT_EQ(Owner("kv@a:80", claims), 1u);
  EXPECT_EQ(Owner("", claims), 2u);
  EXPECT_EQ(Owner("kv", claims), std::nullopt);
}

TEST(TopicOwner, IsNoneOfSeveral) {
  const std::vector<TopicClaim> claims = {{"kv", "a", 80}, {"kv", "b", 80}, {{}, "a", 80}};
  EXPECT_EQ(Owner("kv", claims), std::nullopt);
  EXPECT_EQ(Owner("kv@a:80", claims), std::nullopt);
  EXPECT_EQ(Owner("kv@b:80", claims), 1u);
}

}  // namespace
}  // namespace fathom
