#include "router/fleet/token_parity.h"

#include <gtest/gtest.h>

#include "router/fleet/rank.h"

namespace fathom {
namespace {

using Verdict = ParityVerdict;

ParityVerdicts With(PromptKind kind, Verdict verdict) {
  ParityVerdicts verdicts{};
  verdicts[static_cast<size_t>(kind)] = verdict;
  return verdicts;
}

constexpr WorkerId kOne{1};
constexpr WorkerId kTwo{2};
constexpr PromptKind kChat = PromptKind::kChat;

TEST(ParityBoard, KnowsNothingAtFirst) {
  const ParityBoard board;
  EXPECT_EQ(board.Of("m", kChat), Verdict::kUnknown);
  EXPECT_EQ(board.Of("m"), Verdict::kUnknown);
  EXPECT_FALSE(board.any_differs());
}

TEST(ParityBoard, TakesOneWorkerThatAgreesForTheModel) {
  ParityBoard board;
  board.Publish(kOne, "m", With(kChat, Verdict::kDiffers));
  EXPECT_EQ(board.Of("m", kChat), Verdict::kDiffers);
  EXPECT_TRUE(board.any_differs());
  board.Publish(kTwo, "m", With(kChat, Verdict::kAgrees));
  EXPECT_EQ(board.Of("m", kChat), Verdict::kAgrees);
  EXPECT_FALSE(board.any_differs());
  board.Forget(kTwo);
  EXPECT_EQ(board.Of("m", kChat), Verdict::kDiffers);
  EXPECT_TRUE(board.any_differs());
  board.Forget(kOne);
  EXPECT_EQ(board.Of("m", kChat), Verdict::kUnknown);
  EXPECT_FALSE(board.any_differs());
}

TEST(ParityBoard, TakesOneKindThatDiffersForTheModel) {
  ParityBoard board;
  ParityVerdicts verdicts = With(kChat, Verdict::kAgrees);
  board.Publish(kOne, "m", verdicts);
  EXPECT_EQ(board.Of("m"), Verdict::kAgrees);
  verdicts[static_cast<size_t>(PromptKind::kTools)] = Verdict::kDiffers;
  board.Publish(kOne, "m", verdicts);
  EXPECT_EQ(board.Of("m"), Verdict::kDiffers);
  EXPECT_EQ(board.Of("m", kChat), Verdict::kAgrees);
  EXPECT_EQ(board.Of("other"), Verdict::kUnknown);
}

TEST(ParityBoard, TakesWorkersWithoutNamesOfModelsForAll) {
  ParityBoard board;
  board.Publish(kOne, "", With(kChat, Verdict::kCannotAsk));
  EXPECT_EQ(board.Of("m", kChat), Verdict::kCannotAsk);
  EXPECT_EQ(board.Of("m"), Verdict::kCannotAsk);
}

TEST(Probed, TakesTheCreditOfOneKindAtOnceAlsoFromLaterRanks) {
  RankTable ranks;
  auto report = std::make_shared<ParityReport>();
  report->verdicts = With(PromptKind::kTools, Verdict::kDiffers);
  report->verdicts[static_cast<size_t>(kChat)] = Verdict::kAgrees;
  ranks.Probed(report);
  ranks.Know(5);
  const RankWitness& witness = ranks.Find(5)->witness;
  EXPECT_EQ(witness.Credit(PromptSpace::kPlain, PromptKind::kTools), 0);
  EXPECT_EQ(witness.Credit(PromptSpace::kPlain, kChat), 1);
  EXPECT_EQ(ranks.Find(0)->witness.Credit(PromptSpace::kPlain, PromptKind::kTools), 0);
}

TEST(ParityBoard, SaysSoWhereNobodyAsks) {
  ParityBoard board;
  EXPECT_EQ(board.Of("m"), ParityVerdict::kUnknown);
  board.NobodyAsks();
  EXPECT_EQ(board.Of("m"), ParityVerdict::kCannotAsk);
  EXPECT_EQ(board.Of("m", PromptKind::kChat), ParityVerdict::kCannotAsk);
}

}  // namespace
}  // namespace fathom
