#include "lab/mock/event_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "codec/json.h"
#include "codec/msgpack.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kEndOfReplay(8, '\xff');

BlocksStored PlainBlock(BlockHash hash) {
  return {.hashes = {hash},
          .parent = {},
          .tokens = {1, 2, 3, 4},
          .block_size = 4,
          .lora = "",
          .salt = ""};
}

uint64_t SequenceOf(std::string_view frame) {
  uint64_t sequence = 0;
  for (const char c : frame) sequence = sequence << 8 | static_cast<unsigned char>(c);
  return sequence;
}

std::string FrameOf(uint64_t sequence) {
  std::string frame;
  for (int shift = 56; shift >= 0; shift -= 8)
    frame.push_back(static_cast<char>(sequence >> shift));
  return frame;
}

// A feed, its subscriber and its replay client on one loop.
class EventFeedTest : public testing::Test {
 public:
  EventFeedTest() {
    options_.profile = "h200-llama-3.1-8b";
    options_.kv_events.on = true;
    options_.kv_events.topic = "kv@m";
    options_.block_size = 4;
    options_.num_blocks = 101;
  }

  void Open() {
    auto feed = EventFeed::Create(loop_, options_);
    ASSERT_TRUE(feed) << feed.error().what;
    feed_ = *std::move(feed);
  }

  // Runs the script with a feed that has started, and ends both in the right order.
  void Run(const std::function<Task<void>()>& script) {
    Open();
    RunToEnd(loop_, [&] { return Whole(script); });
  }

  Task<void> Whole(const std::function<Task<void>()>& script) {
    feed_->Start();
    auto running = script();
    co_await running;
    subscriber_.reset();
    asker_.reset();
    feed_.reset();
    co_await loop_.Sleep(milliseconds(1));
  }

  Task<void> Subscribe() {
    subscriber_ =
        *ZmqSocket::Open(context_, loop_, ZmqType::kSub, {.reconnect_first = milliseconds(20)});
    subscriber_->Subscribe("kv@");
    EXPECT_TRUE(subscriber_->Connect(feed_->places(0).publish));
    while (subscriber_->connects() == 0) co_await loop_.Sleep(milliseconds(1));
    co_await loop_.Sleep(milliseconds(100));  // the subscription travels
  }

  // The sequence numbers of what comes until nothing more does.
  Task<void> Hear(std::vector<uint64_t>& sequences, Duration patience = milliseconds(150)) {
    ZmqMessage message;
    for (;;) {
      const IoStatus status = co_await subscriber_->Receive(message, loop_.now() + patience);
      if (status != IoStatus::kOk) co_return;
      EXPECT_EQ(message.size(), 3u);
      EXPECT_EQ(message[0], "kv@m");
      sequences.push_back(SequenceOf(message[1]));
    }
  }

  // What a replay answers, without the end mark, which must come last.
  Task<void> Ask(std::string from, std::vector<uint64_t>& sequences, size_t& frames) {
    asker_ = *ZmqSocket::Open(context_, loop_, ZmqType::kDealer, {});
    EXPECT_TRUE(asker_->Connect(*feed_->places(0).replay));
    const ZmqMessage question = {"", from};
    EXPECT_TRUE(asker_->Send(question));
    ZmqMessage answer;
    for (;;) {
      const IoStatus status = co_await asker_->Receive(answer, loop_.now() + seconds(20));
      EXPECT_EQ(status, IoStatus::kOk);
      if (status != IoStatus::kOk) co_return;
      frames = answer.size();
      EXPECT_EQ(answer[0], "");
      if (answer[frames - 2] == kEndOfReplay && answer.back().empty()) co_return;
      EXPECT_TRUE(frames == 3 || answer[1] == "kv@m");
      sequences.push_back(SequenceOf(answer[frames - 2]));
    }
  }

  void Publish(uint64_t batches) {
    for (uint64_t i = 0; i < batches; ++i) feed_->Publish(0, {PlainBlock(i)});
  }

  ZmqContext context_;
  Loop loop_;
  MockOptions options_;
  std::unique_ptr<EventFeed> feed_;
  std::unique_ptr<ZmqSocket> subscriber_;
  std::unique_ptr<ZmqSocket> asker_;
};

struct Heard {
  std::vector<uint64_t> live;
  std::vector<uint64_t> replayed;
  size_t frames = 0;  // of the last replayed message
};

// Publishes, listens, and asks for a replay from `from`.
Task<void> PublishAndAsk(EventFeedTest& t, uint64_t batches, std::string from, Heard& heard) {
  auto subscribing = t.Subscribe();
  co_await subscribing;
  t.Publish(batches);
  auto hearing = t.Hear(heard.live);
  co_await hearing;
  auto asking = t.Ask(from, heard.replayed, heard.frames);
  co_await asking;
}

TEST_F(EventFeedTest, NumbersBatchesFromZeroAndReplaysThemWithTheirTopic) {
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 4, FrameOf(2), heard); });
  EXPECT_THAT(heard.live, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(heard.replayed, ElementsAre(2, 3));
  EXPECT_EQ(heard.frames, 4u);
}

