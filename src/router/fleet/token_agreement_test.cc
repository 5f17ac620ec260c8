#include "router/fleet/token_agreement.h"

#include <gtest/gtest.h>

#include <numeric>

#include "testing/test_clock.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Likely = TokenDifference::Likely;
using Place = StoredTokens::Place;
using Tokens = std::vector<TokenId>;

constexpr uint32_t kBlock = 4;

// Blocks whose keys are 11, 12, 13...
Tokens Prompt(size_t blocks, PromptKind kind = PromptKind::kChat) {
  Tokens tokens(blocks * kBlock);
  const TokenId begin = kind == PromptKind::kChat ? 100 : 1000 * static_cast<TokenId>(kind);
  std::iota(tokens.begin(), tokens.end(), begin);
  return tokens;
}

class TokenAgreementTest : public testing::Test {
 protected:
  // Sends a request to the rank, which is known to hold its first `held` blocks.
  uint64_t Send(size_t blocks, size_t held = 0, bool busy = false) {
    const uint64_t id = ++ids_;
    const Tokens all = Prompt(blocks, kind_);
    ExpectedBlocks expected{
        .id = id,
        .from = static_cast<uint32_t>(held * kBlock),
        .before = held == 0 ? 0 : 10 + held,
        .tokens = {all.begin() + static_cast<ptrdiff_t>(held * kBlock), all.end()},
        .keys = {},
        .block_size = kBlock,
        .model = "m",
        .kind = kind_};
    for (size_t i = held; i < blocks; ++i) expected.keys.push_back(11 + i);
    tokens_.Sent(busy);
    tokens_.Expect(std::move(expected), now_);
    return id;
  }
  uint64_t Answer(size_t blocks, size_t held = 0, bool busy = false) {
    const uint64_t id = Send(blocks, held, busy);
    tokens_.FirstByte(id, now_);
    return id;
  }
  std::optional<Duration> Store(const Tokens& tokens) {
    return tokens_.Stored({.tokens = tokens}, now_);
  }
  std::optional<Duration> StoreAfter(uint64_t before, const Tokens& tokens) {
    return tokens_.Stored({.place = Place::kKnown, .before = before, .tokens = tokens}, now_);
  }
  void StoreSomewhere() {
    tokens_.Stored({.place = Place::kUnknown, .before = 0, .tokens = {}}, now_);
  }
  std::optional<TokenDifference> LookAfter(Duration time) {
    now_ += time;
    return tokens_.Look(now_);
  }
  // `requests` requests in a row, each alone, whose events have other tokens.
  std::optional<TokenDifference> Differ(int requests, const Tokens& theirs = {7, 7, 7, 7, 7, 7}) {
    std::optional<TokenDifference> difference;
    for (int i = 0; i < requests; ++i) {
      Answer(2);
      Store(theirs);
      difference = LookAfter(TokenAgreement::kPatience);
    }
    return difference;
  }

  TokenAgreement tokens_;
  TimePoint now_ = kTestBegin;
  PromptKind kind_ = PromptKind::kChat;  // of the next requests

 private:
  uint64_t ids_ = 0;
};

constexpr int kEnough = TokenAgreement::kDoubt / TokenAgreement::kAlone;

TEST_F(TokenAgreementTest, DiffersAfterAFewRequestsThatWereAlone) {
  EXPECT_FALSE(Differ(kEnough - 1));
  const auto difference = Differ(1);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->requests, static_cast<uint32_t>(kEnough));
  EXPECT_EQ(difference->model, "m");
}

TEST_F(TokenAgreementTest, DiffersAfterManyRequestsBesideOthers) {
  std::optional<TokenDifference> difference;
  uint32_t requests = 0;
  for (; !difference && requests < 1000; ++requests) {
    Answer(2, 0, true);
    Store({7, 7, 7, 7});
    difference = LookAfter(TokenAgreement::kPatience);
  }
  EXPECT_EQ(requests, TokenAgreement::kDoubt);
}

