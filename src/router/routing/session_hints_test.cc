#include "router/routing/session_hints.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kHintStart = TimePoint(std::chrono::hours(1));

Result<std::vector<HintKind>> Parsed(std::vector<std::string> names) {
  return ParseSessionHints(names);
}

TEST(SessionHints, AreListedInTheOrderInWhichTheyCount) {
  const std::vector<HintKind> expected = {HintKind::kUser, HintKind::kCodexThread,
                                          HintKind::kClaudeCodeSession};
  EXPECT_EQ(*Parsed({"user", "thread-id", "x-claude-code-session-id"}), expected);
  EXPECT_EQ(*Parsed({"user", "thread-id", "user", "x-claude-code-session-id"}), expected);
  EXPECT_TRUE(Parsed({"none"})->empty());
  EXPECT_TRUE(Parsed({})->empty());
}

TEST(SessionHints, HaveTheNamesByWhichTheyAreListed) {
  for (size_t i = 0; i < kHintKinds; ++i) {
    const auto kind = static_cast<HintKind>(i);
    const std::vector<HintKind> alone = {kind};
    EXPECT_EQ(*Parsed({std::string(Name(kind))}), alone) << Name(kind);
  }
}

TEST(SessionHints, RefuseANameThatIsNone) {
  EXPECT_EQ(Parsed({"user", "thread_id"}).error().what,
            "session-hints: 'thread_id' is not a session hint; did you mean 'thread-id'?");
  EXPECT_EQ(Parsed({"cookie"}).error().what, "session-hints: 'cookie' is not a session hint");
  EXPECT_FALSE(Parsed({"none", "user"})) << "one or the other";
}

TEST(SessionHints, DoNotCollideAcrossKindsModelsPartsAndPrompts) {
  const SessionHints hints(minutes(1), 7);
  const SessionHints::About about{
      .kind = HintKind::kUser, .value = "v", .part = "", .model = "m", .has_prompt = true};
  std::set<uint64_t> keys = {hints.KeyOf(about)};
  const auto differs = [&](auto change) {
    SessionHints::About other = about;
    change(other);
    return keys.insert(hints.KeyOf(other)).second;
  };
  EXPECT_FALSE(differs([](auto&) {}));
  EXPECT_TRUE(differs([](auto& o) { o.kind = HintKind::kCodexThread; }));
  EXPECT_TRUE(differs([](auto& o) { o.value = "w"; }));
  EXPECT_TRUE(differs([](auto& o) { o.part = "agent"; }));
  EXPECT_TRUE(differs([](auto& o) { o.model = "n"; }));
  EXPECT_TRUE(differs([](auto& o) { o.has_prompt = false; }));
  EXPECT_TRUE(differs([](auto& o) { o.model = "", o.part = "m"; }));
  EXPECT_NE(hints.KeyOf(about), SessionHints(minutes(1), 8).KeyOf(about)) << "the secret counts";
}

TEST(SessionHints, RememberTheLastRankAndHowLongAgo) {
  SessionHints hints(minutes(10), 7);
  EXPECT_FALSE(hints.Find(1, kHintStart));
  hints.Remember(1, {.rank = {5, 2}, .life = 3, .mark = {9, 640}}, kHintStart);
  const auto found = hints.Find(1, kHintStart + seconds(4));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value.rank, (RankLabel{5, 2}));
  EXPECT_EQ(found->value.life, 3u);
  EXPECT_EQ(found->value.mark, (PromptMark{9, 640}));
  EXPECT_EQ(found->idle, seconds(4));
  hints.Remember(1, {.rank = {6, 0}}, kHintStart + seconds(5));
  EXPECT_EQ(hints.Find(1, kHintStart + seconds(5))->value.rank.worker, 6u);
  EXPECT_FALSE(hints.Find(1, kHintStart + minutes(10) + seconds(5)));
  EXPECT_FALSE(SessionHints(Duration::zero(), 7).enabled());
}

TEST(SessionHints, AreBounded) {
  SessionHints hints(std::chrono::hours(100), 7);
  const size_t sent = SessionHints::kMost + SessionHints::kMost / 8;
  for (uint64_t key = 0; key < sent; ++key) hints.Remember(key, {}, kHintStart + Duration(key));
  EXPECT_EQ(hints.size(), SessionHints::kMost);
  EXPECT_FALSE(hints.Find(0, kHintStart + Duration(sent))) << "the oldest are dropped";
  EXPECT_TRUE(hints.Find(sent - 1, kHintStart + Duration(sent)));
}

}  // namespace
}  // namespace fathom