TEST_F(EventFeedTest, ReplaysWithoutTheTopicAsOlderEngines) {
  options_.kv_events.wire = "0.25";
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 3, FrameOf(0), heard); });
  EXPECT_THAT(heard.replayed, ElementsAre(0, 1, 2));
  EXPECT_EQ(heard.frames, 3u);
}

TEST_F(EventFeedTest, AnswersAStartBeyondTheEndWithTheEndMarkAlone) {
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 3, FrameOf(77), heard); });
  EXPECT_THAT(heard.replayed, ElementsAre());
}

TEST_F(EventFeedTest, KeepsTheLastBatchesOnly) {
  options_.kv_events.buffer_steps = 2;
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 5, FrameOf(0), heard); });
  EXPECT_THAT(heard.live, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(heard.replayed, ElementsAre(3, 4));
}

TEST_F(EventFeedTest, DropsAReplayRequestThatIsNone) {
  struct Script {
    static Task<void> Run(EventFeedTest& t) {
      t.Publish(1);
      t.asker_ = *ZmqSocket::Open(t.context_, t.loop_, ZmqType::kDealer, {});
      EXPECT_TRUE(t.asker_->Connect(*t.feed_->places(0).replay));
      const ZmqMessage bare = {FrameOf(0)};  // without the empty frame
      const ZmqMessage short_one = {"", "1234567"};
      const ZmqMessage long_one = {"", FrameOf(0), "more"};
      for (const ZmqMessage* wrong : {&bare, &short_one, &long_one}) t.asker_->Send(*wrong);
      ZmqMessage answer;
      const IoStatus status = co_await t.asker_->Receive(answer, t.loop_.now() + milliseconds(200));
      EXPECT_EQ(status, IoStatus::kTimeout);
    }
  };
  Run([&] { return Script::Run(*this); });
}

TEST_F(EventFeedTest, DropsEveryNthBatchButReplaysIt) {
  options_.kv_events.drop_every = 3;
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 7, FrameOf(0), heard); });
  EXPECT_THAT(heard.live, ElementsAre(0, 1, 3, 4, 6));
  EXPECT_THAT(heard.replayed, ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST_F(EventFeedTest, LosesEveryNthBatchForGood) {
  options_.kv_events.lose_every = 3;
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 7, FrameOf(0), heard); });
  EXPECT_THAT(heard.live, ElementsAre(0, 1, 3, 4, 6));
  EXPECT_THAT(heard.replayed, ElementsAre(0, 1, 3, 4, 6));
}

TEST_F(EventFeedTest, IsSilentWhenToldTo) {
  options_.kv_events.silent = true;
  options_.engine = MockedEngine::kSglang;  // which has something to say when it starts
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 3, FrameOf(0), heard); });
  EXPECT_THAT(heard.live, ElementsAre());
  EXPECT_THAT(heard.replayed, ElementsAre());
}

TEST_F(EventFeedTest, IsLateInOrder) {
  options_.kv_events.delay = milliseconds(100);
  struct Script {
    static Task<void> Run(EventFeedTest& t, std::vector<uint64_t>& live) {
      auto subscribing = t.Subscribe();
      co_await subscribing;
      t.Publish(2);
      const TimePoint published = t.loop_.now();
      co_await t.loop_.Sleep(milliseconds(20));
      t.Publish(1);
      ZmqMessage message;
      const IoStatus first = co_await t.subscriber_->Receive(message, t.loop_.now() + seconds(20));
      EXPECT_EQ(first, IoStatus::kOk);
      EXPECT_GE(t.loop_.now() - published, milliseconds(100));
      auto hearing = t.Hear(live);
      co_await hearing;
    }
  };
  std::vector<uint64_t> live;
  Run([&] { return Script::Run(*this, live); });
  EXPECT_THAT(live, ElementsAre(1, 2));
}