TEST_F(TokenAgreementTest, WeighsLittleWhereTheNextOneCameBeforeTheEvent) {
  for (int i = 0; i < kEnough; ++i) {
    Answer(2);
    tokens_.Sent(true);
    Store({7, 7, 7, 7});
    EXPECT_FALSE(LookAfter(TokenAgreement::kPatience));
  }
}

TEST_F(TokenAgreementTest, WeighsALotWhereTheNextOneCameAfterTheEvent) {
  std::optional<TokenDifference> difference;
  for (int i = 0; i < kEnough; ++i) {
    Answer(2);
    Store({7, 7, 7, 7});
    tokens_.Sent(true);
    difference = LookAfter(TokenAgreement::kPatience);
  }
  EXPECT_TRUE(difference);
}

TEST_F(TokenAgreementTest, IsClearedByOneEventThatAgrees) {
  ASSERT_TRUE(Differ(kEnough));
  Answer(2);
  Store(Prompt(2));
  EXPECT_FALSE(LookAfter(seconds(0)));
  EXPECT_FALSE(Differ(kEnough - 1));
  EXPECT_EQ(Differ(1)->requests, static_cast<uint32_t>(kEnough));
}

TEST_F(TokenAgreementTest, JudgesEachKindOfPromptByItself) {
  Answer(2);
  Store(Prompt(2, kind_));
  kind_ = PromptKind::kDeveloper;
  const auto difference = Differ(kEnough);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->kind, PromptKind::kDeveloper);
  EXPECT_TRUE(difference->others_agree);
  EXPECT_TRUE(tokens_.Differs(PromptKind::kDeveloper));
  EXPECT_FALSE(tokens_.Differs(PromptKind::kChat));
  EXPECT_FALSE(tokens_.Differs(PromptKind::kTools)) << "nothing speaks against it";
  kind_ = PromptKind::kChat;
  Answer(2);
  Store(Prompt(2, kind_));
  EXPECT_TRUE(LookAfter(seconds(0))) << "only its own kind clears it";
  kind_ = PromptKind::kDeveloper;
  Answer(2);
  Store(Prompt(2, kind_));
  EXPECT_FALSE(LookAfter(seconds(0)));
}

TEST_F(TokenAgreementTest, TakesOneKindForAllWhileNoneAgrees) {
  kind_ = PromptKind::kTools;
  const auto difference = Differ(kEnough);
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->others_agree);
  EXPECT_TRUE(tokens_.Differs(PromptKind::kChat));
  kind_ = PromptKind::kChat;
  Answer(2);
  Store(Prompt(2, kind_));
  EXPECT_FALSE(tokens_.Differs(PromptKind::kChat));
  EXPECT_TRUE(tokens_.Differs(PromptKind::kTools));
}

TEST_F(TokenAgreementTest, WaitsForEventsBeforeItJudges) {
  Differ(kEnough - 1);
  Answer(2);
  Store({7, 7, 7, 7});
  EXPECT_FALSE(LookAfter(TokenAgreement::kPatience - milliseconds(1)));
  Store(Prompt(2));
  EXPECT_FALSE(LookAfter(seconds(1)));
}

TEST_F(TokenAgreementTest, TakesALateEventForWhatItIs) {
  ASSERT_TRUE(Differ(kEnough));
  EXPECT_EQ(Store(Prompt(2)), TokenAgreement::kPatience * kEnough);
  EXPECT_FALSE(LookAfter(seconds(0)));
}

TEST_F(TokenAgreementTest, SaysNothingOfRequestsWithoutAnEvent) {
  for (int i = 0; i < 100; ++i) {
    Answer(2);
    EXPECT_FALSE(LookAfter(TokenAgreement::kPatience));
  }
}

TEST_F(TokenAgreementTest, SaysNothingOfRequestsWithEventsFromAnUnknownPlace) {
  for (int i = 0; i < 100; ++i) {
    Answer(2);
    Store({7, 7, 7, 7});
    StoreSomewhere();
    EXPECT_FALSE(LookAfter(TokenAgreement::kPatience));
  }
}

