#include "router/replicas/origin_gate.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTimeout = seconds(5);

ReplicaPresence Here() { return {.interval_ms = 1000, .url = {}, .models = {}, .informed = false}; }
ReplicaPresence Leaving() { return {.interval_ms = 0, .url = {}, .models = {}, .informed = false}; }

// One process, and what its gate has sent.
struct GateRig {
  GateRig(std::string id, uint64_t incarnation, const MessageSeal* seal, std::string group = "g")
      : gate({.group = std::move(group), .id = std::move(id), .incarnation = incarnation}, seal,
             incarnation * 7919, [this](const std::string& to, ReplicaMessage::Content content) {
               answers.push_back(Say(content));
               contents.push_back(std::move(content));
               receivers.push_back(to);
             }) {
    gate.OnChange(
        [this](const std::string& origin, TimePoint) { changes.push_back("+" + origin); },
        [this](const std::string& origin, TimePoint) { changes.push_back("-" + origin); });
  }

  std::string Say(ReplicaMessage::Content content) { return *gate.Seal(std::move(content)); }
  std::string Next() {
    std::string message = answers.front();
    answers.pop_front();
    return message;
  }
  size_t Challenges() const {
    return std::ranges::count_if(
        contents, [](const auto& content) { return std::holds_alternative<Challenge>(content); });
  }

  std::deque<std::string> answers;
  std::vector<ReplicaMessage::Content> contents;
  std::vector<std::string> receivers;
  std::vector<std::string> changes;
  OriginGate gate;
};

class OriginGateTest : public testing::Test {
 protected:
  using Changes = std::vector<std::string>;

  // `to` opens it: "" if the message is believed, "-" if the gate keeps it, or why it was dropped.
  std::string Open(GateRig& to, std::string_view bytes) {
    const auto opened = to.gate.Open(bytes, now_);
    if (!opened) return std::string(Name(opened.error()));
    return opened->message ? "" : "-";
  }
  // `to` asks, `from` answers.
  void Prove(GateRig& from, GateRig& to) {
    EXPECT_EQ(Open(to, from.Say(Here())), "unproven");
    ASSERT_EQ(to.answers.size(), 1u);
    Open(from, to.Next());
    ASSERT_FALSE(from.answers.empty());
    EXPECT_EQ(Open(to, from.Next()), "-");
    from.answers.clear();
  }

  const MessageSeal seal_{"key"};
  TimePoint now_{seconds(1000)};
  GateRig a_{"a", 1, &seal_};
  GateRig b_{"b", 2, &seal_};
};

TEST_F(OriginGateTest, BelievesAnOriginFromItsProofOn) {
  const std::string before = a_.Say(Here());
  Prove(a_, b_);
  EXPECT_EQ(b_.changes, Changes{"+a"});
  EXPECT_EQ(Open(b_, a_.Say(Here())), "");
  EXPECT_EQ(Open(b_, before), "old");
  EXPECT_EQ(b_.receivers, std::vector<std::string>{"a"});
}

TEST_F(OriginGateTest, TheAskerIsAskedBack) {
  EXPECT_EQ(Open(b_, a_.Say(Here())), "unproven");
  EXPECT_EQ(Open(a_, b_.Next()), "unproven");
  ASSERT_EQ(a_.answers.size(), 2u) << "a proof, and a challenge";
  Open(b_, a_.Next());
  Open(b_, a_.Next());
  Open(a_, b_.Next());
  EXPECT_EQ(a_.changes, Changes{"+b"});
  EXPECT_EQ(b_.changes, Changes{"+a"});
}

