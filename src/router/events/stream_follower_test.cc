#include "router/events/stream_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// An engine process; each batch contains the name of its process.
std::string Batch(char process, uint64_t sequence) {
  return std::string(1, process) + std::to_string(sequence);
}

class StreamFollowerTest : public testing::Test, public FollowerActions {
 protected:
  void Live(char process, uint64_t sequence) {
    follower_->Live(sequence, Batch(process, sequence));
  }
  // The batches of the process up to `end`, beginning with `begin` or with the requested one.
  void AnswerReplay(char process, uint64_t begin, uint64_t end) {
    ASSERT_FALSE(asked_.empty());
    for (uint64_t i = std::max(begin, asked_.back()); i < end; ++i) {
      follower_->Replayed(i, Batch(process, i));
    }
    follower_->ReplayEnded();
  }
  // What another follower would tell after the batches of a process up to `end`.
  static StreamMark MarkOf(char process, uint64_t end) {
    struct Nothing final : FollowerActions {
      bool Apply(uint64_t, std::string_view) override { return true; }
      void Reset(ResetCause, uint64_t) override {}
      void AskReplay(uint64_t) override {}
    } nothing;
    StreamFollower other(nothing, false);
    other.Connected();
    for (uint64_t i = 0; i < end; ++i) other.Live(i, Batch(process, i));
    return other.Reflected().value();
  }
  void Without() { follower_.emplace(*this, false); }
  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }

  std::optional<StreamFollower> follower_{std::in_place, *this, true};
  std::vector<uint64_t> asked_;
  std::string broken_;  // an invalid batch
  bool adopts_ = true;

 private:
  bool Apply(uint64_t, std::string_view payload) override {
    if (payload == broken_) return false;
    log_.emplace_back(payload);
    return true;
  }
  void Reset(ResetCause cause, uint64_t lost) override {
    log_.push_back("reset:" + std::string(Name(cause)) +
                   (lost > 0 ? ":" + std::to_string(lost) : ""));
  }
  void AskReplay(uint64_t from) override { asked_.push_back(from); }
  bool Adopt() override {
    log_.push_back(adopts_ ? "adopt" : "cannot");
    return adopts_;
  }
  void DropSnapshot() override { log_.push_back("drop"); }

  std::vector<std::string> log_;
};

TEST_F(StreamFollowerTest, AsksForEverythingWhenItJoins) {
  follower_->Connected();
  EXPECT_THAT(asked_, ElementsAre(0));
  AnswerReplay('a', 0, 3);
  Live('a', 3);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "a2", "a3"));
  EXPECT_EQ(follower_->counts().gaps, 0u);
}

TEST_F(StreamFollowerTest, SkipsLiveBatchesThatTheReplayBroughtAlready) {
  follower_->Connected();
  AnswerReplay('a', 0, 2000);
  (void)TakeLog();
  for (uint64_t i = 500; i < 2001; ++i) Live('a', i);
  EXPECT_THAT(TakeLog(), ElementsAre("a2000"));
  EXPECT_EQ(follower_->counts().duplicates, 1500u);
  EXPECT_EQ(follower_->counts().restarts, 0u);
}

TEST_F(StreamFollowerTest, JoinsInTheMiddleWhenTheBufferHasOverflowed) {
  follower_->Connected();
  AnswerReplay('a', 7, 9);
  Live('a', 9);
  EXPECT_THAT(TakeLog(), ElementsAre("a7", "a8", "a9"));
}

TEST_F(StreamFollowerTest, RepairsAGap) {
  follower_->Connected();
  AnswerReplay('a', 0, 2);
  Live('a', 4);
  EXPECT_TRUE(follower_->repairing());
  EXPECT_THAT(asked_, ElementsAre(0, 2));
  AnswerReplay('a', 0, 5);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "a2", "a3", "a4"));
  EXPECT_EQ(follower_->counts().gaps, 1u);
  EXPECT_EQ(follower_->counts().repaired, 3u);
  EXPECT_EQ(follower_->counts().lost, 0u);
  EXPECT_FALSE(follower_->repairing());
}

TEST_F(StreamFollowerTest, BeginsAgainWithWhatIsLeftWhenAGapCannotBeRepaired) {
  follower_->Connected();
  AnswerReplay('a', 0, 2);
  Live('a', 9);
  AnswerReplay('a', 6, 10);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "reset:lost_batches:4", "a6", "a7", "a8", "a9"));
  EXPECT_EQ(follower_->counts().lost, 4u);
}

