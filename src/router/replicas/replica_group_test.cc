#include "router/replicas/replica_group.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Keeps what is sent.
class KeepingCarrier final : public Carrier {
 public:
  void Start(OnMessage /*on_message*/) override {}
  void Stop() override {}
  bool Publish(std::string_view message) override {
    if (down) return false;
    sent.emplace_back(message);
    return true;
  }
  bool Send(std::string_view replica, std::string_view message) override {
    to.emplace_back(replica);
    return Publish(message);
  }
  Status status() const override { return {}; }

  bool down = false;
  std::deque<std::string> sent;
  std::vector<std::string> to;
};

class NotingGuest final : public ReplicaGuest {
 public:
  void Heard(const ReplicaMessage& message, TimePoint) override {
    notes.push_back("heard " + message.origin + " " + std::to_string(message.content.index()));
  }
  void Tick(TimePoint) override { ++ticks; }
  void Joined(const std::string& origin, TimePoint) override {
    notes.push_back("joined " + origin);
  }
  void Left(const std::string& origin, TimePoint) override { notes.push_back("left " + origin); }

  std::vector<std::string> notes;
  int ticks = 0;
};

struct GroupRig {
  GroupRig(const std::string& id, uint64_t incarnation, const MessageSeal* seal)
      : group({.self = {.group = "g", .id = id, .incarnation = incarnation},
               .timeout = seconds(5),
               .seed = incarnation},
              seal, carrier, [this] { return presence; }) {
    group.Invite(guest);
  }
  uint64_t Dropped(ReplicaDrop why) const {
    return group.counts().dropped[static_cast<size_t>(why)];
  }

  KeepingCarrier carrier;
  NotingGuest guest;
  ReplicaPresence presence;
  ReplicaGroup group;
};

class ReplicaGroupTest : public testing::Test {
 protected:
  using Notes = std::vector<std::string>;

  // Everything that was sent reaches all, our own included.
  void Exchange(const std::vector<GroupRig*>& rigs) {
    for (bool more = true; more;) {
      more = false;
      for (GroupRig* const from : rigs) {
        while (!from->carrier.sent.empty()) {
          const std::string bytes = from->carrier.sent.front();
          from->carrier.sent.pop_front();
          for (GroupRig* const rig : rigs) rig->group.Received(bytes, now_);
          more = true;
        }
      }
    }
  }
  void Pass(Duration time, const std::vector<GroupRig*>& rigs) {
    for (Duration passed{}; passed < time; passed += milliseconds(50)) {
      now_ += milliseconds(50);
      for (GroupRig* const rig : rigs) rig->group.Tick(now_);
      Exchange(rigs);
    }
  }

  const MessageSeal seal_{"key"};
  TimePoint now_{seconds(1000)};
  GroupRig a_{"a", 1, &seal_};
  GroupRig b_{"b", 2, &seal_};
};

TEST_F(ReplicaGroupTest, TellsItsPresenceEverySecond) {
  for (int i = 0; i < 10 * 20; ++i) {
    a_.group.Tick(now_);
    now_ += milliseconds(50);
  }
  EXPECT_EQ(a_.group.counts().sent, 10u);
  EXPECT_EQ(a_.guest.ticks, 200);
  size_t bytes = 0;
  for (const std::string& message : a_.carrier.sent) bytes += message.size();
  EXPECT_EQ(a_.group.counts().sent_bytes, bytes);
}

TEST_F(ReplicaGroupTest, PeersFindEachOtherAndHearTheirPresence) {
  a_.presence.url = "http://a";
  a_.presence.informed = true;
  Pass(milliseconds(200), {&a_, &b_});
  ASSERT_EQ(b_.group.peers().size(), 1u);
  const ReplicaPeer& peer = b_.group.peers().find("a")->second;
  EXPECT_EQ(peer.incarnation, 1u);
  EXPECT_EQ(peer.presence.url, "http://a");
  EXPECT_TRUE(peer.presence.informed);
  EXPECT_EQ(peer.presence.interval_ms, 1000u);
  EXPECT_EQ(a_.group.peers().size(), 1u) << "its own messages make it no peer";
  ASSERT_GE(b_.guest.notes.size(), 2u);
  EXPECT_EQ(b_.guest.notes[0], "joined a");
  EXPECT_EQ(b_.guest.notes[1], "heard a 1");
}

TEST_F(ReplicaGroupTest, GuestsHearWhatPeersTell) {
  Pass(seconds(1), {&a_, &b_});
  b_.guest.notes.clear();
  a_.group.Tell(Gauges{});
  a_.group.TellOne("b", Ask{.to = "b", .question = 1, .about = "ranks", .rank = {}, .from = 0});
  Exchange({&a_, &b_});
  EXPECT_EQ(b_.guest.notes, (Notes{"heard a 2", "heard a 9"}));
  EXPECT_EQ(a_.carrier.to.back(), "b");
  EXPECT_EQ(a_.group.id(), "a");
}

TEST_F(ReplicaGroupTest, ASilentPeerIsForgotten) {
  Pass(seconds(1), {&a_, &b_});
  const TimePoint last = b_.group.peers().find("a")->second.heard;
  b_.guest.notes.clear();
  while (now_ - last <= seconds(5)) {
    EXPECT_TRUE(b_.group.peers().contains("a"));
    Pass(milliseconds(50), {&b_});
  }
  EXPECT_FALSE(b_.group.peers().contains("a"));
  EXPECT_EQ(b_.guest.notes, Notes{"left a"});
  // It comes back as it was.
  Pass(milliseconds(1500), {&a_, &b_});
  EXPECT_TRUE(b_.group.peers().contains("a"));
  EXPECT_EQ(b_.guest.notes[1], "joined a");
}

