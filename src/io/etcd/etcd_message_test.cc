#include "io/etcd/etcd_message.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(EtcdMessage, NumbersMayBeTextOrNumbers) {
  const auto range = ReadEtcdRange(
      R"({"header":{"cluster_id":"18446744073709551615","revision":7},"kvs":[{"key":"YQ==",)"
      R"("value":"YjE=","mod_revision":"5","lease":9}],"more":true,"count":"3"})");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->header.cluster, UINT64_MAX);
  EXPECT_EQ(range->header.revision, 7u);
  ASSERT_EQ(range->pairs.size(), 1u);
  EXPECT_EQ(range->pairs[0].key, "a");
  EXPECT_EQ(range->pairs[0].value, "b1");
  EXPECT_EQ(range->pairs[0].changed, 5u);
  EXPECT_EQ(range->pairs[0].lease, 9u);
  EXPECT_TRUE(range->more);
  EXPECT_EQ(range->count, 3u);
}

TEST(EtcdMessage, AWatchHasPutsAndDeletes) {
  const auto watch = ReadEtcdWatch(
      R"({"result":{"header":{"cluster_id":"1","revision":"4"},"watch_id":"-1","events":[)"
      R"({"kv":{"key":"YQ==","value":"eA==","mod_revision":"3"}},)"
      R"({"type":"PUT","kv":{"key":"Yg==","mod_revision":"3"}},)"
      R"({"type":"DELETE","kv":{"key":"YQ==","mod_revision":"4"}}]}})");
  ASSERT_TRUE(watch);
  ASSERT_EQ(watch->events.size(), 3u);
  EXPECT_FALSE(watch->events[0].gone);
  EXPECT_EQ(watch->events[0].pair.value, "x");
  EXPECT_EQ(watch->events[1].pair.value, "");
  EXPECT_TRUE(watch->events[2].gone);
  EXPECT_EQ(watch->events[2].pair.changed, 4u);
}

TEST(EtcdMessage, ACanceledWatchSaysWhy) {
  const auto compacted = ReadEtcdWatch(
      R"({"result":{"header":{"cluster_id":"1"},"canceled":true,"compact_revision":"30"}})");
  ASSERT_TRUE(compacted);
  EXPECT_TRUE(compacted->canceled);
  EXPECT_EQ(compacted->compact_revision, 30u);
  for (const char* text :
       {R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})",
        R"({"error":{"code":14,"message":"etcdserver: no leader"}})",
        R"({"error":"etcdserver: no leader","code":14})"}) {
    const auto ended = ReadEtcdWatch(text);
    ASSERT_TRUE(ended) << text;
    EXPECT_TRUE(ended->canceled);
    EXPECT_EQ(ended->reason, "etcdserver: no leader");
  }
}

TEST(EtcdMessage, GarbageIsAnErrorAndNotAnEmptyAnswer) {
  for (const char* text :
       {"", "null", "[]", "{}", R"({"header":{}, "kvs":{}})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"1"},"kvs":[{"key":"*"}]})",
        R"({"header":{"revision":"1"},"kvs":[7]})", R"({"header":{"revision":"1"},"count":[]})"}) {
    EXPECT_FALSE(ReadEtcdRange(text)) << text;
  }
  for (const char* text :
       {R"({"result":{}})", R"({"result":{"header":{},"events":{}}})",
        R"({"result":{"header":{},"events":[{"type":"MOVE","kv":{"key":"YQ=="}}]}})",
        R"({"result":{"header":{},"events":[{"type":"PUT"}]}})",
        R"({"result":{"header":{},"events":[{"kv":{}}]}})"}) {
    EXPECT_FALSE(ReadEtcdWatch(text)) << text;
  }
}

TEST(EtcdMessage, ATokenThatWouldSplitAHeaderIsRefused) {
  EXPECT_EQ(*ReadEtcdToken(R"({"token":"abc.7"})"), "abc.7");
  EXPECT_FALSE(ReadEtcdToken(R"({"token":"abc\r\nx: y"})"));
  EXPECT_FALSE(ReadEtcdToken(R"({"token":""})"));
}

TEST(EtcdMessage, ARefusalIsPrintableAndShort) {
  const EtcdRefusal refusal =
      ReadEtcdRefusal(R"({"error":"a\nb)" + std::string(1000, 'x') + R"(","code":5})");
  EXPECT_EQ(refusal.code, 5);
  EXPECT_EQ(refusal.message.size(), EtcdRefusal::kMaxMessage);
  EXPECT_FALSE(refusal.message.contains('\n'));
  EXPECT_EQ(ReadEtcdRefusal("Not Found").message, "");
}

TEST(EtcdMessage, TheEndOfARange) {
  EXPECT_EQ(EtcdRangeEnd("fleet/"), "fleet0");
  EXPECT_EQ(EtcdRangeEnd("a\xff\xff"), "b");
  EXPECT_EQ(EtcdRangeEnd("\xff"), std::string(1, '\0'));
}

TEST(EtcdLines, MessagesComeWholeAndWithinTheLimit) {
  EtcdLines lines(8);
  ASSERT_TRUE(lines.Feed("ab"));
  EXPECT_FALSE(lines.Next());
  ASSERT_TRUE(lines.Feed("c\n\r\n\ndef\ng"));
  EXPECT_EQ(*lines.Next(), "abc");
  EXPECT_EQ(*lines.Next(), "def");
  EXPECT_FALSE(lines.Next());
  ASSERT_TRUE(lines.Feed("hijklmn"));
  EXPECT_FALSE(lines.Feed("o"));
}

}  // namespace
}  // namespace fathom