TEST_F(TokenAgreementTest, SaysNothingOfRequestsThatWereNotAnswered) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t id = Send(2);
    Store({7, 7, 7, 7});
    if (i % 2 == 0) tokens_.Withdraw(id);
    EXPECT_FALSE(LookAfter(TokenAgreement::kPatience));
  }
}

// Generated tokens may be stored long after the first byte.
TEST_F(TokenAgreementTest, AgreesWithoutALagWithWhatFollowsOnThePrompt) {
  Answer(4, 0);
  now_ += seconds(1);
  EXPECT_EQ(StoreAfter(14, {1, 2, 3, 4}), std::nullopt);
  EXPECT_FALSE(tokens_.expects());
}

TEST_F(TokenAgreementTest, AgreesWhereverTheEventContinuesThePrompt) {
  struct Row {
    size_t held;
    uint64_t before;  // 0: at the beginning
    Tokens event;
    bool agrees;
  };
  const Tokens all = Prompt(4);
  const auto blocks = [&](size_t from, size_t to) {
    return Tokens(all.begin() + static_cast<ptrdiff_t>(from * kBlock),
                  all.begin() + static_cast<ptrdiff_t>(to * kBlock));
  };
  const Row rows[] = {
      {0, 0, blocks(0, 4), true},         // the whole prompt
      {0, 0, blocks(0, 1), true},         // its first block
      {0, 12, blocks(2, 4), true},        // a part of it, after a block that is cached already
      {2, 12, blocks(2, 4), true},        // the new part
      {2, 13, blocks(3, 4), true},        // a piece of the new part
      {2, 0, blocks(0, 4), true},         // recomputed from the beginning
      {2, 11, blocks(1, 3), true},        // recomputed from a later block
      {2, 0, blocks(0, 2), false},        // recomputed, but without the new part
      {2, 12, {1, 2, 3, 4}, false},       // other tokens in its place
      {0, 12, {1, 2, 3, 4}, false},       // likewise
      {0, 99, blocks(0, 4), false},       // in another prompt
      {0, 0, {100, 101, 102, 7}, false},  // not the whole block
  };
  for (const Row& row : rows) {
    tokens_ = {};
    Answer(4, row.held);
    now_ += seconds(1);
    const auto lag = row.before == 0 ? Store(row.event) : StoreAfter(row.before, row.event);
    EXPECT_EQ(lag, row.agrees ? std::optional<Duration>(seconds(1)) : std::nullopt)
        << row.held << " held, after " << row.before;
    EXPECT_EQ(tokens_.expects(), !row.agrees);
  }
}

TEST_F(TokenAgreementTest, MeasuresNoLagOfAnEventThatCameBeforeTheFirstByte) {
  const uint64_t id = Send(2);
  EXPECT_EQ(Store(Prompt(2)), std::nullopt);
  EXPECT_TRUE(tokens_.expects());
  tokens_.FirstByte(id, now_ + seconds(1));
  EXPECT_FALSE(tokens_.expects());
}

TEST_F(TokenAgreementTest, TellsTheFirstPlaceAndTheLikelyCause) {
  struct Row {
    const char* what;
    Tokens theirs;
    uint32_t position;
    TokenId ours;
    TokenId theirs_there;
    Likely likely;
  };
  const Row rows[] = {
      // ours are 100 to 107
      {"BOS too many", {1, 100, 101, 102, 103, 104, 105, 106}, 0, 100, 1, Likely::kExtraFirst},
      {"BOS missing", {101, 102, 103, 104, 105, 106, 107, 5}, 0, 100, 101, Likely::kMissingFirst},
      {"in the middle", {100, 101, 55, 103}, 2, 102, 55, Likely::kTemplate},
      {"other frame, same text", {1, 2, 3, 102, 103, 104, 105, 8}, 0, 100, 1, Likely::kTemplate},
      {"nothing in common", {1, 2, 3, 4, 5, 6, 7, 8}, 0, 100, 1, Likely::kVocabulary},
  };
  for (const Row& row : rows) {
    tokens_ = {};
    const auto difference = Differ(kEnough, row.theirs);
    ASSERT_TRUE(difference) << row.what;
    EXPECT_TRUE(difference->located) << row.what;
    EXPECT_EQ(difference->position, row.position) << row.what;
    EXPECT_EQ(difference->ours, row.ours) << row.what;
    EXPECT_EQ(difference->theirs, row.theirs_there) << row.what;
    EXPECT_EQ(difference->likely, row.likely) << row.what;
  }
}

