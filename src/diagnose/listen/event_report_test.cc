#include "diagnose/listen/event_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// [timestamp, [["AllBlocksCleared"]], rank]
std::string Cleared(double timestamp, uint8_t rank = 0) {
  std::string payload = "\x93\xcb";
  uint64_t bits = 0;
  static_assert(sizeof bits == sizeof timestamp);
  std::memcpy(&bits, &timestamp, sizeof bits);
  for (int shift = 56; shift >= 0; shift -= 8) payload += static_cast<char>(bits >> shift);
  payload +=
      "\x91\x91\xb0"
      "AllBlocksCleared";
  payload += static_cast<char>(rank);
  return payload;
}

class EventReportTest : public ::testing::Test {
 protected:
  EventReportTest() { stream_.origin = {.source = "tcp://h:1", .label = "", .rank = 0}; }

  // What is printed about it.
  std::string Hear(std::optional<uint64_t> sequence, const std::string& payload,
                   bool replayed = false, std::string_view topic = "") {
    const size_t before = printed_.size();
    report_.OnMessage(stream_, {topic, sequence, payload, replayed}, 1001);
    return printed_.substr(before);
  }

  std::string Total() {
    const size_t before = printed_.size();
    report_.Conclude(1010);
    return printed_.substr(before);
  }

  std::string printed_;
  const TextView view_{false, false};
  EventReport report_{view_, [this](std::string_view text) { printed_ += text; }, 1000};
  HeardStream stream_;
};

TEST_F(EventReportTest, ShowsABatch) {
  EXPECT_EQ(Hear(7, Cleared(1000)), "00:16:41.000 rank 0 seq 7  cleared\n");
  EXPECT_EQ(Hear(8, Cleared(1000, 3)), "00:16:41.000 rank 3 seq 8  cleared\n");
  EXPECT_EQ(report_.seen(), 2u);
  EXPECT_THAT(Total(), HasSubstr("2 batches"));
}

TEST_F(EventReportTest, ShowsAGapBeforeTheBatchBehindIt) {
  Hear(7, Cleared(1000));
  EXPECT_EQ(Hear(10, Cleared(1000)),
            "00:16:41.000 rank 0  seq 8..9 missing (2 batches)\n"
            "00:16:41.000 rank 0 seq 10  cleared\n");
  EXPECT_THAT(Total(), HasSubstr("2 batches missing in 1 gap"));
}

TEST_F(EventReportTest, ShowsARestart) {
  Hear(7, Cleared(1000));
  EXPECT_THAT(Hear(0, Cleared(1000)), HasSubstr("restarted: seq went back from 7 to 0"));
  EXPECT_THAT(Hear(1, Cleared(1000)), Not(HasSubstr("missing")));
  EXPECT_THAT(Hear(1, Cleared(1000)), HasSubstr("went back from 1 to 1"));
  EXPECT_THAT(Total(), HasSubstr("2 restarts"));
}

TEST_F(EventReportTest, CountsGarbageWithoutLosingItsPlaceInTheSequence) {
  Hear(7, Cleared(1000));
  EXPECT_THAT(Hear(8, "garbage"), HasSubstr("rank 0 seq 8  malformed: "));
  EXPECT_THAT(Hear(9, Cleared(1000)), Not(HasSubstr("missing")));
  EXPECT_THAT(Hear(std::nullopt, Cleared(1000)), HasSubstr("no sequence number of 8 bytes"));
  EXPECT_EQ(report_.seen(), 4u);
  EXPECT_THAT(Total(), HasSubstr("2 malformed"));
}

TEST_F(EventReportTest, TellsEnginesThatShareASocketApart) {
  stream_.shared = true;
  for (const std::string_view topic : {"kv@a", "kv@b"}) {
    for (const uint8_t rank : {uint8_t{0}, uint8_t{1}}) {
      EXPECT_EQ(Hear(5, Cleared(1000, rank), false, topic),
                fmt::format("00:16:41.000 rank {} seq 5  cleared\n", rank));
    }
  }
  EXPECT_THAT(Hear(7, Cleared(1000, 1), false, "kv@b"), HasSubstr("seq 6 missing"));
}

TEST_F(EventReportTest, ShowsABatchThatWasReplayedOnlyOnce) {
  EXPECT_EQ(Hear(3, Cleared(1000), true), "00:16:40.000 rank 0 seq 3 replayed  cleared\n");
  Hear(4, Cleared(1000.5), true);
  EXPECT_EQ(Hear(3, Cleared(1000)), "");
  EXPECT_EQ(Hear(4, Cleared(1000.5)), "");
  EXPECT_EQ(Hear(5, Cleared(1001)), "00:16:41.000 rank 0 seq 5  cleared\n");
  EXPECT_EQ(report_.seen(), 3u);
}

TEST_F(EventReportTest, DoesNotTakeARestartForSomethingReplayed) {
  Hear(4, Cleared(1000.5), true);
  EXPECT_THAT(Hear(0, Cleared(1001)), HasSubstr("restarted"));
}

TEST_F(EventReportTest, MeasuresLagOfLiveBatchesOnly) {
  Hear(1, Cleared(500), true);
  EXPECT_THAT(Total(), Not(HasSubstr("lag")));
  Hear(2, Cleared(1000.75));
  EXPECT_THAT(Total(), HasSubstr("lag 250 ms"));
}

TEST_F(EventReportTest, StartsEachSummaryAnew) {
  Hear(1, Cleared(1000));
  report_.Summarise(1005);
  EXPECT_THAT(printed_, HasSubstr("-- 5.0 s: 0.2 batches/s"));
  printed_.clear();
  report_.Summarise(1006);
  EXPECT_THAT(printed_, HasSubstr("-- 1.0 s: 0.0 batches/s"));
}

TEST_F(EventReportTest, FollowsTheNumbersOfPolledEventsByRank) {
  stream_.shared = true;
  report_.OnPolled(stream_, {.id = 5, .rank = 0, .events = {ClearedEvent{}}}, 1001);
  report_.OnPolled(stream_, {.id = 9, .rank = 1, .events = {}}, 1001);
  EXPECT_THAT(printed_, Not(HasSubstr("missing")));
  EXPECT_THAT(printed_, HasSubstr("rank 1 seq 9  nothing about blocks"));
  report_.OnPolled(stream_, {.id = 7, .rank = 0, .events = {}}, 1001);
  EXPECT_THAT(printed_, HasSubstr("rank 0  seq 6 missing"));
}

TEST_F(EventReportTest, RemembersWhetherAPeerIsThere) {
  report_.OnConnection(stream_, true, 1001);
  EXPECT_TRUE(stream_.connected);
  EXPECT_THAT(printed_, HasSubstr("connected to tcp://h:1"));
}

TEST_F(EventReportTest, FollowsALimitedNumberOfTopics) {
  stream_.shared = true;
  for (int i = 0; i < 5000; ++i) Hear(1, Cleared(1000), false, std::to_string(i));
  EXPECT_EQ(stream_.watches.size(), 4096u);
}

TEST(SequenceWatch, KnowsTheEndsOfTheRange) {
  SequenceWatch watch;
  EXPECT_EQ(watch.Take(0).step, SequenceWatch::Step::kFollows);
  const auto gap = watch.Take(~uint64_t{0});
  EXPECT_EQ(gap.step, SequenceWatch::Step::kGap);
  EXPECT_EQ(gap.from, 1u);
  EXPECT_EQ(gap.to, ~uint64_t{0} - 1);
  EXPECT_EQ(watch.Take(0).step, SequenceWatch::Step::kBack);
}

}  // namespace
}  // namespace fathom