TEST_F(OriginGateTest, SaysWhyAMessageIsDropped) {
  const MessageSeal other_seal("another key");
  GateRig other_key("a", 1, &other_seal);
  GateRig open_group("a", 1, nullptr);
  GateRig other_group("a", 1, &seal_, "h");
  EXPECT_EQ(Open(b_, other_key.Say(Here())), "key");
  EXPECT_EQ(Open(b_, open_group.Say(Here())), "key");
  EXPECT_EQ(Open(b_, ""), "key");
  EXPECT_EQ(Open(b_, other_group.Say(Here())), "group");
  std::string garbage = "garbage";
  seal_.Close(garbage);
  EXPECT_EQ(Open(b_, garbage), "malformed");
  std::string version = Encode({.group = "g", .origin = "a", .incarnation = 1, .number = 1});
  version[8] = 2;  // the major version
  seal_.Close(version);
  EXPECT_EQ(Open(b_, version), "version");
  EXPECT_TRUE(b_.answers.empty());
}

TEST_F(OriginGateTest, AMessageThatIsTooLongIsNeitherSentNorOpened) {
  EXPECT_FALSE(a_.gate.Seal(Piece{.to = "b",
                                  .question = 1,
                                  .piece = 0,
                                  .pieces = 1,
                                  .bytes = std::string(ReplicaMessage::kMostBytes, 'x')}));
  std::string longest(ReplicaMessage::kMostBytes, 'x');
  EXPECT_EQ(Open(b_, longest + std::string(MessageSeal::kTag, 'x')), "key");
  EXPECT_EQ(Open(b_, longest + std::string(MessageSeal::kTag + 1, 'x')), "malformed");
}

TEST_F(OriginGateTest, OurOwnMessagesComeBack) {
  const auto opened = a_.gate.Open(a_.Say(Here()), now_);
  ASSERT_TRUE(opened.has_value());
  EXPECT_TRUE(opened->own);
  EXPECT_TRUE(a_.answers.empty());
}

TEST_F(OriginGateTest, EveryMessageCountsOnce) {
  Prove(a_, b_);
  const std::string first = a_.Say(Here());
  const std::string second = a_.Say(Here());
  EXPECT_EQ(Open(b_, second), "");
  EXPECT_EQ(Open(b_, second), "old");
  EXPECT_EQ(Open(b_, first), "") << "overtaken";
  EXPECT_EQ(Open(b_, first), "old");
}

TEST_F(OriginGateTest, TheWindowMovesWithTheNewestNumber) {
  Prove(a_, b_);
  std::vector<std::string> all;
  for (size_t i = 0; i < 3 * OriginGate::kWindow; ++i) all.push_back(a_.Say(Here()));
  const auto open = [&](size_t i) { return Open(b_, all[i]); };
  constexpr size_t kWindow = OriginGate::kWindow;
  EXPECT_EQ(open(10), "");
  EXPECT_EQ(open(kWindow + 9), "");
  EXPECT_EQ(open(9), "old");
  EXPECT_EQ(open(10), "old");
  EXPECT_EQ(open(11), "");
  EXPECT_EQ(open(11), "old");
  EXPECT_EQ(open(3 * kWindow - 1), "") << "far ahead";
  EXPECT_EQ(open(2 * kWindow - 1), "old");
  EXPECT_EQ(open(2 * kWindow), "");
  for (size_t i = 2 * kWindow + 1; i + 1 < 3 * kWindow; ++i) {
    EXPECT_EQ(open(i), "");
    EXPECT_EQ(open(i), "old");
  }
}

TEST_F(OriginGateTest, AnEarlierProcessIsNeverBelievedAgain) {
  std::vector<std::string> kept;
  // Everything that the first process has ever said, its proof too.
  kept.push_back(a_.Say(Here()));
  Open(b_, kept.back());
  Open(a_, b_.Next());
  for (const std::string& answer : a_.answers) {
    kept.push_back(answer);
    Open(b_, answer);
  }
  kept.push_back(a_.Say(Here()));
  EXPECT_EQ(Open(b_, kept.back()), "");
  now_ += kTimeout + seconds(1);
  b_.gate.Expire(now_, kTimeout);
  EXPECT_EQ(b_.changes, (Changes{"+a", "-a"}));
  for (int round = 0; round < 20; ++round) {
    now_ += seconds(1);
    for (const std::string& message : kept) EXPECT_NE(Open(b_, message), "");
    b_.gate.Expire(now_, kTimeout);
  }
  EXPECT_EQ(b_.changes, (Changes{"+a", "-a"}));
  EXPECT_TRUE(b_.gate.origins().empty());
}

