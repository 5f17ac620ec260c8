#include "diagnose/listen/event_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNoonish = 1700000000.0 + 0.123;  // 22:13:20 UTC

EventOrigin Origin() {
  EventOrigin origin{.source = "tcp://h:5557", .label = "", .rank = 0};
  origin.sequence = 42;
  origin.time = kNoonish;
  return origin;
}

StoredEvent Stored() {
  StoredEvent event;
  event.hashes = {1, 2, 3, 0xd43b57df56b58fb1};
  event.parent = 0x9f3a;
  event.block_size = 16;
  for (TokenId i = 0; i < 64; ++i) event.tokens.push_back(9000 + i);
  return event;
}

EventBatch BatchOf(std::vector<CacheEvent> events) {
  EventBatch batch;
  batch.timestamp = kNoonish - 0.5;
  batch.events = std::move(events);
  return batch;
}

std::string Text(const EventBatch& batch, bool tokens = false, bool color = false) {
  return TextView(tokens, color).Batch(Origin(), batch, 100);
}

TEST(TextView, ShowsEachEventOnALineOfItsOwn) {
  EXPECT_EQ(Text(BatchOf({Stored(), RemovedEvent{.hashes = {0xd43b57df56b58fb1}}, ClearedEvent{}})),
            "22:13:20.123 rank 0 seq 42  +4 blocks x16 0000000000000001 0000000000000002 … "
            "d43b57df56b58fb1 after 0000000000009f3a  device group 0 full\n"
            "22:13:20.123 rank 0 seq 42  -1 block d43b57df56b58fb1  device group 0\n"
            "22:13:20.123 rank 0 seq 42  cleared\n");
}

TEST(TextView, SaysWhatIsSpecialAboutABlock) {
  StoredEvent event = Stored();
  event.parent.reset();
  event.tier = Tier::kHost;
  event.group = 2;
  event.kind = GroupKind::kWindow;
  event.window = 64;
  event.lora = "ada";
  event.pairs = true;
  event.extra = {{0, 7}};
  EXPECT_THAT(Text(BatchOf({event})), HasSubstr(" from the start  host group 2 window 64  lora ada"
                                                "  pairs  1 extra key\n"));
  event.kind = GroupKind::kUnsupported;
  EXPECT_THAT(Text(BatchOf({event})), HasSubstr("group 2 of an unknown kind"));
}

TEST(TextView, SaysHowManyBlocksHaveNoName) {
  StoredEvent event = Stored();
  event.hashes = {7};
  EXPECT_THAT(Text(BatchOf({event})), HasSubstr("+1 of 4 blocks x16 0000000000000007 after"));
  event.hashes.clear();
  event.block_size = 0;
  EXPECT_THAT(Text(BatchOf({event})), HasSubstr("+0 blocks x0 after"));
}

TEST(TextView, ShowsTokensOnlyWhereItIsAskedFor) {
  const auto batch = BatchOf({Stored()});
  EXPECT_THAT(Text(batch), Not(HasSubstr("900")));
  EXPECT_THAT(Text(batch, true),
              HasSubstr("tokens [9000, 9001, 9002, 9003, 9004, 9005, 9006, 9007 … 9063]\n"));
}

TEST(TextView, NeverShowsASalt) {
  StoredEvent event = Stored();
  event.salt = "tenant-secret";
  for (const bool tokens : {false, true}) {
    EXPECT_THAT(Text(BatchOf({event}), tokens), Not(HasSubstr("tenant-secret")));
    EXPECT_THAT(Text(BatchOf({event}), tokens), HasSubstr("  salted"));
    EXPECT_THAT(JsonView(tokens).Batch(Origin(), BatchOf({event}), 1),
                Not(HasSubstr("tenant-secret")));
  }
}