TEST_F(TokenAgreementTest, CountsPositionsFromTheBeginningOfThePrompt) {
  for (int i = 0; i < kEnough; ++i) {
    Answer(4, 2);
    StoreAfter(12, {108, 7, 7, 7});
    LookAfter(TokenAgreement::kPatience);
  }
  const auto difference = LookAfter(seconds(0));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->position, 9u);
  EXPECT_EQ(difference->ours, 109u);
}

TEST_F(TokenAgreementTest, LocatesNothingWhereNoEventIsInOurPlace) {
  for (int i = 0; i < kEnough; ++i) {
    Answer(2);
    StoreAfter(99, {7, 7, 7, 7});
    LookAfter(TokenAgreement::kPatience);
  }
  const auto difference = LookAfter(seconds(0));
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->located);
}

TEST_F(TokenAgreementTest, BeginsAnewAfterAReset) {
  ASSERT_TRUE(Differ(kEnough));
  Answer(2);
  tokens_.Reset();
  EXPECT_FALSE(tokens_.expects());
  EXPECT_FALSE(LookAfter(seconds(60)));
  EXPECT_FALSE(Differ(kEnough - 1));
  EXPECT_EQ(Differ(1)->requests, static_cast<uint32_t>(kEnough));
}

std::shared_ptr<const ParityReport> Probes(
    std::initializer_list<std::pair<PromptKind, ParityVerdict>> found) {
  auto report = std::make_shared<ParityReport>();
  for (const auto& [kind, verdict] : found) {
    report->verdicts[static_cast<size_t>(kind)] = verdict;
    report->differences[static_cast<size_t>(kind)] = {.located = true, .position = 3, .model = "m"};
  }
  return report;
}

TEST_F(TokenAgreementTest, DiffersAtOnceWhereAProbeDoes) {
  tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kAgrees},
                         {PromptKind::kTools, ParityVerdict::kDiffers},
                         {PromptKind::kMessages, ParityVerdict::kDiffers}}));
  for (const PromptKind kind : {PromptKind::kChat, PromptKind::kText, PromptKind::kResponses}) {
    EXPECT_FALSE(tokens_.Differs(kind));
  }
  EXPECT_TRUE(tokens_.Differs(PromptKind::kTools));
  const auto difference = LookAfter(seconds(0));
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->probed && difference->others_agree);
  EXPECT_EQ(difference->position, 3u);
  EXPECT_EQ(difference->kinds.count(), 2u);
  EXPECT_TRUE(difference->kinds[static_cast<size_t>(PromptKind::kMessages)]);
}

TEST_F(TokenAgreementTest, IsNotReassuredByProbesWhereEventsDiffer) {
  tokens_.Probed(Probes(
      {{PromptKind::kText, ParityVerdict::kAgrees}, {PromptKind::kChat, ParityVerdict::kAgrees}}));
  EXPECT_FALSE(LookAfter(seconds(0)));
  const auto difference = Differ(kEnough);
  ASSERT_TRUE(difference);
  EXPECT_FALSE(difference->probed);
  EXPECT_FALSE(difference->others_agree);
  EXPECT_TRUE(tokens_.Differs(PromptKind::kText));
}

TEST_F(TokenAgreementTest, TakesAProbeThatDiffersForAllWhileNoneAgrees) {
  tokens_.Probed(Probes({{PromptKind::kText, ParityVerdict::kDiffers}}));
  EXPECT_TRUE(tokens_.Differs(PromptKind::kChat));
}

