#include "io/net/name_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

const TimePoint kBegun{std::chrono::hours(1)};

TEST(CandidatesOf, FollowTheSearchList) {
  EXPECT_THAT(CandidatesOf("a", {"x.test", "test"}, 1), ElementsAre("a.x.test", "a.test", "a"));
  EXPECT_THAT(CandidatesOf("a.b", {"test"}, 1), ElementsAre("a.b", "a.b.test"));
  EXPECT_THAT(CandidatesOf("a.b", {"test"}, 5), ElementsAre("a.b.test", "a.b"));
  EXPECT_THAT(CandidatesOf("a.", {"test"}, 1), ElementsAre("a."));
  const std::string longest(250, 'x');
  EXPECT_THAT(CandidatesOf(longest, {"test"}, 1), ElementsAre(longest));
}

RecordAnswer Found(const std::string& address, int ttl = 60) {
  return {RecordStatus::kFound, {*Address::Numeric(address, 0)}, seconds(ttl)};
}
RecordAnswer Just(RecordStatus status) { return {status}; }

class NameLookupTest : public testing::Test {
 protected:
  struct Asked {
    std::string name;
    int family;
    DnsChannel::Done done;
  };

  void Start(std::vector<std::string> candidates = {"a"}) {
    lookup_->Start(std::move(candidates),
                   [this](const std::string& name, int family, DnsChannel::Done done) {
                     asked_.push_back({name, family, std::move(done)});
                   });
  }
  // Answers the two open questions.
  void Answer(const RecordAnswer& v4, const RecordAnswer& v6) {
    ASSERT_EQ(asked_.size(), 2u);
    const std::deque<Asked> now = std::exchange(asked_, {});
    EXPECT_EQ(now[0].name, now[1].name);
    last_ = now[0].name;
    now[0].done(v4);
    now[1].done(v6);
  }
  void Answer(RecordStatus both) { Answer(Just(both), Just(both)); }
  NetCause Failure() {
    EXPECT_TRUE(lookup_->done());
    EXPECT_FALSE(lookup_->result());
    return lookup_->result() ? NetCause::kOther : lookup_->result().error().cause;
  }
  std::vector<std::string> Addresses() {
    std::vector<std::string> texts;
    for (const Address& address : lookup_->result()->addresses) texts.push_back(address.ToString());
    return texts;
  }

  std::shared_ptr<NameLookup> lookup_ = std::make_shared<NameLookup>("a", kBegun);
  std::deque<Asked> asked_;
  std::string last_;
};

TEST_F(NameLookupTest, AsksForBothFamiliesAtOnce) {
  Start();
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].family, AF_INET);
  EXPECT_EQ(asked_[1].family, AF_INET6);
  Answer(Found("127.0.0.1", 30), Found("fd00::1", 20));
  ASSERT_TRUE(lookup_->done());
  EXPECT_THAT(Addresses(), ElementsAre("127.0.0.1:0", "[fd00::1]:0"));
  EXPECT_EQ(lookup_->result()->ttl, seconds(20));
  EXPECT_TRUE(lookup_->result()->complete);
}

TEST_F(NameLookupTest, IsContentWithOneFamily) {
  Start();
  Answer(Just(RecordStatus::kNoData), Found("::1"));
  EXPECT_THAT(Addresses(), ElementsAre("[::1]:0"));
  EXPECT_TRUE(lookup_->result()->complete);
}

TEST_F(NameLookupTest, NotesThatTheOtherFamilyFailed) {
  Start();
  Answer(Just(RecordStatus::kFailed), Found("::1"));
  ASSERT_TRUE(lookup_->result());
  EXPECT_FALSE(lookup_->result()->complete);
}

TEST_F(NameLookupTest, GivesHalfAnAnswerAfterAShortDelay) {
  Start();
  asked_[0].done(Found("127.0.0.1"));
  EXPECT_LE(lookup_->due(), kBegun);
  lookup_->OnTime(kBegun);
  EXPECT_FALSE(lookup_->TakePartial());
  EXPECT_EQ(lookup_->due(), kBegun + NameLookup::kResolutionDelay);
  lookup_->OnTime(lookup_->due());
  const auto half = lookup_->TakePartial();
  ASSERT_TRUE(half);
  EXPECT_EQ(half->addresses.size(), 1u);
  EXPECT_FALSE(half->complete);
  EXPECT_FALSE(lookup_->TakePartial()) << "once";
  EXPECT_FALSE(lookup_->done());
  asked_[1].done(Found("::1"));
  ASSERT_TRUE(lookup_->done());
  EXPECT_EQ(Addresses().size(), 2u);
}

TEST_F(NameLookupTest, EndsWithHalfAnAnswerWhenTheTimeIsUp) {
  Start();
  asked_[0].done(Found("127.0.0.1"));
  lookup_->OnTime(kBegun + NameLookup::kPatience);
  ASSERT_TRUE(lookup_->done());
  EXPECT_THAT(Addresses(), ElementsAre("127.0.0.1:0"));
  asked_[1].done(Found("::1"));  // too late
  EXPECT_EQ(Addresses().size(), 1u);
}

TEST_F(NameLookupTest, EndsWithATimeoutWhenTheTimeIsUp) {
  Start();
  lookup_->OnTime(kBegun + NameLookup::kPatience - milliseconds(1));
  EXPECT_FALSE(lookup_->done());
  lookup_->OnTime(lookup_->due());
  EXPECT_EQ(Failure(), NetCause::kNameTimeout);
}

TEST_F(NameLookupTest, SearchesUntilADomainHasTheName) {
  Start({"a.x", "a.y", "a"});
  Answer(RecordStatus::kNoName);
  EXPECT_EQ(last_, "a.x");
  Answer(Found("127.0.0.1"), Just(RecordStatus::kNoData));
  EXPECT_EQ(last_, "a.y");
  EXPECT_TRUE(asked_.empty());
  EXPECT_THAT(Addresses(), ElementsAre("127.0.0.1:0"));
}

TEST_F(NameLookupTest, ReportsThatNoDomainHasTheName) {
  Start({"a.x", "a"});
  Answer(RecordStatus::kNoName);
  Answer(RecordStatus::kNoName);
  EXPECT_EQ(Failure(), NetCause::kNoSuchName);
}

TEST_F(NameLookupTest, DoesNotTakeASilentServerForAnAbsentName) {
  Start({"a.x", "a"});
  Answer(Just(RecordStatus::kTimeout), Just(RecordStatus::kNoData));
  EXPECT_EQ(Failure(), NetCause::kNameTimeout);
  EXPECT_TRUE(asked_.empty()) << "another host of that name could be found";
}

TEST_F(NameLookupTest, DoesNotTakeAFailingServerForAnAbsentName) {
  Start({"a.x", "a"});
  Answer(Just(RecordStatus::kNoData), Just(RecordStatus::kFailed));
  Answer(RecordStatus::kNoName);
  EXPECT_EQ(Failure(), NetCause::kNameServer);
}

TEST_F(NameLookupTest, AsksAnewAndIgnoresOldAnswers) {
  Start();
  const std::deque<Asked> old = std::exchange(asked_, {});
  old[0].done(Just(RecordStatus::kCancelled));  // as a channel does that is closed
  Start();
  old[1].done(Found("::1"));
  Answer(Found("127.0.0.1"), Just(RecordStatus::kNoData));
  EXPECT_THAT(Addresses(), ElementsAre("127.0.0.1:0"));
  lookup_.reset();
  old[0].done(Found("127.0.0.2"));  // does not crash
}

}  // namespace
}  // namespace fathom
