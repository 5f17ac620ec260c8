#include "router/replicas/origin_gate.h"

#include <algorithm>
#include <array>
#include <vector>

namespace fathom {
namespace {

constexpr std::array<std::string_view, kReplicaDrops> kDropNames = {
    "key", "malformed", "version", "group", "old", "unproven", "unknown", "origins", "too_long"};

bool IsGoodbye(const ReplicaMessage& message) {
  const auto* const presence = std::get_if<ReplicaPresence>(&message.content);
  return presence != nullptr && presence->interval_ms == 0;
}

}  // namespace

std::string_view Name(ReplicaDrop drop) { return kDropNames[static_cast<size_t>(drop)]; }

std::optional<std::string> OriginGate::Seal(ReplicaMessage::Content content) {
  std::string bytes = Encode({.group = self_.group,
                              .origin = self_.id,
                              .incarnation = self_.incarnation,
                              .number = ++number_,
                              .content = std::move(content)});
  if (bytes.size() > ReplicaMessage::kMostBytes) return std::nullopt;
  if (seal_ != nullptr) seal_->Close(bytes);
  return bytes;
}

std::expected<OriginGate::Opened, ReplicaDrop> OriginGate::Open(std::string_view bytes,
                                                                TimePoint now) {
  const size_t tag = seal_ != nullptr ? MessageSeal::kTag : 0;
  if (bytes.size() > ReplicaMessage::kMostBytes + tag) {
    return std::unexpected(ReplicaDrop::kMalformed);
  }
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
    return Opened{.own = true, .message = std::nullopt};
  }
  return Sort(*std::move(message), now);
}

bool OriginGate::Known(const ReplicaMessage& message) const {
  const auto known = origins_.find(message.origin);
  return known != origins_.end() && known->second.incarnation == message.incarnation;
}

std::expected<OriginGate::Opened, ReplicaDrop> OriginGate::Sort(ReplicaMessage message,
                                                                TimePoint now) {
  if (!Known(message)) return Meet(message, now);
  Origin& origin = origins_.find(message.origin)->second;
  const bool newest = message.number > origin.newest;
  if (!Count(origin, message.number)) return std::unexpected(ReplicaDrop::kOld);
  // One that was overtaken says nothing about now: it may have been held back.
  if (newest) NoteLife(origin, message, now);
  if (const auto* const challenge = std::get_if<Challenge>(&message.content)) {
    if (challenge->to == self_.id && challenge->incarnation == self_.incarnation) {
      send_(message.origin, Proof{.to = message.origin, .nonce = challenge->nonce});
    }
    return Opened{};
  }
  if (const auto* const proof = std::get_if<Proof>(&message.content)) {
    if (proof->to == self_.id && proof->nonce == origin.nonce) {
      origin.proven = now;
      origin.nonce = random_.Next();  // copies that were held back prove nothing later
    }
    return Opened{};
  }
  if (IsGoodbye(message)) {
    Forget(message.origin, now);
    return Opened{};
  }
  return Opened{.own = false, .message = std::move(message)};
}

void OriginGate::NoteLife(Origin& origin, const ReplicaMessage& message, TimePoint now) {
  origin.heard = now;
  origin.minor = message.minor;
  if (std::exchange(origin.rival, false)) ++conflicts_;
  if (now - origin.proven < kProofHolds || now - origin.asked < kChallengeEvery) return;
  // The nonce stays until its proof has come, however long the way is.
  if (origin.asked <= origin.proven) origin.nonce = random_.Next();
  origin.asked = now;
  send_(message.origin, Challenge{message.origin, message.incarnation, origin.nonce});
}