TEST_F(OriginGateTest, MessagesOfAnEarlierProcessDoNotDisturbTheLivingOne) {
  std::vector<std::string> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(a_.Say(Here()));
  GateRig living("a", 3, &seal_);
  // The challenge of the living one stays while old messages pour in.
  EXPECT_EQ(Open(b_, living.Say(Here())), "unproven");
  const std::string challenge = b_.Next();
  for (const std::string& message : kept) Open(b_, message);
  Open(living, challenge);
  Open(b_, living.Next());
  EXPECT_EQ(b_.changes, Changes{"+a"});
  for (int round = 0; round < 20; ++round) {
    now_ += milliseconds(600);
    for (const std::string& message : kept) EXPECT_EQ(Open(b_, message), "unproven");
    EXPECT_EQ(Open(b_, living.Say(Here())), "");
  }
  EXPECT_EQ(b_.changes, Changes{"+a"});
  EXPECT_EQ(b_.gate.conflicts(), 0u);
}

TEST_F(OriginGateTest, AnotherProcessTakesTheNameWhenTheFirstIsSilent) {
  Prove(a_, b_);
  EXPECT_EQ(Open(b_, a_.Say(Here())), "");
  GateRig next("a", 3, &seal_);
  now_ += milliseconds(300);
  b_.answers.clear();
  for (int i = 0; i < 8; ++i) {
    Open(b_, next.Say(Here()));
    while (!b_.answers.empty()) Open(next, b_.Next());
    while (!next.answers.empty()) Open(b_, next.Next());
    now_ += milliseconds(300);
  }
  EXPECT_EQ(b_.changes, (Changes{"+a", "-a", "+a"}));
  EXPECT_EQ(b_.gate.origins().find("a")->second.incarnation, 3u);
  EXPECT_EQ(b_.gate.conflicts(), 0u) << "the first was never heard again";
}

TEST_F(OriginGateTest, TwoLivingProcessesOfOneNameDoNotPushEachOtherOut) {
  Prove(a_, b_);
  GateRig twin("a", 3, &seal_);
  for (int i = 0; i < 40; ++i) {
    now_ += milliseconds(250);
    EXPECT_EQ(Open(b_, a_.Say(Here())), "");
    EXPECT_EQ(Open(b_, twin.Say(Here())), "unproven");
    while (!b_.answers.empty()) Open(twin, b_.Next());
    while (!twin.answers.empty()) Open(b_, twin.Next());
  }
  EXPECT_EQ(b_.changes, Changes{"+a"});
  EXPECT_GT(b_.gate.conflicts(), 5u);
  EXPECT_LE(b_.gate.conflicts(), 21u) << "about one per kChallengeEvery";
}

TEST_F(OriginGateTest, AnotherProcessWithOurNameIsAConflictAndNoPeer) {
  GateRig twin("b", 3, &seal_);
  for (int i = 0; i < 10; ++i) {
    now_ += milliseconds(250);
    EXPECT_EQ(Open(b_, twin.Say(Here())), "unproven");
    while (!b_.answers.empty()) Open(twin, b_.Next());
    while (!twin.answers.empty()) Open(b_, twin.Next());
  }
  EXPECT_GE(b_.gate.conflicts(), 3u);
  EXPECT_TRUE(b_.changes.empty());
}

TEST_F(OriginGateTest, OldMessagesOfOurOwnNameAreNoConflict) {
  const std::string kept = GateRig("b", 3, &seal_).Say(Here());
  for (int i = 0; i < 10; ++i) {
    now_ += seconds(1);
    EXPECT_EQ(Open(b_, kept), "unproven");
  }
  EXPECT_EQ(b_.gate.conflicts(), 0u);
}

