#include "diagnose/doctor/stream_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "codec/msgpack_writer.h"
#include "io/net/zmq.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Sequence(uint64_t number) {
  std::string frame;
  for (int i = 7; i >= 0; --i) frame.push_back(static_cast<char>(number >> (8 * i)));
  return frame;
}

struct Stored {
  std::vector<uint64_t> hashes;
  std::optional<uint64_t> parent = {};
  uint32_t block_size = 4;
  uint32_t first_token = 1;
};

void Write(MsgpackWriter& w, const Stored& stored) {
  w.Map(5).String("type").String("BlockStored").String("block_hashes");
  w.Array(static_cast<uint32_t>(stored.hashes.size()));
  for (const uint64_t hash : stored.hashes) w.Unsigned(hash);
  w.String("parent_block_hash");
  stored.parent ? w.Unsigned(*stored.parent) : w.Nil();
  const auto tokens = static_cast<uint32_t>(stored.hashes.size()) * stored.block_size;
  w.String("token_ids").Array(tokens);
  for (uint32_t i = 0; i < tokens; ++i) w.Unsigned(stored.first_token + i);
  w.String("block_size").Unsigned(stored.block_size);
}

std::string StoredBatch(const Stored& stored, double time = 100) {
  MsgpackWriter w;
  w.Array(2).Double(time).Array(1);
  Write(w, stored);
  return w.Take();
}

std::string RemovedBatch(std::vector<uint64_t> hashes) {
  MsgpackWriter w;
  w.Array(2).Double(100).Array(1).Map(2).String("type").String("BlockRemoved");
  w.String("block_hashes").Array(static_cast<uint32_t>(hashes.size()));
  for (const uint64_t hash : hashes) w.Unsigned(hash);
  return w.Take();
}

std::string ClearedBatch() {
  MsgpackWriter w;
  w.Array(2).Double(100).Array(1).Map(1).String("type").String("AllBlocksCleared");
  return w.Take();
}

class StreamTallyTest : public testing::Test {
 protected:
  void Take(const std::string& payload, double now = 100) { Take(payload, next_++, now); }
  void Take(const std::string& payload, uint64_t sequence, double now) {
    tally_.TakeMessage(ZmqMessage{"kv", Sequence(sequence), payload}, now);
    next_ = sequence + 1;
  }

  uint64_t next_ = 7;
  StreamTally tally_{EventSource{}, 1000};
};

TEST_F(StreamTallyTest, CountsWhatIsStoredAndRemoved) {
  Take(StoredBatch({.hashes = {1, 2, 3}}));
  Take(RemovedBatch({3, 2}));
  Take(ClearedBatch());
  const StreamLook look = tally_.Conclude(2);
  EXPECT_EQ(look.batches, 3u);
  EXPECT_EQ(look.stored_blocks, 3u);
  EXPECT_EQ(look.removed_blocks, 2u);
  EXPECT_EQ(look.clears, 1u);
  EXPECT_EQ(look.tokens, 12u);
  EXPECT_EQ(look.StoredPerSecond(), 1.5);
  EXPECT_EQ(look.gaps + look.restarts + look.malformed, 0u);
  EXPECT_THAT(look.block_sizes, ElementsAre(4));
}

TEST_F(StreamTallyTest, TellsAParentThatLeftFromOneThatWasThereBeforeUs) {
  Take(StoredBatch({.hashes = {1, 2}}));
  Take(StoredBatch({.hashes = {3}, .parent = 2}));   // known
  Take(StoredBatch({.hashes = {4}, .parent = 99}));  // before us
  Take(RemovedBatch({3}));
  Take(StoredBatch({.hashes = {5}, .parent = 3}));  // seen leaving
  const StreamLook look = tally_.Conclude(1);
  EXPECT_EQ(look.parents_known, 2u);
  EXPECT_EQ(look.parents_before, 1u);
  EXPECT_EQ(look.parents_removed, 1u);
}

TEST_F(StreamTallyTest, KnowsThatABlockStoredTwiceIsHeldAfterOneRemoval) {
  Take(StoredBatch({.hashes = {1}}));
  Take(StoredBatch({.hashes = {1}}));
  Take(RemovedBatch({1}));
  Take(StoredBatch({.hashes = {2}, .parent = 1}));
  EXPECT_EQ(tally_.Conclude(1).parents_removed, 0u);
}

TEST_F(StreamTallyTest, TakesEverythingForGoneAfterAClear) {
  Take(StoredBatch({.hashes = {1}}));
  Take(ClearedBatch());
  Take(StoredBatch({.hashes = {2}, .parent = 1}));
  EXPECT_EQ(tally_.Conclude(1).parents_removed, 1u);
}

TEST_F(StreamTallyTest, NoticesGapsAndRestarts) {
  Take(StoredBatch({.hashes = {1}}), 7, 100);
  Take(StoredBatch({.hashes = {2}}), 11, 100);
  Take(StoredBatch({.hashes = {3}}), 0, 100);
  Take(StoredBatch({.hashes = {4}, .parent = 1}));  // of the process before
  const StreamLook look = tally_.Conclude(1);
  EXPECT_EQ(look.gaps, 1u);
  EXPECT_EQ(look.missing_batches, 3u);
  EXPECT_EQ(look.restarts, 1u);
  EXPECT_EQ(look.parents_before, 1u);
}

