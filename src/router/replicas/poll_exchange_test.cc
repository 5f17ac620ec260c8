#include "router/replicas/poll_exchange.h"

#include <gtest/gtest.h>

#include <memory>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerId kEngine{42};

// Replicas that hear each other at once, in virtual time.
class PollGroup {
 public:
  struct Member final : ReplicaVoice {
    Member(PollGroup& in, std::string name) : group(in), id_(std::move(name)) {}
    void Tell(ReplicaMessage::Content content) override {
      group.Spread(id_, std::get<PolledAnswer>(content));
    }
    bool TellOne(const std::string& to, ReplicaMessage::Content content) override {
      if (group.takes && !group.takes(to)) return false;
      group.Pass(id_, to, std::get<PolledAnswer>(content));
      if (group.twice) group.Pass(id_, to, std::get<PolledAnswer>(content));
      return true;
    }
    const ReplicaPeers& peers() const override { return peers_; }
    const std::string& id() const override { return id_; }

    PollGroup& group;
    const std::string id_;
    ReplicaPeers peers_;
    std::vector<PolledWord> heard;
    PollExchange exchange{*this,
                          [this](WorkerId, PolledWord word) { heard.push_back(std::move(word)); }};
    bool follows = true;  // the worker
    bool reaches = true;  // likewise
  };

  Member& Join(const std::string& name) {
    auto& member = members_[name] = std::make_unique<Member>(*this, name);
    for (auto& [other, peer] : members_) {
      if (other == name) continue;
      peer->peers_[name] = {};
      peer->exchange.Joined(name, now_);
      member->peers_[other] = {};
      member->exchange.Joined(other, now_);
    }
    return *member;
  }
  void Leave(const std::string& name) {
    members_.erase(name);
    for (auto& [other, peer] : members_) {
      peer->peers_.erase(name);
      peer->exchange.Left(name, now_);
    }
  }
  Member& operator[](const std::string& name) { return *members_.at(name); }

  // Those whose turn it was at the end.
  std::string Pass(Duration time) {
    std::string pollers;
    for (const TimePoint end = now_ + time; now_ < end;) {
      now_ += milliseconds(50);
      pollers.clear();
      for (auto& [name, member] : members_) {
        member->exchange.Tick(now_);
        if (!member->follows || !member->exchange.Mine(kEngine)) continue;
        pollers += name;
        if (member->reaches) {
          member->exchange.Polled(kEngine, {{1, {{0, 7}}}, "", true});
        } else {
          member->exchange.Rests(kEngine);
        }
      }
    }
    return pollers;
  }
  void Spread(const std::string& from, const PolledAnswer& told) {
    for (auto& [name, member] : members_) {
      if (name != from) Pass(from, name, told);
    }
  }
  void Pass(const std::string& from, const std::string& to, const PolledAnswer& told) {
    if (lose && lose(told)) return;
    ReplicaMessage message;
    message.origin = from;
    message.content = told;
    EXPECT_LE(Encode(message).size(), ReplicaMessage::kMostBytes);
    members_.at(to)->exchange.Heard(message, now_);
  }

  std::function<bool(const PolledAnswer&)> lose;
  std::function<bool(const std::string& to)> takes;  // a part of a long answer
  bool twice = false;                                // it comes

 private:
  TimePoint now_{seconds(1000)};
  std::map<std::string, std::unique_ptr<Member>> members_;
};

TEST(PollExchange, OneAloneListensFirstAndThenPolls) {
  PollGroup group;
  group.Join("a");
  EXPECT_EQ(group.Pass(seconds(1)), "");
  EXPECT_EQ(group.Pass(seconds(2)), "a");
  EXPECT_TRUE(group["a"].exchange.alone());
}