TEST_F(StreamFollowerTest, NoticesAHoleInsideAReplay) {
  follower_->Connected();
  AnswerReplay('a', 0, 1);
  Live('a', 5);
  follower_->Replayed(1, "a1");
  follower_->Replayed(3, "a3");
  follower_->Replayed(4, "a4");
  follower_->Replayed(5, "a5");
  follower_->ReplayEnded();
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "reset:lost_batches:1", "a3", "a4", "a5"));
}

TEST_F(StreamFollowerTest, GivesUpAReplayThatEndsTooEarlyAfterSomeTries) {
  follower_->Connected();
  AnswerReplay('a', 0, 1);
  Live('a', 5);
  for (int i = 0; i < 3; ++i) AnswerReplay('a', 9, 9);
  EXPECT_FALSE(follower_->repairing());
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "reset:lost_batches:4", "a5"));
  EXPECT_EQ(follower_->counts().gaps, 1u);
}

TEST_F(StreamFollowerTest, LosesTheGapWhenNobodyAnswers) {
  follower_->Connected();
  AnswerReplay('a', 0, 1);
  Live('a', 3);
  follower_->ReplayFailed();
  Live('a', 4);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "reset:lost_batches:2", "a3", "a4"));
  EXPECT_EQ(follower_->counts().replay_failures, 1u);
}

TEST_F(StreamFollowerTest, WithoutReplayAGapEmptiesTheRank) {
  Without();
  follower_->Connected();
  Live('a', 0);
  Live('a', 3);
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "reset:lost_batches:2", "a3"));
}

TEST_F(StreamFollowerTest, ASequenceThatGoesBackwardsIsARestart) {
  follower_->Connected();
  AnswerReplay('a', 0, 3);
  Live('b', 1);
  EXPECT_THAT(asked_, ElementsAre(0, 0));
  AnswerReplay('b', 0, 2);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "a2", "reset:restart", "b0", "b1"));
  EXPECT_EQ(follower_->counts().restarts, 1u);
}

TEST_F(StreamFollowerTest, WithoutReplayARestartBeginsWithWhatComes) {
  Without();
  follower_->Connected();
  Live('a', 0);
  Live('a', 1);
  Live('b', 0);
  Live('b', 1);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "reset:restart", "b0", "b1"));
}

TEST_F(StreamFollowerTest, AReconnectionToTheSameProcessCostsNothing) {
  follower_->Connected();
  AnswerReplay('a', 0, 3);
  follower_->Connected();
  EXPECT_THAT(asked_, ElementsAre(0, 2));
  AnswerReplay('a', 0, 5);  // two more were published in the meantime
  Live('a', 5);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "a2", "a3", "a4", "a5"));
  EXPECT_EQ(follower_->counts().reconnects, 1u);
  EXPECT_EQ(follower_->counts().restarts, 0u);
}

TEST_F(StreamFollowerTest, ANewProcessWithFittingNumbersIsStillNoticed) {
  follower_->Connected();
  AnswerReplay('a', 0, 3);
  follower_->Connected();
  AnswerReplay('b', 0, 3);  // the new process has published as many batches as the old one
  EXPECT_THAT(asked_, ElementsAre(0, 2, 0));
  AnswerReplay('b', 0, 3);
  Live('b', 3);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "a2", "reset:restart", "b0", "b1", "b2", "b3"));
}

TEST_F(StreamFollowerTest, AnIdleNewProcessIsNoticedWithoutAnyBatch) {
  follower_->Connected();
  AnswerReplay('a', 0, 3);
  follower_->Connected();
  AnswerReplay('b', 0, 0);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1", "a2", "reset:restart"));
  AnswerReplay('b', 0, 0);
  EXPECT_FALSE(follower_->repairing());
}

TEST_F(StreamFollowerTest, WithoutReplayNobodyKnowsWhoReconnected) {
  Without();
  follower_->Connected();
  Live('a', 0);
  follower_->Connected();
  Live('a', 1);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "reset:reconnect", "a1"));
}

TEST_F(StreamFollowerTest, AnOldBatchDoesNotSpoilANewProcess) {
  follower_->Connected();
  AnswerReplay('a', 0, 3);
  Live('b', 1);  // a restart; and before the replay is answered, the engine restarts again
  AnswerReplay('c', 0, 5);
  Live('c', 5);
  EXPECT_FALSE(follower_->repairing());
  EXPECT_THAT(TakeLog(),
              ElementsAre("a0", "a1", "a2", "reset:restart", "c0", "c1", "c2", "c3", "c4", "c5"));
}

TEST_F(StreamFollowerTest, AReconnectionDuringAReplayIsLookedIntoAfterwards) {
  follower_->Connected();
  follower_->Connected();
  AnswerReplay('a', 0, 2);
  EXPECT_THAT(asked_, ElementsAre(0, 1));
  AnswerReplay('a', 0, 2);
  EXPECT_FALSE(follower_->repairing());
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "a1"));
}