TEST(TextView, LetsNoNameOfThePeerControlTheTerminal) {
  StoredEvent event = Stored();
  event.lora =
      "a\x1b[2J\n\xc2\x9b"
      "2J\xff";
  EventBatch batch = BatchOf({event});
  batch.malformed = 1;
  batch.first_problem = "event 0: '\x1b]0;x\x07\x9b'";
  const std::string text = Text(batch);
  for (const std::string_view bad : {"\x1b", "\x07", "\x9b", "\xff"}) {
    EXPECT_THAT(text, Not(HasSubstr(std::string(bad))));
  }
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(TextView, ShowsWhatWasLeftOutOfABatch) {
  EventBatch batch = BatchOf({});
  EXPECT_THAT(Text(batch), HasSubstr("nothing about blocks\n"));
  batch.malformed = 1;
  batch.first_problem = "event 0: BlockStored: block_size: nil";
  batch.ignored = 2;
  EXPECT_EQ(Text(batch),
            "22:13:20.123 rank 0 seq 42  1 malformed event left out: event 0: BlockStored: "
            "block_size: nil\n"
            "22:13:20.123 rank 0 seq 42  2 events without blocks\n");
}

TEST(TextView, ShowsGapsRestartsGarbageAndConnections) {
  const TextView view(false, false);
  EventOrigin origin = Origin();
  EXPECT_EQ(view.Gap(origin, 44, 46), "22:13:20.123 rank 0  seq 44..46 missing (3 batches)\n");
  EXPECT_EQ(view.Gap(origin, 44, 44), "22:13:20.123 rank 0  seq 44 missing (1 batch)\n");
  EXPECT_THAT(view.Restart(origin, 46, 0), HasSubstr("seq went back from 46 to 0"));
  EXPECT_EQ(view.Malformed(origin, "not msgpack", 3),
            "22:13:20.123 rank 0 seq 42  malformed: not msgpack (3 bytes)\n");
  EXPECT_EQ(view.Connection(origin, true), "22:13:20.123 rank 0  connected to tcp://h:5557\n");
  origin.label = "h:5557";
  origin.rank.reset();
  origin.replayed = true;
  EXPECT_EQ(view.Connection(origin, false),
            "22:13:20.123 h:5557 rank ? replayed  disconnected from tcp://h:5557\n");
}

TEST(TextView, SurvivesTimesThatCannotBe) {
  const TextView view(false, false);
  EventOrigin origin = Origin();
  for (const double time : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    origin.time = time;
    EXPECT_TRUE(view.Gap(origin, 1, 1).starts_with("--:--:--.--- rank 0"));
  }
}

TEST(TextView, IsColouredOnlyWhenToldSo) {
  EXPECT_THAT(Text(BatchOf({Stored()})), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Text(BatchOf({Stored()}), false, true), HasSubstr("\x1b[32m+4 blocks x16\x1b[0m"));
}

TEST(TextView, SummarisesRatesAndTotals) {
  const TextView view(false, false);
  EventTally tally;
  tally.seconds = 2;
  tally.Add(BatchOf({Stored(), RemovedEvent{.hashes = {1}}, ClearedEvent{}}));
  tally.bytes = 4096;
  tally.AddLag(0.003);
  tally.AddLag(0.001);
  EXPECT_EQ(view.Summary(tally, false),
            "-- 2.0 s: 0.5 batches/s  +2.0 -0.5 blocks/s  2.0 KiB/s  no gaps  lag 1 ms (most 3 "
            "ms)\n");
  tally.gaps = 1;
  tally.missing = 3;
  tally.restarts = 1;
  tally.malformed = 2;
  tally.ignored = 5;
  EXPECT_EQ(view.Summary(tally, true),
            "== in all 2.0 s: 1 batch  +4 -1 blocks  1 clear  4.0 KiB  3 batches missing in 1 gap"
            "  1 restart  2 malformed  5 ignored  lag 1 ms (most 3 ms)\n");
}

TEST(TextView, SaysWhenThePublishersClockIsAhead) {
  EventTally tally;
  tally.AddLag(-2);
  EXPECT_THAT(TextView(false, false).Summary(tally, true), HasSubstr("its clock is ahead of ours"));
}

Json Parsed(const std::string& line) {
  EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  auto json = Json::Parse(line);
  EXPECT_TRUE(json) << line;
  return json ? *std::move(json) : Json();
}

TEST(JsonView, WritesABatchAsOneObject) {
  const std::string line =
      JsonView(false).Batch(Origin(), BatchOf({Stored(), ClearedEvent{}}), 100);
  const Json json = Parsed(line);
  EXPECT_EQ(*json.Find("kind")->string(), "batch");
  EXPECT_EQ(json.Find("seq")->unsigned_integer(), 42u);
  EXPECT_EQ(json.Find("time")->number(), kNoonish);
  const Json& stored = (*json.Find("events")->array())[0];
  EXPECT_EQ(*stored.Find("type")->string(), "stored");
  EXPECT_EQ(*(*stored.Find("hashes")->array())[3].string(), "d43b57df56b58fb1");
  EXPECT_EQ(*stored.Find("parent")->string(), "0000000000009f3a");
  EXPECT_EQ(stored.Find("token_count")->unsigned_integer(), 64u);
  EXPECT_EQ(stored.Find("token_ids"), nullptr);
  EXPECT_THAT(line, Not(HasSubstr("9063")));
  EXPECT_EQ(*(*json.Find("events")->array())[1].Find("type")->string(), "cleared");
}

TEST(JsonView, WritesTokensWhereItIsAskedFor) {
  const Json json = Parsed(JsonView(true).Batch(Origin(), BatchOf({Stored()}), 100));
  const Json& stored = (*json.Find("events")->array())[0];
  EXPECT_EQ(stored.Find("token_ids")->array()->size(), 64u);
}

TEST(JsonView, WritesEverythingElseAsOneObject) {
  const JsonView view(false);
  EXPECT_EQ(*Parsed(view.Gap(Origin(), 1, 2)).Find("kind")->string(), "gap");
  EXPECT_EQ(Parsed(view.Gap(Origin(), 1, 2)).Find("last")->unsigned_integer(), 2u);
  EXPECT_EQ(Parsed(view.Restart(Origin(), 9, 0)).Find("before")->unsigned_integer(), 9u);
  EXPECT_EQ(*Parsed(view.Malformed(Origin(), "a\nb\xff", 3)).Find("kind")->string(), "malformed");
  EXPECT_EQ(*Parsed(view.Connection(Origin(), true)).Find("kind")->string(), "connected");
  EventTally tally;
  EXPECT_TRUE(Parsed(view.Summary(tally, true)).Find("lag_seconds")->is_null());
  tally.AddLag(0.5);
  EXPECT_EQ(Parsed(view.Summary(tally, false)).Find("most_lag_seconds")->number(), 0.5);
}

}  // namespace
}  // namespace fathom