TEST(PollExchange, OneOfThreePollsAndAllAgree) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  EXPECT_EQ(group.Pass(seconds(1)), "");
  const std::string poller = group.Pass(seconds(9));
  ASSERT_EQ(poller.size(), 1u);
  EXPECT_EQ(group.Pass(seconds(60)), poller);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(group[name].exchange.Known(kEngine).has_value(), name != poller) << name;
  }
  EXPECT_EQ(group[poller].exchange.counts().polling, 1u);
}

TEST(PollExchange, TheNextOneTakesOverAtOnceWhenThePollerLeaves) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  group.Leave(first);
  const std::string second = group.Pass(milliseconds(200));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second, first);
}

TEST(PollExchange, ANewcomerListensAndThenTakesItsTurnIfItIsBeforeTheOthers) {
  PollGroup group;
  group.Join("a");
  ASSERT_EQ(group.Pass(seconds(5)), "a");
  for (const char* name : {"b", "c", "d", "e", "f"}) {
    group.Join(name);
    group.Pass(seconds(1));
    EXPECT_FALSE(group[name].exchange.Mine(kEngine));
    EXPECT_TRUE(group[name].exchange.Known(kEngine)) << name;
    EXPECT_EQ(group[name].exchange.Known(kEngine)->next.at(0), 7u);
    EXPECT_EQ(group.Pass(seconds(3)).size(), 1u);
  }
}

TEST(PollExchange, WhoDoesNotFollowTheWorkerIsNotWaitedForForEver) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  group.Leave(first);
  group.Join(first).follows = false;
  EXPECT_EQ(group.Pass(seconds(5)).size(), 1u);
}

TEST(PollExchange, WhoStopsPollingSaysSo) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  group[first].follows = false;
  group[first].exchange.Rests(kEngine);
  group.Pass(milliseconds(100));
  EXPECT_EQ(group.Pass(seconds(2)).size(), 1u);
}

// The answer to a poll that was on its way when the stream was stopped.
TEST(PollExchange, TheLastAnswerOfWhoHasEndedIsPassedOnAndTakesNoTurn) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  group[first].follows = false;
  group[first].exchange.Ends(kEngine);
  group[first].exchange.Polled(kEngine, {{1, {{0, 8}}}, "events", false});
  const std::string second = group.Pass(seconds(2));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second, first);
  const auto& heard = group[second].heard;
  EXPECT_TRUE(std::ranges::any_of(heard, [](const PolledWord& w) { return w.body == "events"; }));
  EXPECT_EQ(group[first].exchange.counts().polling, 0u);
}

TEST(PollExchange, WhoHasEndedWhileItFollowedIsNotGivenTheTurn) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  std::string other = first == "a" ? "b" : "a";
  group[other].follows = false;
  group[other].exchange.Ends(kEngine);
  group.Leave(first);
  const std::string second = group.Pass(seconds(4));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_NE(second, other);
  EXPECT_EQ(group[other].exchange.counts().polling, 0u);
}

TEST(PollExchange, AViewOfCountlessRanksIsBounded) {
  PollGroup group;
  for (const char* name : {"a", "b"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  const std::string other = first == "a" ? "b" : "a";
  for (uint32_t begin = 0; begin < 100; ++begin) {
    PolledAnswer told{.worker = kEngine.value(), .bytes = {}, .process = 1, .ranks = {}};
    for (uint32_t rank = 0; rank < 100; ++rank) told.ranks.push_back({begin * 100 + rank, 1});
    group.Spread(first, told);
  }
  group.Pass(milliseconds(100));
  ASSERT_TRUE(group[other].exchange.Known(kEngine));
  EXPECT_LE(group[other].exchange.Known(kEngine)->next.size(), 1024u);
}

TEST(PollExchange, WhoFallsSilentIsReplaced) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  group.lose = [](const PolledAnswer&) { return true; };
  EXPECT_EQ(group.Pass(PollExchange::kSilent + seconds(4)).size(), 3u);
  group.lose = nullptr;
  EXPECT_EQ(group.Pass(seconds(2)), first);
}

TEST(PollExchange, WhoCannotReachTheEngineIsReplaced) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string first = group.Pass(seconds(10));
  group[first].reaches = false;
  const std::string both = group.Pass(seconds(15));
  EXPECT_EQ(both.size(), 2u) << both;
  group[first].reaches = true;
  EXPECT_EQ(group.Pass(seconds(3)), first);
}

