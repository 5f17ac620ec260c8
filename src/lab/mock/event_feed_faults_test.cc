// What a feed keeps to itself, and how it changes its ways while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/mock/event_feed.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

BlocksStored Block(BlockHash hash) {
  return {.hashes = {hash},
          .parent = {},
          .tokens = {1, 2, 3, 4},
          .block_size = 4,
          .lora = "ada",
          .salt = "tenant"};
}

class EventFeedFaultsTest : public testing::Test {
 public:
  EventFeedFaultsTest() {
    options_.engine = MockedEngine::kTrtllm;
    options_.profile = "h200-llama-3.1-8b";
    options_.kv_events.on = true;
    options_.block_size = 4;
    options_.num_blocks = 101;
  }

  void Open() {
    feed_.reset();
    loop_ = std::make_unique<Loop>();
    auto feed = EventFeed::Create(*loop_, options_);
    ASSERT_TRUE(feed) << feed.error().what;
    feed_ = *std::move(feed);
  }

  // The payload of the one batch that is published.
  std::string Payload(const KvEvent& event) {
    std::string payload;
    Open();
    RunToEnd(*loop_, [&] { return Hear(event, payload); });
    return payload;
  }

  Task<void> Hear(const KvEvent& event, std::string& payload) {
    const std::vector<KvEvent> batch = {event};
    ZmqMessage message;
    auto subscriber =
        *ZmqSocket::Open(context_, *loop_, ZmqType::kSub, {.reconnect_first = milliseconds(20)});
    subscriber->Subscribe("");
    EXPECT_TRUE(subscriber->Connect(feed_->places(0).publish));
    // The subscription travels: the first ones may be lost.
    while (message.size() == 0) {
      feed_->Publish(0, batch);
      const IoStatus status =
          co_await subscriber->Receive(message, loop_->now() + milliseconds(20));
      EXPECT_TRUE(status == IoStatus::kOk || status == IoStatus::kTimeout);
    }
    payload = message[2];
    subscriber.reset();
    feed_.reset();
    co_await loop_->Sleep(milliseconds(1));
  }

  ZmqContext context_;
  std::unique_ptr<Loop> loop_;  // runs once
  MockOptions options_;
  std::unique_ptr<EventFeed> feed_;
};

TEST_F(EventFeedFaultsTest, HidesSaltsOrAdaptersOrNeither) {
  options_.engine = MockedEngine::kVllm;
  EXPECT_THAT(Payload(Block(1)), AllOf(HasSubstr("tenant"), HasSubstr("ada")));
  options_.kv_events.omission = EventOmission::kSalt;
  EXPECT_THAT(Payload(Block(1)), AllOf(Not(HasSubstr("tenant")), HasSubstr("ada")));
  options_.kv_events.omission = EventOmission::kLora;
  EXPECT_THAT(Payload(Block(1)), AllOf(HasSubstr("tenant"), Not(HasSubstr("ada"))));
}

TEST_F(EventFeedFaultsTest, TellsOfNoRemovalAndLeavesNoGapForIt) {
  options_.kv_events.omission = EventOmission::kRemovals;
  Open();
  feed_->Poll();
  feed_->Publish(0, {Block(1), BlockRemoved{7}});
  feed_->Publish(0, {BlockRemoved{1}});
  feed_->Publish(0, {Block(2)});
  EXPECT_THAT(feed_->Poll(),
              AllOf(Not(HasSubstr("removed")), HasSubstr(R"("event_id":1,)"),
                    HasSubstr(R"("event_id":2,)"), Not(HasSubstr(R"("event_id":3,)"))));
  options_.kv_events.omission = EventOmission::kNone;
  feed_->Adopt(options_);
  feed_->Publish(0, {BlockRemoved{2}});
  EXPECT_THAT(feed_->Poll(), HasSubstr("removed"));
}

TEST_F(EventFeedFaultsTest, BeginsToSpeakOnceItIsNotSilent) {
  options_.kv_events.silent = true;
  Open();
  feed_->Publish(0, {Block(1)});
  EXPECT_EQ(feed_->Poll(), "[]");
  options_.kv_events.silent = false;
  feed_->Adopt(options_);
  feed_->Publish(0, {Block(2)});
  EXPECT_THAT(feed_->Poll(),
              AllOf(HasSubstr(R"("block_hash":2,)"), Not(HasSubstr(R"("block_hash":1,)"))));
}

TEST_F(EventFeedFaultsTest, HasNothingToSayOfACacheThatIsOff) {
  options_.prefix_caching = false;
  Open();
  EXPECT_EQ(feed_->Poll(), "[]");
  options_.prefix_caching = true;
  feed_->Adopt(options_);
  EXPECT_THAT(feed_->Poll(), HasSubstr("created"));
}

TEST_F(EventFeedFaultsTest, SendsWhatWasLateInOrderOnceItIsNotLateAnyMore) {
  options_.kv_events.delay = hours(1);
  Open();
  feed_->Publish(0, {Block(1)});
  feed_->Publish(0, {Block(2)});
  EXPECT_THAT(feed_->Poll(), Not(HasSubstr("stored")));
  options_.kv_events.delay = Duration{};
  feed_->Adopt(options_);
  feed_->Publish(0, {Block(3)});
  const std::string told = feed_->Poll();
  EXPECT_LT(told.find(R"("block_hash":1,)"), told.find(R"("block_hash":2,)"));
  EXPECT_LT(told.find(R"("block_hash":2,)"), told.find(R"("block_hash":3,)"));
  EXPECT_THAT(told, HasSubstr(R"("block_hash":3,)"));
}

TEST_F(EventFeedFaultsTest, StopsLosingWhatItLost) {
  options_.kv_events.lose_every = 1;
  Open();
  feed_->Publish(0, {Block(1)});
  options_.kv_events.lose_every = 0;
  feed_->Adopt(options_);
  feed_->Publish(0, {Block(2)});
  EXPECT_THAT(feed_->Poll(),
              AllOf(Not(HasSubstr(R"("block_hash":1,)")), HasSubstr(R"("block_hash":2,)")));
}

}  // namespace
}  // namespace fathom
