#include "io/net/name_cache.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TimePoint kThen{hours(100)};

NameAnswer Answer(const std::string& address, Duration ttl) {
  return {.addresses = {*Address::Numeric(address, 0)}, .ttl = ttl};
}

class NameCacheTest : public testing::Test {
 protected:
  void Found(const std::string& name, Duration ttl, TimePoint now = kThen) {
    cache_.PutFound(name, Answer("10.0.0.1", ttl), NameSource::kNameServer, now);
  }
  void Failed(NetCause cause, TimePoint now) {
    cache_.PutFailure("a", NetFail(cause, "no").error(), now);
  }
  bool Fresh(Duration after) { return cache_.Find("a")->Fresh(kThen + after); }
  bool Usable(Duration after) { return cache_.Find("a")->Usable(kThen + after); }

  NameCache cache_;
};

TEST_F(NameCacheTest, KeepsAnAnswerForItsTtl) {
  Found("a", seconds(20));
  EXPECT_TRUE(Fresh(seconds(19)));
  EXPECT_FALSE(Fresh(seconds(20)));
  EXPECT_TRUE(Usable(seconds(20)));
}

TEST_F(NameCacheTest, BoundsTheTtl) {
  Found("a", seconds(0));
  EXPECT_TRUE(Fresh(milliseconds(999)));
  EXPECT_FALSE(Fresh(seconds(1)));
  Found("a", hours(24));
  EXPECT_TRUE(Fresh(NameCache::kMostTtl - seconds(1)));
  EXPECT_FALSE(Fresh(NameCache::kMostTtl));
}

TEST_F(NameCacheTest, UsesAStaleAnswerForABoundedTime) {
  Found("a", seconds(10));
  Failed(NetCause::kNameTimeout, kThen + seconds(20));
  EXPECT_TRUE(Usable(NameCache::kStaleFor));
  EXPECT_FALSE(Usable(NameCache::kStaleFor + seconds(10)));
}

TEST_F(NameCacheTest, ForgetsANameThatDoesNotExist) {
  Found("a", seconds(10));
  Failed(NetCause::kNoSuchName, kThen + seconds(20));
  EXPECT_FALSE(Usable(seconds(20)));
}

TEST_F(NameCacheTest, RemembersAFailureBriefly) {
  Failed(NetCause::kNameServer, kThen);
  EXPECT_TRUE(cache_.Find("a")->JustFailed(kThen + milliseconds(999)));
  EXPECT_FALSE(cache_.Find("a")->JustFailed(kThen + seconds(1)));
  Found("a", seconds(1));
  EXPECT_FALSE(cache_.Find("a")->JustFailed(kThen));
}

TEST_F(NameCacheTest, AsksAnewWhenTheSourcesHaveChanged) {
  Found("a", seconds(100));
  cache_.PutFound("b", Answer("10.0.0.2", seconds(0)), NameSource::kHostsFile, kThen);
  EXPECT_TRUE(cache_.Find("b")->Fresh(kThen + hours(1000)));
  cache_.PutFailure("c", NetFail(NetCause::kNoSuchName, "no").error(), kThen);
  cache_.OnNewSources(kThen + seconds(1));
  EXPECT_FALSE(Fresh(seconds(1)));
  EXPECT_TRUE(Usable(seconds(1)));
  EXPECT_EQ(cache_.Find("b"), nullptr);
  EXPECT_EQ(cache_.Find("c"), nullptr);
}

TEST_F(NameCacheTest, HoldsABoundedNumberOfNames) {
  Found("a", seconds(1));
  for (size_t i = 0; i < NameCache::kMaxNames; ++i) {
    Found("n" + std::to_string(i), seconds(1));
    if (i % 1000 == 0) cache_.Find("a");  // stays in use
  }
  EXPECT_EQ(cache_.names(), NameCache::kMaxNames);
  EXPECT_NE(cache_.Find("a"), nullptr);
  EXPECT_EQ(cache_.Find("n0"), nullptr);
}

TEST_F(NameCacheTest, HoldsABoundedNumberOfBytes) {
  NameAnswer large;
  large.addresses.resize(1024, *Address::Numeric("10.0.0.1", 0));
  for (int i = 0; i < 1000; ++i) {
    cache_.PutFound("n" + std::to_string(i), large, NameSource::kNameServer, kThen);
    cache_.PutFound("n7", large, NameSource::kNameServer, kThen);
  }
  EXPECT_LE(cache_.bytes(), NameCache::kMaxBytes);
  EXPECT_GT(cache_.names(), 50u);
  cache_.OnNewSources(kThen);
  for (size_t i = 0; i < NameCache::kMaxNames; ++i) Found("m" + std::to_string(i), seconds(1));
  EXPECT_LT(cache_.bytes(), size_t{8} << 20) << "what left is no longer counted";
}

}  // namespace
}  // namespace fathom