TEST_F(OriginGateTest, AGoodbyeIsFinal) {
  Prove(a_, b_);
  const std::string late = a_.Say(Here());
  const std::string goodbye = a_.Say(Leaving());
  EXPECT_EQ(Open(b_, goodbye), "-");
  EXPECT_EQ(b_.changes, (Changes{"+a", "-a"}));
  EXPECT_EQ(Open(b_, late), "unproven");
  EXPECT_EQ(Open(b_, goodbye), "unproven");
  EXPECT_TRUE(b_.gate.origins().empty());
  // Its successor needs no patience.
  GateRig next("a", 3, &seal_);
  b_.answers.clear();
  Prove(next, b_);
  EXPECT_EQ(b_.changes, (Changes{"+a", "-a", "+a"}));
  EXPECT_EQ(Open(b_, goodbye), "unproven");
  EXPECT_EQ(b_.gate.origins().size(), 1u) << "of the process that has left, not of this one";
}

TEST_F(OriginGateTest, AProofThatItsGoodbyeHasOvertakenComesTooLate) {
  EXPECT_EQ(Open(b_, a_.Say(Here())), "unproven");
  Open(a_, b_.Next());
  const std::string proof = a_.Next();
  EXPECT_EQ(Open(b_, a_.Say(Leaving())), "unproven");
  EXPECT_EQ(Open(b_, proof), "-");
  EXPECT_TRUE(b_.gate.origins().empty());
}

TEST_F(OriginGateTest, AChallengeIsRepeatedAndItsFirstAnswerCounts) {
  EXPECT_EQ(Open(b_, a_.Say(Here())), "unproven");
  const std::string first = b_.Next();
  EXPECT_EQ(Open(b_, a_.Say(Here())), "unproven");
  EXPECT_TRUE(b_.answers.empty()) << "asked just now";
  now_ += OriginGate::kChallengeEvery;
  EXPECT_EQ(Open(b_, a_.Say(Here())), "unproven");
  EXPECT_EQ(b_.answers.size(), 1u);
  // The way was longer than the pause.
  Open(a_, first);
  Open(b_, a_.Next());
  EXPECT_EQ(b_.changes, Changes{"+a"});
}

TEST_F(OriginGateTest, AProofThatWasHeldBackIsNone) {
  const std::string kept = a_.Say(Here());
  EXPECT_EQ(Open(b_, kept), "unproven");
  Open(a_, b_.Next());
  const std::string proof = a_.Next();
  // The challenge is repeated as long as its messages come.
  for (int i = 0; i < 10; ++i) {
    now_ += seconds(1);
    EXPECT_EQ(Open(b_, kept), "unproven");
    b_.gate.Expire(now_, kTimeout);
    if (i >= 3) {
      EXPECT_EQ(Open(b_, proof), "-");
    }
  }
  EXPECT_TRUE(b_.changes.empty());
}

TEST_F(OriginGateTest, AProofForAnotherReplicaOrAnotherChallengeIsNone) {
  EXPECT_EQ(Open(b_, a_.Say(Here())), "unproven");
  const auto challenge = std::get<Challenge>(b_.contents.back());
  EXPECT_EQ(Open(b_, a_.Say(Proof{.to = "c", .nonce = challenge.nonce})), "-");
  EXPECT_EQ(Open(b_, a_.Say(Proof{.to = "b", .nonce = challenge.nonce + 1})), "-");
  GateRig other("a", 3, &seal_);
  EXPECT_EQ(Open(b_, other.Say(Proof{.to = "b", .nonce = challenge.nonce})), "-");
  EXPECT_TRUE(b_.changes.empty());
  EXPECT_EQ(Open(b_, a_.Say(Proof{.to = "b", .nonce = challenge.nonce})), "-");
  EXPECT_EQ(b_.changes, Changes{"+a"});
}