TEST_F(TokenAgreementTest, BelievesAnEventMoreThanAProbe) {
  tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kDiffers}}));
  Answer(2);
  Store(Prompt(2));
  EXPECT_FALSE(LookAfter(seconds(0)));
  EXPECT_FALSE(tokens_.Differs(PromptKind::kChat));
  // The same again is no news, a change is.
  tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kDiffers}}));
  EXPECT_FALSE(LookAfter(seconds(0)));
  tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kAgrees}}));
  tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kDiffers}}));
  EXPECT_TRUE(LookAfter(seconds(0)));
}

TEST_F(TokenAgreementTest, IsClearedByALaterProbe) {
  for (const ParityVerdict later : {ParityVerdict::kAgrees, ParityVerdict::kCannotAsk}) {
    tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kDiffers}}));
    EXPECT_TRUE(LookAfter(seconds(0)));
    tokens_.Probed(Probes({{PromptKind::kChat, later}}));
    EXPECT_FALSE(LookAfter(seconds(0)));
  }
}

TEST_F(TokenAgreementTest, KeepsTheEvidenceOfAProbeWhileRequestsDiffer) {
  tokens_.Probed(Probes({{PromptKind::kChat, ParityVerdict::kDiffers}}));
  const auto difference = Differ(kEnough);
  ASSERT_TRUE(difference);
  EXPECT_TRUE(difference->probed);
  EXPECT_EQ(difference->position, 3u);
}

TEST_F(TokenAgreementTest, KeepsWhatProbesShowedAfterAReset) {
  tokens_.Probed(Probes(
      {{PromptKind::kText, ParityVerdict::kAgrees}, {PromptKind::kChat, ParityVerdict::kDiffers}}));
  tokens_.Reset();
  EXPECT_TRUE(tokens_.Differs(PromptKind::kChat));
  EXPECT_FALSE(tokens_.Differs(PromptKind::kText));
}

TEST(FirstDifference, IsWhereTheTokensPartOrOneOfThemEnds) {
  const Tokens ours = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_FALSE(FirstDifference(ours, ours));
  const auto other = FirstDifference(ours, Tokens{1, 2, 9, 4});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->position, 2u);
  EXPECT_EQ(other->ours, 3u);
  EXPECT_EQ(other->theirs, 9u);
  const auto longer = FirstDifference(std::span(ours).first(2), ours);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->position, 2u);
  EXPECT_FALSE(longer->ours);
  EXPECT_EQ(longer->theirs, 3u);
  Tokens with_bos = ours;
  with_bos.insert(with_bos.begin(), 99);
  EXPECT_EQ(FirstDifference(ours, with_bos)->likely, Likely::kExtraFirst);
  EXPECT_TRUE(FirstDifference(ours, Tokens()));
}

TEST_F(TokenAgreementTest, HasRoomForSoManyAndLetsTheOldestGo) {
  const uint64_t oldest = Answer(2);
  for (size_t i = 1; i < TokenAgreement::kMost; ++i) {
    EXPECT_TRUE(tokens_.MayExpect(now_));
    Send(2, 1);
  }
  EXPECT_FALSE(tokens_.MayExpect(now_));
  now_ += TokenAgreement::kPatience + seconds(1);
  EXPECT_TRUE(tokens_.MayExpect(now_));
  Send(2, 1);
  tokens_.FirstByte(oldest, now_);
  EXPECT_EQ(Store(Prompt(2)), std::nullopt) << "the oldest is not noted any more";
}

TEST_F(TokenAgreementTest, ForgetsRequestsOfLongAgo) {
  Send(2);
  LookAfter(TokenAgreement::kRemembered);
  EXPECT_TRUE(tokens_.expects());
  LookAfter(milliseconds(1));
  EXPECT_FALSE(tokens_.expects());
}

}  // namespace
}  // namespace fathom