// A message of a process that has not proven itself.
std::expected<OriginGate::Opened, ReplicaDrop> OriginGate::Meet(const ReplicaMessage& message,
                                                                TimePoint now) {
  if (const auto* const proof = std::get_if<Proof>(&message.content)) {
    if (proof->to == self_.id) TakeProof(message, *proof, now);
    return Opened{};
  }
  if (IsGoodbye(message)) {
    // A proof that was overtaken by the goodbye comes too late.
    strangers_.erase({message.origin, message.incarnation});
    return std::unexpected(ReplicaDrop::kUnproven);
  }
  if (const auto* const challenge = std::get_if<Challenge>(&message.content)) {
    // A question to another replica is none of ours; its data will be heard soon enough.
    if (challenge->to != self_.id || challenge->incarnation != self_.incarnation) return Opened{};
    // An old question gets an answer that nothing waits for.
    if (MayProve({message.origin, message.incarnation}, now)) {
      send_(message.origin, Proof{message.origin, challenge->nonce});
    }
  }
  if (!origins_.contains(message.origin) && origins_.size() >= kMostOrigins) {
    return std::unexpected(ReplicaDrop::kOrigins);
  }
  Ask(message, now);
  return std::unexpected(ReplicaDrop::kUnproven);
}

bool OriginGate::MayProve(const Process& process, TimePoint now) {
  if (now - proofs_since_ >= kChallengeEvery / 2) {
    proofs_since_ = now;
    proven_to_.clear();
  }
  return proven_to_.size() < kProofs && proven_to_.insert(process).second;
}

void OriginGate::Ask(const ReplicaMessage& message, TimePoint now) {
  Process process(message.origin, message.incarnation);
  auto found = strangers_.find(process);
  if (found != strangers_.end() && now - found->second.first >= kChallengeHeld) {
    strangers_.erase(found);
    found = strangers_.end();
  }
  if (found != strangers_.end() && now - found->second.asked < kChallengeEvery) return;
  if (found == strangers_.end()) found = Remember(std::move(process), now);
  if (found == strangers_.end()) return;
  // Again with the same nonce: the way there and back may take longer than kChallengeEvery.
  found->second.asked = now;
  send_(message.origin, Challenge{message.origin, message.incarnation, found->second.nonce});
}

OriginGate::Strangers::iterator OriginGate::Remember(Process process, TimePoint now) {
  if (strangers_.size() >= kMostStrangers) {
    const auto first = std::ranges::min_element(
        strangers_, {}, [](const auto& entry) { return entry.second.first; });
    if (now - first->second.first < kChallengeHeld) return strangers_.end();
    strangers_.erase(first);
  }
  return strangers_
      .emplace(std::move(process), Stranger{.nonce = random_.Next(), .first = now, .asked = {}})
      .first;
}

void OriginGate::TakeProof(const ReplicaMessage& message, const Proof& proof, TimePoint now) {
  const auto found = strangers_.find({message.origin, message.incarnation});
  if (found == strangers_.end() || found->second.nonce != proof.nonce) return;
  // A proof that was held back on the way tells of then, not of now.
  if (now - found->second.first >= kChallengeHeld) return;
  if (message.origin == self_.id) {
    ++conflicts_;
    return Refuse(found->second, now);
  }
  const auto known = origins_.find(message.origin);
  if (known != origins_.end() && now - known->second.heard < kHolds) {
    known->second.rival = true;
    return Refuse(found->second, now);
  }
  strangers_.erase(found);
  if (known != origins_.end()) Forget(message.origin, now);
  if (origins_.size() < kMostOrigins) Admit(message, now);
}

// Its next proof is another one, and is not asked for at once.
void OriginGate::Refuse(Stranger& stranger, TimePoint now) {
  stranger = {.nonce = random_.Next(), .first = now, .asked = now};
}

void OriginGate::Admit(const ReplicaMessage& message, TimePoint now) {
  Origin& origin = origins_[message.origin];
  origin.incarnation = message.incarnation;
  origin.heard = now;
  origin.proven = now;
  origin.asked = now;
  origin.nonce = random_.Next();
  origin.minor = message.minor;
  // Messages before the proof may have been kept by a third party.
  origin.newest = message.number;
  origin.seen.set();
  come_(message.origin, now);
}

void OriginGate::Forget(std::string_view origin, TimePoint now) {
  const auto gone = origins_.extract(origins_.find(origin));
  gone_(gone.key(), now);
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
  std::vector<std::string> silent;
  for (const auto& [name, origin] : origins_) {
    if (now - origin.heard > timeout || now - origin.proven > 2 * kProofHolds) {
      silent.push_back(name);
    }
  }
  for (const std::string& name : silent) Forget(name, now);
  std::erase_if(strangers_,
                [&](const auto& entry) { return now - entry.second.asked > kChallengeHeld; });
}

}  // namespace fathom