TEST_F(OriginGateTest, AFloodOfOldMessagesIsNotAmplified) {
  std::vector<std::string> kept;
  for (uint64_t i = 0; i < 2 * OriginGate::kMostStrangers; ++i) {
    GateRig dead("dead-" + std::to_string(i), 1000 + i, &seal_);
    kept.push_back(dead.Say(Here()));
  }
  for (int round = 0; round < 100; ++round) {
    for (const std::string& message : kept) EXPECT_EQ(Open(b_, message), "unproven");
    now_ += milliseconds(10);
  }
  EXPECT_LE(b_.Challenges(), 2 * OriginGate::kMostStrangers) << "in one second";
  // A newcomer gets through when the first of them has had its time.
  b_.answers.clear();
  for (int i = 0; i < 10 && b_.changes.empty(); ++i) {
    now_ += milliseconds(500);
    Open(b_, a_.Say(Here()));
    while (!b_.answers.empty()) Open(a_, b_.Next());
    while (!a_.answers.empty()) Open(b_, a_.Next());
    for (const std::string& message : kept) Open(b_, message);
  }
  EXPECT_EQ(b_.changes, Changes{"+a"});
}

TEST_F(OriginGateTest, OldChallengesAreAnsweredAFewTimesOnly) {
  GateRig dead("dead", 9, &seal_);
  const std::string kept = dead.Say(Challenge{.to = "b", .incarnation = 2, .nonce = 1});
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(Open(b_, kept), "unproven");
  EXPECT_LE(b_.contents.size(), 2u) << "a proof, and a challenge";
  now_ += seconds(1);
  b_.answers.clear();
  Prove(b_, a_);
}

TEST_F(OriginGateTest, OldChallengesDoNotKeepANewcomerWaiting) {
  GateRig dead("dead", 9, &seal_);
  const std::string kept = dead.Say(Challenge{.to = "b", .incarnation = 2, .nonce = 1});
  for (int i = 0; i < 5000; ++i) Open(b_, kept);
  b_.answers.clear();
  Prove(b_, a_);
}

// Whoever holds messages back gets the same question answered several times.
TEST_F(OriginGateTest, CopiesOfAProofThatWereHeldBackProveNothingLater) {
  Prove(a_, b_);
  now_ += OriginGate::kProofHolds;
  std::vector<std::string> held;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Open(b_, a_.Say(Here())), "");
    a_.contents.clear();
    while (!b_.answers.empty()) Open(a_, b_.Next());
    for (const ReplicaMessage::Content& content : a_.contents) {
      const std::string answer = a_.Next();
      if (std::holds_alternative<Proof>(content)) held.push_back(answer);
    }
    now_ += OriginGate::kChallengeEvery;
  }
  ASSERT_EQ(held.size(), 3u);
  Open(b_, held[0]);
  const TimePoint proven = b_.gate.origins().find("a")->second.proven;
  EXPECT_EQ(proven, now_);
  now_ += seconds(20);
  Open(b_, held[1]);
  Open(b_, held[2]);
  EXPECT_EQ(b_.gate.origins().find("a")->second.proven, proven);
}

TEST_F(OriginGateTest, AMessageThatWasOvertakenIsNoSignOfLife) {
  Prove(a_, b_);
  std::vector<std::string> held;
  for (int i = 0; i < 10; ++i) held.push_back(a_.Say(Here()));
  EXPECT_EQ(Open(b_, a_.Say(Here())), "");
  for (const std::string& message : held) {
    now_ += seconds(1);
    Open(b_, message);
    b_.gate.Expire(now_, kTimeout);
  }
  EXPECT_EQ(b_.changes, (Changes{"+a", "-a"}));
}