TEST_F(EventFeedTest, BeginsAgainAtZeroOnTheSamePortAfterARestart) {
  options_.kv_events.restart_after = 3;
  struct Script {
    static Task<void> Run(EventFeedTest& t, std::vector<bool>& restarts, Heard& heard) {
      auto subscribing = t.Subscribe();
      co_await subscribing;
      const std::string place = t.feed_->places(0).publish;
      for (uint64_t i = 0; i < 5; ++i) restarts.push_back(t.feed_->Publish(0, {PlainBlock(i)}));
      auto hearing = t.Hear(heard.live, seconds(2));
      co_await hearing;
      EXPECT_EQ(t.feed_->places(0).publish, place);
      EXPECT_EQ(t.subscriber_->connects(), 2u);
      auto asking = t.Ask(FrameOf(0), heard.replayed, heard.frames);
      co_await asking;
    }
  };
  std::vector<bool> restarts;
  Heard heard;
  Run([&] { return Script::Run(*this, restarts, heard); });
  EXPECT_THAT(restarts, ElementsAre(false, false, true, false, false));
  EXPECT_THAT(heard.live, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(heard.replayed, ElementsAre(0, 1));
}

TEST_F(EventFeedTest, SaysFirstThatASglangCacheIsEmpty) {
  options_.engine = MockedEngine::kSglang;
  Heard heard;
  Run([&] { return PublishAndAsk(*this, 2, FrameOf(0), heard); });
  EXPECT_THAT(heard.live, ElementsAre(1, 2));  // nobody was there for the first
  EXPECT_THAT(heard.replayed, ElementsAre(0, 1, 2));
}

TEST_F(EventFeedTest, DialsASubscriberThatIsBound) {
  struct Script {
    static Task<void> Run(EventFeedTest& t, std::vector<uint64_t>& live) {
      while (t.subscriber_->connects() == 0) co_await t.loop_.Sleep(milliseconds(1));
      // A bound subscriber tells a new peer what it wants while it receives; a busy machine takes
      // its time to hear it.
      for (int i = 0; i < 3; ++i) {
        auto listening = t.Hear(live);
        co_await listening;
      }
      t.Publish(2);
      auto hearing = t.Hear(live);
      co_await hearing;
    }
  };
  subscriber_ = *ZmqSocket::Open(context_, loop_, ZmqType::kSub, {});
  subscriber_->Subscribe("");
  options_.kv_events.connect = *subscriber_->Bind("tcp://127.0.0.1:0");
  std::vector<uint64_t> live;
  Run([&] { return Script::Run(*this, live); });
  EXPECT_THAT(live, ElementsAre(0, 1));
}

TEST_F(EventFeedTest, GivesEveryRankThePortAfterTheOneBefore) {
  options_.dp_size = 4;
  Open();
  for (uint16_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(feed_->port(rank), feed_->port(0) + rank);
    EXPECT_EQ(feed_->replay_port(rank), feed_->replay_port(0) + rank);
  }
  EXPECT_NE(feed_->port(0), 0);
}

TEST_F(EventFeedTest, SaysWhichPortIsTaken) {
  Open();
  options_.kv_events.port = feed_->port(0);
  const auto second = EventFeed::Create(loop_, options_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().what,
              HasSubstr("KV events: cannot bind 'tcp://127.0.0.1:" +
                        std::to_string(feed_->port(0)) + "': the port is taken"));
}

TEST_F(EventFeedTest, NeedsNoReplay) {
  options_.kv_events.replay_port.reset();
  Open();
  EXPECT_FALSE(feed_->places(0).replay);
  EXPECT_EQ(feed_->replay_port(0), 0);
}

std::vector<uint64_t> Ids(const std::string& polled) {
  std::vector<uint64_t> ids;
  const Json parsed = *Json::Parse(polled);
  for (const Json& event : *parsed.array()) {
    ids.push_back(*event.Find("event_id")->unsigned_integer());
  }
  return ids;
}

class PolledFeedTest : public EventFeedTest {
 public:
  PolledFeedTest() { options_.engine = MockedEngine::kTrtllm; }
};

TEST_F(PolledFeedTest, HandsOutEachEventOnce) {
  Open();
  EXPECT_TRUE(feed_->polled());
  EXPECT_EQ(feed_->Poll(), R"([{"event_id":0,"window_size":400,"data":{"type":"created",)"
                           R"("num_blocks_per_cache_level":[100,0]}}])");
  EXPECT_EQ(feed_->Poll(), "[]");
  feed_->Publish(0, {PlainBlock(1), BlockRemoved{1}, AllBlocksCleared{}});
  feed_->Publish(0, {PlainBlock(2)});
  EXPECT_THAT(Ids(feed_->Poll()), ElementsAre(1, 2, 3));
  EXPECT_EQ(feed_->Poll(), "[]");
}

TEST_F(PolledFeedTest, NumbersEachRankAndNamesIt) {
  options_.dp_size = 2;
  Open();
  feed_->Publish(1, {PlainBlock(1)});
  const std::string polled = feed_->Poll();
  EXPECT_THAT(Ids(polled), ElementsAre(0, 0, 1));
  EXPECT_THAT(polled, HasSubstr(R"("attention_dp_rank":1)"));
}

TEST_F(PolledFeedTest, ForgetsTheOldestWhenNobodyAsks) {
  options_.kv_events.buffer_steps = 2;
  Open();
  Publish(5);
  EXPECT_THAT(Ids(feed_->Poll()), ElementsAre(4, 5));
}

TEST_F(PolledFeedTest, ShowsFaultsInItsIds) {
  options_.kv_events.drop_every = 2;
  options_.kv_events.restart_after = 5;
  Open();
  Publish(4);
  EXPECT_THAT(Ids(feed_->Poll()), ElementsAre(0, 1, 3));
  Publish(2);
  EXPECT_THAT(Ids(feed_->Poll()), ElementsAre(0)) << "created again; the second is a dropped one";
}

}  // namespace
}  // namespace fathom