TEST_F(ReplicaGroupTest, AGoodbyeIsHeardAtOnceAndIsFinal) {
  Pass(seconds(1), {&a_, &b_});
  b_.guest.notes.clear();
  a_.group.Tell(Gauges{});
  const std::string late = a_.carrier.sent.front();
  a_.carrier.sent.pop_front();
  a_.group.Goodbye();
  Exchange({&a_, &b_});
  EXPECT_EQ(b_.guest.notes, Notes{"left a"});
  b_.group.Received(late, now_);
  Pass(seconds(3), {&a_, &b_});
  EXPECT_EQ(b_.guest.notes, Notes{"left a"}) << "it does not answer, though it still runs";
  EXPECT_TRUE(b_.group.peers().empty());
  EXPECT_TRUE(a_.group.peers().contains("b")) << "it still hears the others";
}

TEST_F(ReplicaGroupTest, AnotherProcessOfANameLeavesAndJoins) {
  Pass(seconds(1), {&a_, &b_});
  b_.guest.notes.clear();
  GroupRig next("a", 3, &seal_);
  Pass(seconds(3), {&next, &b_});
  ASSERT_GE(b_.guest.notes.size(), 2u);
  EXPECT_EQ(b_.guest.notes[0], "left a");
  EXPECT_EQ(b_.guest.notes[1], "joined a");
  EXPECT_EQ(b_.group.peers().find("a")->second.incarnation, 3u);
  EXPECT_EQ(b_.group.conflicts(), 0u);
}

TEST_F(ReplicaGroupTest, TwoOfOneNameAreAConflictForAll) {
  GroupRig twin("a", 3, &seal_);
  Pass(seconds(10), {&a_, &b_, &twin});
  EXPECT_GT(b_.group.conflicts(), 0u);
  EXPECT_GT(a_.group.conflicts(), 0u);
  EXPECT_GT(twin.group.conflicts(), 0u);
  EXPECT_EQ(b_.group.peers().size(), 1u);
  EXPECT_FALSE(a_.group.peers().contains("a"));
  EXPECT_EQ(std::ranges::count(b_.guest.notes, "joined a"), 1);
}

TEST_F(ReplicaGroupTest, CountsWhatItDrops) {
  const MessageSeal other_seal("another");
  GroupRig stranger("c", 5, &other_seal);
  Pass(milliseconds(2500), {&a_, &b_, &stranger});
  EXPECT_EQ(b_.Dropped(ReplicaDrop::kKey), 3u);
  EXPECT_GE(b_.Dropped(ReplicaDrop::kUnproven), 1u);
  a_.group.Tell(std::monostate{});
  Exchange({&a_, &b_});
  EXPECT_EQ(b_.Dropped(ReplicaDrop::kUnknown), 1u);
  EXPECT_EQ(b_.group.peers().find("a")->second.heard, now_);
  const uint64_t sent = a_.group.counts().sent;
  a_.group.Tell(Piece{.to = "b",
                      .question = 1,
                      .piece = 0,
                      .pieces = 1,
                      .bytes = std::string(ReplicaMessage::kMostBytes, 'x')});
  EXPECT_EQ(a_.Dropped(ReplicaDrop::kTooLong), 1u);
  EXPECT_EQ(a_.group.counts().sent, sent);
  EXPECT_TRUE(a_.carrier.sent.empty());
}

TEST_F(ReplicaGroupTest, CountsBytesOfOthersOnly) {
  Pass(seconds(1), {&a_, &b_});
  EXPECT_EQ(a_.group.counts().received_bytes, b_.group.counts().sent_bytes);
  EXPECT_EQ(b_.group.counts().received_bytes, a_.group.counts().sent_bytes);
}

TEST_F(ReplicaGroupTest, ACarrierThatIsDownLosesMessagesAndNothingElse) {
  a_.carrier.down = true;
  Pass(seconds(3), {&a_, &b_});
  EXPECT_EQ(a_.group.counts().sent, 0u);
  EXPECT_TRUE(b_.group.peers().empty());
  a_.carrier.down = false;
  Pass(milliseconds(1500), {&a_, &b_});
  EXPECT_TRUE(a_.group.peers().contains("b"));
  EXPECT_TRUE(b_.group.peers().contains("a"));
}

TEST_F(ReplicaGroupTest, SixtyFourReplicasStartAtOnce) {
  std::vector<std::unique_ptr<GroupRig>> rigs;
  std::vector<GroupRig*> all;
  for (uint64_t i = 0; i < OriginGate::kMostOrigins; ++i) {
    rigs.push_back(std::make_unique<GroupRig>("r" + std::to_string(i), 100 + i, &seal_));
    all.push_back(rigs.back().get());
  }
  Pass(milliseconds(200), all);
  for (const GroupRig* const rig : all) {
    EXPECT_EQ(rig->group.peers().size(), OriginGate::kMostOrigins - 1);
    EXPECT_LE(rig->group.counts().sent, 2 * OriginGate::kMostOrigins + 4);
  }
}

}  // namespace
}  // namespace fathom