TEST_F(OriginGateTest, MessagesThatWereHeldBackKeepADeadOriginForAWhileOnly) {
  Prove(a_, b_);
  std::vector<std::string> held;
  for (int i = 0; i < 100; ++i) held.push_back(a_.Say(Here()));
  const TimePoint died = now_;
  for (const std::string& message : held) {
    now_ += seconds(1);
    Open(b_, message);
    b_.gate.Expire(now_, kTimeout);
    if (!b_.gate.origins().contains("a")) break;
  }
  EXPECT_FALSE(b_.gate.origins().contains("a"));
  EXPECT_LE(now_ - died, 2 * OriginGate::kProofHolds + seconds(1));
}

TEST_F(OriginGateTest, ALivingOriginProvesItselfNowAndThen) {
  Prove(a_, b_);
  b_.contents.clear();
  for (int i = 0; i < 300; ++i) {
    now_ += seconds(1);
    EXPECT_EQ(Open(b_, a_.Say(Here())), "");
    // Most answers are lost.
    while (!b_.answers.empty()) Open(a_, b_.Next());
    if (i % 5 != 0) a_.answers.clear();
    while (!a_.answers.empty()) Open(b_, a_.Next());
    b_.gate.Expire(now_, kTimeout);
  }
  EXPECT_EQ(b_.changes, Changes{"+a"});
  EXPECT_GE(b_.Challenges(), 9u);
  EXPECT_LE(b_.Challenges(), 60u);
}

TEST_F(OriginGateTest, AKnownAskerIsAlwaysAnsweredButOnlyOnce) {
  Prove(a_, b_);
  b_.contents.clear();
  const std::string question = a_.Say(Challenge{.to = "b", .incarnation = 2, .nonce = 1});
  EXPECT_EQ(Open(b_, question), "-");
  EXPECT_EQ(Open(b_, question), "old");
  ASSERT_EQ(b_.contents.size(), 1u);
  EXPECT_EQ(std::get<Proof>(b_.contents[0]), (Proof{.to = "a", .nonce = 1}));
  EXPECT_EQ(Open(b_, a_.Say(Challenge{.to = "c", .incarnation = 2, .nonce = 1})), "-");
  EXPECT_EQ(Open(b_, a_.Say(Challenge{.to = "b", .incarnation = 1, .nonce = 1})), "-");
  EXPECT_EQ(b_.contents.size(), 1u);
}

TEST_F(OriginGateTest, AFullGroupTakesNobodyElse) {
  std::vector<std::unique_ptr<GateRig>> others;
  for (uint64_t i = 0; i < OriginGate::kMostOrigins; ++i) {
    others.push_back(std::make_unique<GateRig>("o" + std::to_string(i), 100 + i, &seal_));
    Prove(*others.back(), b_);
  }
  EXPECT_EQ(Open(b_, a_.Say(Here())), "origins");
  EXPECT_TRUE(b_.answers.empty());
  // Another process of one of these is no further origin.
  now_ += OriginGate::kHolds;
  GateRig next("o3", 3, &seal_);
  Prove(next, b_);
  EXPECT_EQ(b_.gate.origins().size(), OriginGate::kMostOrigins);
  now_ += kTimeout + seconds(1);
  b_.gate.Expire(now_, kTimeout);
  EXPECT_TRUE(b_.gate.origins().empty());
  Prove(a_, b_);
}

TEST_F(OriginGateTest, AKindOfANewerVersionIsBelievedAndHasNoContent) {
  Prove(a_, b_);
  now_ += seconds(3);
  const std::string unknown = a_.Say(std::monostate{});
  const auto opened = b_.gate.Open(unknown, now_);
  ASSERT_TRUE(opened.has_value() && opened->message.has_value());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(opened->message->content));
  now_ += seconds(3);
  b_.gate.Expire(now_, kTimeout);
  EXPECT_EQ(b_.changes, Changes{"+a"}) << "it was heard";
}

TEST_F(OriginGateTest, AnOpenGroupNeedsNoKey) {
  GateRig one("one", 11, nullptr);
  GateRig two("two", 12, nullptr);
  Prove(one, two);
  EXPECT_EQ(Open(two, one.Say(Here())), "");
}

}  // namespace
}  // namespace fathom