TEST_F(StreamFollowerTest, ABatchThatCannotBeReadEmptiesTheRank) {
  follower_->Connected();
  AnswerReplay('a', 0, 1);
  broken_ = "a1";
  Live('a', 1);
  Live('a', 2);
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "reset:malformed:1", "a2"));
  EXPECT_EQ(follower_->counts().malformed, 1u);
}

TEST_F(StreamFollowerTest, ClearsTheRankWhenABatchTurnsOutToBeInvalid) {
  Without();
  Live('a', 0);
  follower_->Spoiled();
  EXPECT_THAT(TakeLog(), ElementsAre("a0", "reset:malformed:1"));
  EXPECT_EQ(follower_->counts().batches, 0u);
  EXPECT_EQ(follower_->counts().malformed, 1u);
  Live('a', 1);
  EXPECT_THAT(TakeLog(), ElementsAre("a1"));
}

TEST_F(StreamFollowerTest, SaysWhatItKeepsForAReplay) {
  follower_->Connected();
  AnswerReplay('a', 0, 1);
  EXPECT_EQ(follower_->kept_bytes(), 0u);
  Live('a', 5);
  EXPECT_EQ(follower_->kept_bytes(), 2u);
  AnswerReplay('a', 1, 5);
  EXPECT_EQ(follower_->kept_bytes(), 2u) << "it may still be applied";
  follower_->Applied();
  EXPECT_EQ(follower_->kept_bytes(), 0u);
}

// --- snapshots ----------------------------------------------------------------------------------

TEST_F(StreamFollowerTest, GoesOnFromASnapshotOfTheSameProcess) {
  follower_->StartFrom(MarkOf('a', 1000));
  follower_->Connected();
  EXPECT_THAT(asked_, ElementsAre(999));
  AnswerReplay('a', 900, 1002);
  Live('a', 100);  // waited in the connection, older than the snapshot's fingerprints
  Live('a', 744);  // known, the first one
  Live('a', 999);  // known
  Live('a', 1002);
  EXPECT_THAT(TakeLog(), ElementsAre("adopt", "a1000", "a1001", "a1002"));
  EXPECT_EQ(follower_->counts().restarts, 0u);
  EXPECT_EQ(follower_->counts().gaps, 0u);
  EXPECT_EQ(follower_->counts().duplicates, 3u);
}

// The replay brings more than one batch for each that the snapshot knows.
TEST_F(StreamFollowerTest, LiveBatchesThatWaitedBehindASnapshotAreNoRestart) {
  follower_->StartFrom(MarkOf('a', 1000));
  follower_->Connected();
  AnswerReplay('a', 900, 1400);
  (void)TakeLog();
  for (uint64_t i = 744; i < 1401; ++i) Live('a', i);
  EXPECT_THAT(TakeLog(), ElementsAre("a1400"));
  EXPECT_EQ(follower_->counts().restarts, 0u);
  EXPECT_EQ(follower_->counts().duplicates, 656u);
}

TEST_F(StreamFollowerTest, ARestartBehindASnapshotIsNoticed) {
  for (const uint64_t number : {744, 999, 1001}) {
    follower_.emplace(*this, true);
    follower_->StartFrom(MarkOf('a', 1000));
    follower_->Connected();
    AnswerReplay('a', 900, 1400);
    (void)TakeLog();
    Live('b', number);
    EXPECT_THAT(TakeLog(), ElementsAre("reset:restart")) << number;
    EXPECT_TRUE(follower_->repairing());
  }
}

TEST_F(StreamFollowerTest, DropsASnapshotOfAnotherProcess) {
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  AnswerReplay('b', 0, 6);
  EXPECT_THAT(asked_, ElementsAre(4, 0));
  AnswerReplay('b', 0, 6);
  Live('b', 6);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "b0", "b1", "b2", "b3", "b4", "b5", "b6"));
}

// A short buffer, and a snapshot that takes longer than the buffer lasts.
TEST_F(StreamFollowerTest, ALiveBatchThatHasWaitedProvesWhatTheEngineNoLongerHas) {
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  AnswerReplay('a', 6, 8);
  EXPECT_THAT(asked_, ElementsAre(4));
  for (int number = 3; number < 9; ++number) Live('a', number);
  EXPECT_THAT(asked_, ElementsAre(4));
  EXPECT_THAT(TakeLog(), ElementsAre("adopt", "a5", "a6", "a7", "a8"));
}

TEST_F(StreamFollowerTest, DropsASnapshotThatTheEngineNoLongerProves) {
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  AnswerReplay('a', 6, 8);
  Live('a', 7);
  EXPECT_THAT(asked_, ElementsAre(4, 0));
  AnswerReplay('a', 6, 8);
  Live('a', 8);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "a6", "a7", "a8"));
}

