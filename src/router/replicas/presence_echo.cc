#include "router/replicas/presence_echo.h"

#include <algorithm>
#include <limits>

namespace fathom {
namespace {

uint32_t MillisecondsSince(TimePoint then, TimePoint now) {
  const auto ago = (now - then) / std::chrono::milliseconds(1);
  return static_cast<uint32_t>(std::clamp<int64_t>(ago, 0, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void PresenceEcho::Told(uint64_t number, TimePoint now) {
  sent_[next_] = {number, now};
  next_ = (next_ + 1) % kRemembered;
}

std::vector<ReplicaHearing> PresenceEcho::Hearings(const ReplicaPeers& peers, TimePoint now) {
  std::vector<ReplicaHearing> hearings;
  for (const auto& [id, peer] : peers) {
    if (peer.presence_number == 0) continue;
    hearings.push_back({.id = id,
                        .incarnation = peer.incarnation,
                        .number = peer.presence_number,
                        .ago_ms = MillisecondsSince(peer.presence_heard, now)});
  }
  return hearings;
}

void PresenceEcho::Heard(const ReplicaIdentity& self, const ReplicaMessage& message,
                         const ReplicaPresence& presence, ReplicaPeer& peer, TimePoint now) const {
  if (message.number < peer.presence_number) return;  // it was overtaken by a newer one
  peer.presence = presence;
  peer.presence_number = message.number;
  peer.presence_heard = now;
  const auto ours = std::ranges::find_if(presence.hears, [&](const ReplicaHearing& hearing) {
    return hearing.id == self.id && hearing.incarnation == self.incarnation;
  });
  peer.hears_us = ours != presence.hears.end();
  if (!peer.hears_us) return;
  peer.heard_us = now;
  const auto told = WhenTold(ours->number);
  if (!told) return;
  // Milliseconds are cut off at the other side, so up to one of them is too much.
  const Duration round = now - *told - std::chrono::milliseconds(ours->ago_ms);
  peer.round_trip = std::max(round, Duration(1));
}

std::optional<TimePoint> PresenceEcho::WhenTold(uint64_t number) const {
  const auto* const found = std::ranges::find(sent_, number, &Sent::number);
  if (number == 0 || found == sent_.end()) return std::nullopt;
  return found->when;
}

}  // namespace fathom