TEST(PollExchange, AnswersArePassedOnInParts) {
  PollGroup group;
  for (const char* name : {"a", "b"}) group.Join(name);
  group.Pass(seconds(10));
  std::string body(3 * PollExchange::kPart + 17, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i % 26);
  group["a"].exchange.Polled(kEngine, {{5, {{0, 9}, {3, 4}}}, body, true});
  group["a"].exchange.Polled(kEngine, {{6, {}}, "", false});
  group["b"].heard.clear();
  group.Pass(milliseconds(100));
  ASSERT_GE(group["b"].heard.size(), 2u);
  EXPECT_EQ(group["b"].heard[0], (PolledWord{{5, {{0, 9}, {3, 4}}}, body, true}));
  EXPECT_EQ(group["b"].heard[1], (PolledWord{{6, {}}, "", false}));
  EXPECT_EQ(group["a"].exchange.counts().told_bytes, body.size());
  EXPECT_EQ(group["b"].exchange.counts().heard, 1u);
}

// Of 60 parts; a tick is 50 ms here.
TEST(PollExchange, ALongAnswerWaitsForWhoIsSlow) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  const std::string poller = group.Pass(seconds(10));
  const std::string slow = poller == "a" ? "b" : "a";
  group[poller].follows = false;  // it polls no more than what follows
  int room = 0;
  group.takes = [&](const std::string& to) { return to != slow || room-- > 0; };
  const std::string body(60 * PollExchange::kPart, 'x');
  PollExchange& exchange = group[poller].exchange;
  exchange.Polled(kEngine, {{5, {{0, 9}}}, body, true});
  exchange.Polled(kEngine, {{5, {{0, 10}}}, "next", true});
  group[slow].heard.clear();
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(exchange.telling());
    room = 2;
    group.Pass(milliseconds(50));
  }
  EXPECT_FALSE(exchange.telling());
  std::vector<std::string> heard;
  EXPECT_GE(group[slow].heard.size(), 3u) << "its presence, too";
  for (const PolledWord& word : group[slow].heard) {
    if (!word.body.empty()) {
      heard.push_back(word.body);
    } else if (heard.empty()) {
      EXPECT_LT(word.view.process, 5u) << "what waits must not be missed";
    }
  }
  EXPECT_EQ(heard, (std::vector<std::string>{body, "next"}));
}

TEST(PollExchange, APartThatComesAgainIsNoOtherAnswer) {
  PollGroup group;
  for (const char* name : {"a", "b"}) group.Join(name);
  group.Pass(seconds(10));
  group.twice = true;
  group["a"].exchange.Polled(kEngine, {{5, {}}, std::string(2 * PollExchange::kPart, 'x'), true});
  group.Pass(seconds(5));
  EXPECT_EQ(group["b"].exchange.counts().heard, 1u);
  EXPECT_EQ(group["b"].exchange.counts().incomplete, 0u);
}

TEST(PollExchange, WhoTakesNothingIsNotWaitedForLong) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  group.Pass(seconds(10));
  group.takes = [](const std::string& to) { return to != "b"; };
  for (int i = 0; i < 2; ++i) {
    const std::string body(60 * PollExchange::kPart, 'x');
    group["a"].exchange.Polled(kEngine, {{5, {{0, 9}}}, body, true});
    group.Pass(i == 0 ? PollExchange::kPatience + 60 * PollExchange::kPartTime + seconds(1)
                      : seconds(1));
    EXPECT_FALSE(group["a"].exchange.telling()) << i;
  }
  EXPECT_EQ(group["c"].exchange.counts().heard, 2u);
  EXPECT_EQ(group["b"].exchange.counts().heard, 0u);
  group.takes = nullptr;
  const std::string body(2 * PollExchange::kPart, 'x');
  group["a"].exchange.Polled(kEngine, {{5, {{0, 10}}}, body, true});
  group.Pass(milliseconds(50));
  EXPECT_EQ(group["b"].exchange.counts().heard, 1u);
}

