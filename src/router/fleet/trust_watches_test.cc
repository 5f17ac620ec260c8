// The watches that fit into a header: silence, reuse, gaps.
#include <gtest/gtest.h>

#include "router/fleet/gap_watch.h"
#include "router/fleet/reuse_watch.h"
#include "router/fleet/silence_watch.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ServedRequest kNews{.has_block = true, .has_news = true};
constexpr ServedRequest kNoNews{.has_block = true};

// --- silence

void Serve(SilenceWatch& watch, uint64_t requests, const ServedRequest& request) {
  for (uint64_t i = 0; i < requests; ++i) watch.Served(request, kTestBegin);
}

TEST(SilenceWatch, NeedsManyRequestsOverSomeTime) {
  SilenceWatch watch;
  Serve(watch, SilenceWatch::kRequests - 1, kNews);
  EXPECT_FALSE(watch.Look(seconds(5), kTestBegin + seconds(60)));
  Serve(watch, 1, kNews);
  EXPECT_FALSE(watch.Look(seconds(5), kTestBegin + milliseconds(4999)));
  const auto silence = watch.Look(seconds(5), kTestBegin + seconds(5));
  ASSERT_TRUE(silence);
  EXPECT_EQ(silence->requests, SilenceWatch::kRequests);
  EXPECT_EQ(silence->over, seconds(5));
  EXPECT_FALSE(silence->heard_before);
}

TEST(SilenceWatch, DoesNotCountPromptsThatFillNoBlock) {
  SilenceWatch watch;
  Serve(watch, 1000, {});
  EXPECT_FALSE(watch.Look(seconds(5), kTestBegin + seconds(60)));
}

TEST(SilenceWatch, CountsRepeatsOnlyOfOneThatNeverSpoke) {
  SilenceWatch never;
  Serve(never, SilenceWatch::kRequests, kNoNews);
  EXPECT_TRUE(never.Look(seconds(5), kTestBegin + seconds(60)));
  SilenceWatch spoke;
  spoke.Heard(1);
  Serve(spoke, 1000, kNoNews);
  EXPECT_FALSE(spoke.Look(seconds(5), kTestBegin + seconds(60)));
  Serve(spoke, SilenceWatch::kRequests, kNews);
  const auto silence = spoke.Look(seconds(5), kTestBegin + seconds(60));
  ASSERT_TRUE(silence);
  EXPECT_TRUE(silence->heard_before);
}

TEST(SilenceWatch, EndsWithAnyBatchAlsoOfANewStream) {
  SilenceWatch watch;
  watch.Heard(10);
  Serve(watch, 100, kNews);
  watch.Heard(10);
  EXPECT_TRUE(watch.Look(seconds(5), kTestBegin + seconds(60)));
  watch.Heard(0);  // a new stream, no batch yet
  EXPECT_TRUE(watch.Look(seconds(5), kTestBegin + seconds(60)));
  watch.Heard(1);
  EXPECT_FALSE(watch.Look(seconds(5), kTestBegin + seconds(60)));
}

TEST(SilenceWatch, MeasuresFromTheFirstRequestAfterTheLastBatch) {
  SilenceWatch watch;
  Serve(watch, 100, kNews);
  watch.Heard(1);
  for (int i = 0; i < 100; ++i) watch.Served(kNews, kTestBegin + seconds(58));
  EXPECT_FALSE(watch.Look(seconds(5), kTestBegin + seconds(60)));
}

// --- reuse

constexpr ServedRequest kUnused{.repeated = 16, .cached = 0};

void Serve(ReuseWatch& watch, uint32_t requests, const ServedRequest& request) {
  for (uint32_t i = 0; i < requests; ++i) watch.Served(request);
}

TEST(ReuseWatch, CountsRepeatsOfWhichNothingWasFound) {
  ReuseWatch watch;
  Serve(watch, ReuseWatch::kRepeats - 1, kUnused);
  EXPECT_FALSE(watch.Look());
  Serve(watch, 1, kUnused);
  ASSERT_TRUE(watch.Look());
  EXPECT_EQ(watch.Look()->repeats, ReuseWatch::kRepeats);
  EXPECT_FALSE(watch.Look()->reported);
}

TEST(ReuseWatch, LeavesOutRequestsThatTellNothing) {
  ReuseWatch watch;
  Serve(watch, 100, {.repeated = 16});                                 // no report of cached tokens
  Serve(watch, 100, {.repeated = 15, .cached = 0});                    // no whole block
  Serve(watch, 100, {.block_size = 32, .repeated = 31, .cached = 0});  // likewise
  Serve(watch, 100, {.space = PromptSpace::kSalted, .repeated = 16, .cached = 0});
  Serve(watch, 100, {.space = PromptSpace::kAdapter, .repeated = 16, .cached = 0});
  Serve(watch, 100, {.predicted = 16, .repeated = 16, .cached = 0});  // its events are wrong
  EXPECT_FALSE(watch.Look());
}

TEST(ReuseWatch, BelievesOneReuse) {
  ReuseWatch watch;
  Serve(watch, 100, kUnused);
  Serve(watch, 1, {.cached = 16});
  EXPECT_FALSE(watch.Look());
  Serve(watch, 100, kUnused);
  EXPECT_FALSE(watch.Look());
  watch.Reset();
  Serve(watch, ReuseWatch::kRepeats, kUnused);
  EXPECT_TRUE(watch.Look()) << "of another process";
}

TEST(ReuseWatch, BelievesTheEngine) {
  ReuseWatch watch;
  Serve(watch, 1, {.cached = 16});
  watch.Reported(false);
  ASSERT_TRUE(watch.Look());
  EXPECT_TRUE(watch.Look()->reported);
  watch.Reset();
  EXPECT_TRUE(watch.Look());
  watch.Reported(true);
  EXPECT_FALSE(watch.Look());
  watch.Reported(false);
  watch.Reported(std::nullopt);
  EXPECT_FALSE(watch.Look());
}

// --- gaps

TEST(GapWatch, DoubtsUntilTheStreamHasBeenWholeForAWhile) {
  GapWatch watch;
  watch.Heard(0, 1, 5, kTestBegin);
  EXPECT_FALSE(watch.Look(kTestBegin)) << "everything was brought back";
  watch.Heard(3, 2, 5, kTestBegin);
  const auto lost = watch.Look(kTestBegin);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lost, 3u);
  EXPECT_EQ(lost->gaps, 2u);
  EXPECT_EQ(lost->repaired, 5u);
  watch.Heard(3, 2, 5, kTestBegin + seconds(9));
  EXPECT_TRUE(watch.Look(kTestBegin + seconds(9)));
  watch.Heard(4, 3, 5, kTestBegin + seconds(9));
  EXPECT_TRUE(watch.Look(kTestBegin + seconds(18)));
  EXPECT_FALSE(watch.Look(kTestBegin + seconds(19)));
}

TEST(GapWatch, CountsANewStreamAnew) {
  GapWatch watch;
  watch.Heard(100, 1, 0, kTestBegin);
  watch.Heard(0, 0, 0, kTestBegin + seconds(20));
  EXPECT_FALSE(watch.Look(kTestBegin + seconds(20)));
  watch.Heard(1, 1, 0, kTestBegin + seconds(21));
  EXPECT_TRUE(watch.Look(kTestBegin + seconds(21)));
}

}  // namespace
}  // namespace fathom