TEST_F(StreamTallyTest, MeasuresTheLag) {
  for (const double late : {1.0, 2.0, 9.0}) Take(StoredBatch({.hashes = {1}}), 100 + late);
  const StreamLook look = tally_.Conclude(1);
  EXPECT_EQ(look.median_lag, 2);
  EXPECT_EQ(look.largest_lag, 9);
}

TEST_F(StreamTallyTest, SeesEverySizeAndTokensThatTheVocabularyLacks) {
  Take(StoredBatch({.hashes = {1}}));
  Take(StoredBatch({.hashes = {2}, .block_size = 8, .first_token = 996}));
  const StreamLook look = tally_.Conclude(1);
  EXPECT_THAT(look.block_sizes, ElementsAre(4, 8));
  EXPECT_EQ(look.foreign_tokens, 4u);
  EXPECT_EQ(look.largest_token, 1003u);
}

TEST_F(StreamTallyTest, CountsWhatMakesNoSense) {
  Take("\xc1");
  tally_.TakeMessage(ZmqMessage{"alone"}, 100);
  tally_.TakeMessage(ZmqMessage{"kv", "short", StoredBatch({.hashes = {1}})}, 100);
  const StreamLook look = tally_.Conclude(1);
  EXPECT_EQ(look.malformed, 3u);
  EXPECT_FALSE(look.first_problem.empty());
  EXPECT_EQ(look.stored_blocks, 1u);
}

TEST_F(StreamTallyTest, StopsJudgingParentsWhenItCannotRememberMore) {
  constexpr uint64_t kPerEvent = 1 << 16;
  for (uint64_t base = 0; base <= StreamTally::kMaxHashes; base += kPerEvent) {
    std::vector<uint64_t> hashes;
    for (uint64_t i = 0; i < kPerEvent; ++i) hashes.push_back(base + i);
    Take(RemovedBatch(hashes));
  }
  Take(StoredBatch({.hashes = {1}, .parent = ~uint64_t{0}}));
  const StreamLook look = tally_.Conclude(1);
  EXPECT_TRUE(look.forgot);
  EXPECT_EQ(look.parents_before, 0u);
}

TEST(StreamTally, ReadsPolls) {
  StreamTally tally(EventSource{}, 0);
  tally.TakePoll(
      R"([{"event_id":0,"data":{"type":"stored","parent_hash":null,"blocks":[)"
      R"({"type":"stored_block","block_hash":1,"tokens":[{"token_id":1},{"token_id":2}],"cache_level":0},)"
      R"({"type":"stored_block","block_hash":2,"tokens":[{"token_id":3},{"token_id":4}],"cache_level":0}]}}])");
  tally.TakePoll("nonsense");
  const StreamLook look = tally.Conclude(1);
  EXPECT_EQ(look.stored_blocks, 2u);
  EXPECT_THAT(look.block_sizes, ElementsAre(2));
  EXPECT_EQ(look.malformed, 1u);
}

Task<StreamLook> Hear(Loop& loop, Resolver& resolver, EventSource source) {
  return ListenTo(loop, resolver, std::move(source), 0,
                  loop.now() + std::chrono::milliseconds(400));
}

Task<void> PublishFor(Loop& loop, ZmqSocket& publisher, Duration time) {
  const TimePoint end = loop.now() + time;
  for (uint64_t number = 0; loop.now() < end; ++number) {
    publisher.Send(ZmqMessage{"kv", Sequence(number), StoredBatch({.hashes = {number}})});
    co_await loop.Sleep(std::chrono::milliseconds(5));
  }
}

Task<StreamLook> PublishAndHear(Loop& loop, Resolver& resolver, ZmqContext& context) {
  auto publisher = ZmqSocket::Open(context, loop, ZmqType::kPub, {});
  EventSource source;
  source.endpoint = *(*publisher)->Bind("tcp://127.0.0.1:*");
  auto publishing = PublishFor(loop, **publisher, std::chrono::milliseconds(500));
  auto hearing = Hear(loop, resolver, source);
  auto look = co_await hearing;
  co_await publishing;
  co_return look;
}

TEST(ListenTo, SubscribesAndHears) {
  Loop loop;
  Resolver resolver;
  ZmqContext context;
  const auto look = RunToEnd(loop, [&] { return PublishAndHear(loop, resolver, context); });
  EXPECT_TRUE(look.listened);
  EXPECT_TRUE(look.connected);
  EXPECT_GT(look.stored_blocks, 0u);
  EXPECT_EQ(look.gaps, 0u);
  EXPECT_GT(look.seconds, 0);
}

TEST(ListenTo, SaysWhyItCannotHearAnEngineThatConnectsItself) {
  Loop loop;
  Resolver resolver;
  const EventSource source{.endpoint = "tcp://router:5557", .dials_out = true};
  const auto look = RunToEnd(loop, [&] { return Hear(loop, resolver, source); });
  EXPECT_FALSE(look.listened);
  EXPECT_THAT(look.problem, HasSubstr("connects to tcp://router:5557 instead of binding"));
}

TEST(ListenTo, ReturnsInTimeWhereNobodyIs) {
  Loop loop;
  Resolver resolver;
  const EventSource source{.endpoint = "tcp://127.0.0.1:1"};
  const auto look = RunToEnd(loop, [&] { return Hear(loop, resolver, source); });
  EXPECT_TRUE(look.listened);
  EXPECT_FALSE(look.connected);
  EXPECT_EQ(look.batches, 0u);
}

}  // namespace
}  // namespace fathom
