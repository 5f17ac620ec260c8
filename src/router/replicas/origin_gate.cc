#include "router/replicas/origin_gate.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fathom {
namespace {

constexpr std::array<std::string_view, kReplicaDrops> kDropNames = {
    "key", "malformed", "version", "group", "old", "unproven", "unknown", "origins"};
constexpr Duration kSameSecond = std::chrono::seconds(1);

}  // namespace

std::string_view Name(ReplicaDrop drop) { return kDropNames[static_cast<size_t>(drop)]; }

std::string OriginGate::Seal(ReplicaMessage::Content content) {
  std::string bytes = Encode({.group = self_.group,
                              .origin = self_.id,
                              .incarnation = self_.incarnation,
                              .number = ++number_,
                              .content = std::move(content)});
  if (seal_ != nullptr) seal_->Close(bytes);
  return bytes;
}

std::expected<std::optional<ReplicaMessage>, ReplicaDrop> OriginGate::Open(std::string_view bytes,
                                                                           TimePoint now) {
  if (seal_ != nullptr) {
    const auto opened = seal_->Open(bytes);
    if (!opened) return std::unexpected(ReplicaDrop::kKey);
    bytes = *opened;
  }
  auto message = DecodeReplicaMessage(bytes);
  if (!message) {
    // A version that cannot be read is the only error of the caller's kind.
    const bool version = message.error().blame == Blame::kCaller;
    return std::unexpected(version ? ReplicaDrop::kVersion : ReplicaDrop::kMalformed);
  }
  if (message->group != self_.group) return std::unexpected(ReplicaDrop::kGroup);
  if (message->origin == self_.id && message->incarnation == self_.incarnation) {
    return std::optional<ReplicaMessage>();
  }
  // Whoever has the key may ask; an old question gets an answer that nobody waits for.
  if (const auto* const challenge = std::get_if<Challenge>(&message->content)) {
    if (challenge->to == self_.id && challenge->incarnation == self_.incarnation) {
      send_(Proof{.to = message->origin, .nonce = challenge->nonce});
    }
    return std::optional<ReplicaMessage>();
  }
  if (const auto* const proof = std::get_if<Proof>(&message->content)) {
    if (proof->to == self_.id) TakeProof(*message, *proof, now);
    return std::optional<ReplicaMessage>();
  }
  const auto known = origins_.find(message->origin);
  if (known == origins_.end() || known->second.incarnation != message->incarnation) {
    ChallengeOrigin(*message, now);
    return std::unexpected(ReplicaDrop::kUnproven);
  }
  if (!Count(known->second, message->number)) return std::unexpected(ReplicaDrop::kOld);
  known->second.heard = now;
  known->second.minor = message->minor;
  if (std::holds_alternative<std::monostate>(message->content)) {
    return std::unexpected(ReplicaDrop::kUnknown);
  }
  return *std::move(message);
}

void OriginGate::ChallengeOrigin(const ReplicaMessage& message, TimePoint now) {
  auto found = strangers_.find(message.origin);
  if (found == strangers_.end()) {
    if (strangers_.size() >= kMostStrangers) {
      strangers_.erase(std::ranges::min_element(
          strangers_, {}, [](const auto& entry) { return entry.second.challenged; }));
    }
    found = strangers_.emplace(message.origin, Stranger{}).first;
  }
  Stranger& stranger = found->second;
  if (stranger.incarnation == message.incarnation && now < stranger.challenged + kChallengeEvery) {
    return;
  }
  stranger = {message.incarnation, random_.Next(), now};
  send_(Challenge{message.origin, message.incarnation, stranger.nonce});
}

bool OriginGate::TakeProof(const ReplicaMessage& message, const Proof& proof, TimePoint now) {
  const auto found = strangers_.find(message.origin);
  if (found == strangers_.end() || found->second.incarnation != message.incarnation ||
      found->second.nonce != proof.nonce) {
    return false;
  }
  strangers_.erase(found);
  const auto known = origins_.find(message.origin);
  if (known == origins_.end() && origins_.size() >= kMostOrigins) return false;
  if (known != origins_.end()) {
    if (now - known->second.heard < kSameSecond) ++conflicts_;
    if (gone_) gone_(message.origin);
  }
  Origin& origin = origins_[message.origin];
  origin = {.incarnation = message.incarnation, .heard = now, .minor = message.minor, .seen = {}};
  // Numbers before the proof may have been kept by somebody.
  origin.newest = message.number;
  origin.seen.set();
  return true;
}

bool OriginGate::Count(Origin& origin, uint64_t number) {
  if (number > origin.newest) {
    const uint64_t ahead = number - origin.newest;
    if (ahead >= kWindow) {
      origin.seen.reset();
    } else {
      for (uint64_t n = origin.newest + 1; n < number; ++n) origin.seen.reset(n % kWindow);
    }
    origin.newest = number;
    origin.seen.set(number % kWindow);
    return true;
  }
  if (origin.newest - number >= kWindow || origin.seen.test(number % kWindow)) return false;
  origin.seen.set(number % kWindow);
  return true;
}

void OriginGate::Expire(TimePoint now, Duration timeout) {
  std::erase_if(origins_, [&](const auto& entry) {
    if (now - entry.second.heard <= timeout) return false;
    if (gone_) gone_(entry.first);
    return true;
  });
}

}  // namespace fathom
