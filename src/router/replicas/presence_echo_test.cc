#include "router/replicas/presence_echo.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::milliseconds;

constexpr TimePoint kStart{std::chrono::hours(5)};
const ReplicaIdentity kSelf{.group = "g", .id = "a", .incarnation = 7};

ReplicaMessage PresenceOf(uint64_t number) {
  return {.group = "g", .origin = "b", .incarnation = 9, .number = number, .content = {}};
}

TEST(PresenceEcho, TellsWhatWasHeard) {
  ReplicaPeers peers;
  peers["b"] = {.incarnation = 9, .presence_number = 4, .presence_heard = kStart};
  peers["c"] = {.incarnation = 1};  // it has joined, and told no presence yet
  const auto hearings = PresenceEcho::Hearings(peers, kStart + milliseconds(250));
  ASSERT_EQ(hearings.size(), 1u);
  EXPECT_EQ(hearings[0], (ReplicaHearing{.id = "b", .incarnation = 9, .number = 4, .ago_ms = 250}));
}

TEST(PresenceEcho, MeasuresTheRoundTripWithoutTheOthersClock) {
  PresenceEcho echo;
  echo.Told(3, kStart);
  ReplicaPeer peer;
  const ReplicaPresence presence{
      .hears = {{.id = "a", .incarnation = 7, .number = 3, .ago_ms = 400}}};
  echo.Heard(kSelf, PresenceOf(11), presence, peer, kStart + milliseconds(420));
  EXPECT_TRUE(peer.hears_us);
  EXPECT_EQ(peer.round_trip, milliseconds(20));
}

TEST(PresenceEcho, AnEarlierProcessOfOurNameIsNotUs) {
  PresenceEcho echo;
  echo.Told(3, kStart);
  ReplicaPeer peer;
  const ReplicaPresence presence{.hears = {{.id = "a", .incarnation = 6, .number = 3}}};
  echo.Heard(kSelf, PresenceOf(11), presence, peer, kStart);
  EXPECT_FALSE(peer.hears_us);
  EXPECT_EQ(peer.round_trip, Duration::zero());
}

TEST(PresenceEcho, APresenceThatWasOvertakenDoesNotCount) {
  PresenceEcho echo;
  ReplicaPeer peer;
  echo.Heard(kSelf, PresenceOf(12), {.workers = 5}, peer, kStart);
  echo.Heard(kSelf, PresenceOf(11), {.workers = 4}, peer, kStart);
  EXPECT_EQ(peer.presence.workers, 5u);
}

TEST(PresenceEcho, AVeryOldEchoHasNoRoundTrip) {
  PresenceEcho echo;
  for (uint64_t number = 1; number <= 100; ++number) echo.Told(number, kStart);
  ReplicaPeer peer;
  const ReplicaPresence presence{.hears = {{.id = "a", .incarnation = 7, .number = 2}}};
  echo.Heard(kSelf, PresenceOf(11), presence, peer, kStart);
  EXPECT_TRUE(peer.hears_us);
  EXPECT_EQ(peer.round_trip, Duration::zero());
}

}  // namespace
}  // namespace fathom