TEST_F(StreamFollowerTest, DropsASnapshotThatTheEngineNoLongerProvesBeforeItSpeaks) {
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  AnswerReplay('a', 6, 8);
  follower_->GiveUpSnapshot();
  EXPECT_THAT(asked_, ElementsAre(4, 0));
  AnswerReplay('a', 6, 8);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "a6", "a7"));
}

TEST_F(StreamFollowerTest, DropsASnapshotOfALaterNumberThanTheEngineHas) {
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  AnswerReplay('b', 0, 2);
  AnswerReplay('b', 0, 2);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "b0", "b1"));
}

TEST_F(StreamFollowerTest, ASnapshotThatCannotBeUsedCostsOneQuestion) {
  adopts_ = false;
  follower_->StartFrom(MarkOf('a', 3));
  follower_->Connected();
  AnswerReplay('a', 0, 3);
  EXPECT_THAT(asked_, ElementsAre(2, 0));
  AnswerReplay('a', 0, 3);
  EXPECT_THAT(TakeLog(), ElementsAre("cannot", "drop", "a0", "a1", "a2"));
}

TEST_F(StreamFollowerTest, ASnapshotThatTurnsOutToBeInvalidIsReplacedByAJoin) {
  follower_->StartFrom(MarkOf('a', 3));
  follower_->Connected();
  follower_->Replayed(2, "a2");
  follower_->SnapshotSpoiled();
  follower_->Replayed(3, "a3");
  follower_->ReplayEnded();
  EXPECT_THAT(asked_, ElementsAre(2, 0));
  AnswerReplay('a', 0, 4);
  EXPECT_THAT(TakeLog(), ElementsAre("adopt", "reset:malformed", "a0", "a1", "a2", "a3"));
}

TEST_F(StreamFollowerTest, WithoutReplayTheNextBatchDecides) {
  Without();
  follower_->StartFrom(MarkOf('a', 3));
  follower_->Connected();
  EXPECT_TRUE(follower_->deciding());
  Live('a', 3);
  Live('a', 4);
  EXPECT_THAT(TakeLog(), ElementsAre("adopt", "a3", "a4"));
}

TEST_F(StreamFollowerTest, WithoutReplayABatchThatTheSnapshotKnowsDecides) {
  Without();
  follower_->StartFrom(MarkOf('a', 1000));
  follower_->Connected();
  Live('a', 300);  // older than what the snapshot knows
  Live('a', 998);
  Live('a', 999);
  Live('a', 1000);
  EXPECT_THAT(TakeLog(), ElementsAre("adopt", "a1000"));
}

TEST_F(StreamFollowerTest, WithoutReplayOtherBatchesDropTheSnapshot) {
  Without();
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  Live('b', 2);
  Live('b', 3);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "b2", "b3"));
  Without();
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  Live('a', 7);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "a7"));
  Without();
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  follower_->Connected();
  Live('b', 5);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "b5")) << "perhaps another process";
  Without();
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  follower_->GiveUpSnapshot();
  Live('a', 5);
  EXPECT_THAT(TakeLog(), ElementsAre("drop", "a5"));
}

TEST_F(StreamFollowerTest, ASilentReplayLeavesTheDecisionToTheStream) {
  follower_->StartFrom(MarkOf('a', 5));
  follower_->Connected();
  follower_->ReplayFailed();
  Live('a', 4);
  Live('a', 5);
  EXPECT_THAT(TakeLog(), ElementsAre("adopt", "a5"));
}

TEST_F(StreamFollowerTest, TellsOfItselfOnlyWhatIsWhole) {
  EXPECT_FALSE(follower_->Reflected().has_value());
  follower_->Connected();
  EXPECT_FALSE(follower_->Reflected().has_value()) << "being repaired";
  AnswerReplay('a', 7, 9);
  ASSERT_TRUE(follower_->Reflected().has_value());
  EXPECT_EQ(follower_->Reflected()->sequence, 8u);
  EXPECT_EQ(follower_->Reflected()->fingerprints.size(), 2u);
  Live('a', 20);
  AnswerReplay('a', 15, 20);
  EXPECT_FALSE(follower_->Reflected().has_value()) << "a replay may bring more";
  Live('b', 1);
  AnswerReplay('b', 0, 2);
  EXPECT_TRUE(follower_->Reflected().has_value()) << "a new process, and all of it";
}

TEST_F(StreamFollowerTest, AJoinThatFailedIsNotWhole) {
  follower_->Connected();
  follower_->ReplayFailed();
  Live('a', 5);
  EXPECT_FALSE(follower_->Reflected().has_value());
}

}  // namespace
}  // namespace fathom
