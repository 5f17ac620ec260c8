#include "router/fleet/feed_board.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Sources(const FeedBoard& board) {
  std::vector<std::string> sources;
  for (const auto& feed : board.All()) sources.push_back(feed->source);
  return sources;
}

TEST(FeedBoard, ListsFeedsByWorkerAndRank) {
  FeedBoard board;
  const auto c = board.Open(WorkerId(2), 0, "c");
  const auto b = board.Open(WorkerId(1), 1, "b");
  const auto a = board.Open(WorkerId(1), 0, "a");
  EXPECT_THAT(Sources(board), ElementsAre("a", "b", "c"));
}

TEST(FeedBoard, ForgetsAFeedThatNobodyKeeps) {
  FeedBoard board;
  auto feed = board.Open(WorkerId(1), 0, "a");
  feed.reset();
  EXPECT_THAT(Sources(board), ElementsAre());
}

TEST(FeedBoard, KnowsTheFeedsOfOneWorker) {
  FeedBoard board;
  const auto second = board.Open(WorkerId(2), 1, "tcp://b:2");
  const auto other = board.Open(WorkerId(1), 0, "tcp://a:1");
  const auto first = board.Open(WorkerId(2), 0, "tcp://b:1");
  EXPECT_THAT(board.Of(WorkerId(2)), testing::ElementsAre(first, second));
  EXPECT_THAT(board.Of(WorkerId(3)), testing::IsEmpty());
}

TEST(FeedBoard, ShowsOneFeedOfAWorkerThatIsBeingReplaced) {
  FeedBoard board;
  const auto old = board.Open(WorkerId(1), 0, "old");
  const auto other = board.Open(WorkerId(1), 1, "other rank");
  const auto next = board.Open(WorkerId(1), 0, "new");
  EXPECT_THAT(Sources(board), ElementsAre("new", "other rank"));
}

}  // namespace
}  // namespace fathom
