#include "router/replicas/replica_group.h"

#include <utility>

namespace fathom {

ReplicaGroup::ReplicaGroup(ReplicaGroupOptions options, const MessageSeal* seal, Carrier& carrier,
                           std::function<ReplicaPresence()> describe)
    : options_(std::move(options)),
      carrier_(carrier),
      describe_(std::move(describe)),
      gate_(options_.self, seal, options_.seed,
            [this](const std::string& to, ReplicaMessage::Content content) {
              Answer(to, std::move(content));
            }) {
  gate_.OnChange([this](const std::string& origin, TimePoint now) { Come(origin, now); },
                 [this](const std::string& origin, TimePoint now) { Gone(origin, now); });
}

void ReplicaGroup::Received(std::string_view bytes, TimePoint now) {
  const auto opened = gate_.Open(bytes, now);
  if (opened && opened->own) return;
  counts_.received_bytes += bytes.size();
  if (!opened) return Drop(opened.error());
  if (opened->message) Hear(*opened->message, now);
}

void ReplicaGroup::Hear(const ReplicaMessage& message, TimePoint now) {
  ReplicaPeer& peer = peers_[message.origin];
  peer.heard = now;
  peer.minor = message.minor;
  if (std::holds_alternative<std::monostate>(message.content)) return Drop(ReplicaDrop::kUnknown);
  ++counts_.received;
  if (const auto* const presence = std::get_if<ReplicaPresence>(&message.content)) {
    echo_.Heard(options_.self, message, *presence, peer, now);
  }
  for (ReplicaGuest* const guest : guests_) guest->Heard(message, now);
}

void ReplicaGroup::Come(const std::string& origin, TimePoint now) {
  const OriginGate::Origin& known = gate_.origins().find(origin)->second;
  peers_[origin] = {.incarnation = known.incarnation,
                    .minor = known.minor,
                    .heard = now,
                    .presence = {},
                    .heard_us = now};
  for (ReplicaGuest* const guest : guests_) guest->Joined(origin, now);
}

void ReplicaGroup::Gone(const std::string& origin, TimePoint now) {
  peers_.erase(origin);
  for (ReplicaGuest* const guest : guests_) guest->Left(origin, now);
}

void ReplicaGroup::Tick(TimePoint now) {
  gate_.Expire(now, options_.timeout);
  const Duration pause = hurry_ ? kPresenceSoon : kPresence;
  if (!present_ || now - *present_ >= pause) TellPresence(now);
  for (ReplicaGuest* const guest : guests_) guest->Tick(now);
}

void ReplicaGroup::TellPresence(TimePoint now) {
  present_ = now;
  hurry_ = false;
  ReplicaPresence presence = describe_();
  presence.interval_ms = static_cast<uint32_t>(kPresence / std::chrono::milliseconds(1));
  presence.hears = PresenceEcho::Hearings(peers_, now);
  Tell(std::move(presence));
  echo_.Told(gate_.told(), now);
}

void ReplicaGroup::Goodbye() {
  Tell(ReplicaPresence{.interval_ms = 0, .url = {}, .models = {}, .informed = false});
  silent_ = true;
}

void ReplicaGroup::Answer(const std::string& replica, ReplicaMessage::Content content) {
  // The asker believes us from this proof on, and has heard nothing of us before.
  if (std::holds_alternative<Proof>(content)) PresentSoon();
  TellOne(replica, std::move(content));
}

void ReplicaGroup::Tell(ReplicaMessage::Content content) {
  const auto bytes = Seal(std::move(content));
  if (bytes) Sent(carrier_.Publish(*bytes), bytes->size());
}

bool ReplicaGroup::TellOne(const std::string& replica, ReplicaMessage::Content content) {
  const auto bytes = Seal(std::move(content));
  if (!bytes) return false;
  const bool taken = carrier_.Send(replica, *bytes);
  Sent(taken, bytes->size());
  return taken;
}

std::optional<std::string> ReplicaGroup::Seal(ReplicaMessage::Content content) {
  if (silent_) return std::nullopt;
  auto bytes = gate_.Seal(std::move(content));
  if (!bytes) Drop(ReplicaDrop::kTooLong);
  return bytes;
}

void ReplicaGroup::Sent(bool taken, size_t bytes) {
  if (!taken) return;
  ++counts_.sent;
  counts_.sent_bytes += bytes;
}

}  // namespace fathom