// It takes a part each 500 ms, so that one answer would hold up all others for half a minute.
TEST(PollExchange, WhoTakesPartsSlowlyHoldsUpNobodyForLong) {
  PollGroup group;
  for (const char* name : {"a", "b", "c"}) group.Join(name);
  group.Pass(seconds(10));
  int room = 0;
  group.takes = [&](const std::string& to) { return to != "b" || room-- > 0; };
  const std::string body(60 * PollExchange::kPart, 'x');
  group["a"].exchange.Polled(kEngine, {{5, {{0, 9}}}, body, true});
  for (int i = 0; i < 8; ++i) {
    room = 1;
    group.Pass(milliseconds(500));
  }
  EXPECT_FALSE(group["a"].exchange.telling());
  EXPECT_EQ(group["c"].exchange.counts().heard, 1u);
}

TEST(PollExchange, AnAnswerThatLacksAPartIsDropped) {
  PollGroup group;
  for (const char* name : {"a", "b"}) group.Join(name);
  group.Pass(seconds(10));
  group.lose = [](const PolledAnswer& told) { return told.parts > 1 && told.part == 1; };
  group["a"].exchange.Polled(kEngine, {{5, {}}, std::string(2 * PollExchange::kPart, 'x'), true});
  group.Pass(seconds(5));
  EXPECT_EQ(group["b"].exchange.counts().incomplete, 1u);
  EXPECT_EQ(group["b"].exchange.counts().heard, 0u);
}

TEST(PollExchange, WhatWaitsIsBounded) {
  PollGroup group;
  for (const char* name : {"a", "b"}) group.Join(name);
  group.Pass(seconds(10));
  PollExchange& exchange = group["a"].exchange;
  for (int i = 0; i < 4; ++i) {
    exchange.Polled(kEngine, {{5, {}}, std::string(PollExchange::kMostOutgoing / 3, 'x'), true});
  }
  EXPECT_EQ(exchange.counts().dropped, 1u);
  // Parts of which the others never come.
  ReplicaMessage message;
  message.origin = "a";
  for (uint64_t answer = 1; answer < 3 * PollExchange::kMostIncoming / PollExchange::kPart;
       ++answer) {
    message.content = PolledAnswer{.worker = 1,
                                   .part = 0,
                                   .parts = 2,
                                   .answer = answer,
                                   .bytes = std::string(PollExchange::kPart, 'x')};
    group["b"].exchange.Heard(message, TimePoint(seconds(1010)));
  }
  EXPECT_GE(group["b"].exchange.counts().incomplete,
            2 * PollExchange::kMostIncoming / PollExchange::kPart - 2);
}

TEST(PollExchange, MalformedPartsAreLeftOut) {
  PollGroup group;
  for (const char* name : {"a", "b"}) group.Join(name);
  ReplicaMessage message;
  message.origin = "a";
  for (const auto& [part, parts] : {std::pair{5u, 2u}, {0u, UINT32_MAX}, {0u, 2u}, {1u, 3u}}) {
    message.content = PolledAnswer{.worker = 1, .part = part, .parts = parts, .answer = 9};
    group["b"].exchange.Heard(message, TimePoint(seconds(1010)));
  }
  EXPECT_TRUE(group["b"].heard.empty());
}

TEST(PollExchange, AWorkerThatIsNoLongerAskedForIsForgotten) {
  PollGroup group;
  group.Join("a");
  group.Pass(seconds(5));
  group["a"].follows = false;
  group.Pass(PollExchange::kForgetAfter + seconds(1));
  EXPECT_EQ(group["a"].exchange.counts().polling, 0u);
}

}  // namespace
}  // namespace fathom
