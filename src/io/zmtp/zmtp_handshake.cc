#include "io/zmtp/zmtp_handshake.h"

#include <algorithm>

namespace fathom {
namespace {

constexpr size_t kMajorAt = 10;
constexpr size_t kVersionEnd = 11;  // of what libzmq must read to send the rest of its greeting
constexpr size_t kMinorAt = 11;
constexpr size_t kMechanismAt = 12;
constexpr size_t kMechanismEnd = 32;

std::string_view MechanismOf(bool keyed) { return keyed ? "PLAIN" : "NULL"; }

// In the same time for every key, so that guesses cannot be improved by measuring.
bool SameKey(std::string_view a, std::string_view b) {
  unsigned differs = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<unsigned>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  }
  return differs == 0;
}

bool Fits(ZmtpType type, std::string_view peer) {
  if (type == ZmtpType::kSub) return peer == "PUB" || peer == "XPUB";
  if (type == ZmtpType::kPub) return peer == "SUB" || peer == "XSUB";
  return peer == "ROUTER" || peer == "DEALER" || peer == "REP";
}

}  // namespace

ZmtpHandshake::ZmtpHandshake(ZmtpType type, std::string key, ZmtpProperties properties)
    : type_(type), key_(std::move(key)), properties_(std::move(properties)) {}

std::string ZmtpHandshake::Opening() const {
  if (!key_.empty()) return ZmtpGreeting(MechanismOf(true), true).substr(0, kVersionEnd);
  std::string bytes = ZmtpGreeting(MechanismOf(false), false);
  AppendZmtpCommand("READY", ZmtpMetadata(type_, properties_), bytes);
  return bytes;
}

// libzmq closes as soon as it reads a mechanism that is not its own, even before it has sent a
// byte, and does not try again. Once it has named its version, its mechanism is on the way, so that
// a publisher without the key is seen to be one.
void ZmtpHandshake::SendMechanism(std::string& replies) {
  if (key_.empty() || mechanism_sent_ || gathered_.size() < kVersionEnd) return;
  mechanism_sent_ = true;
  replies += ZmtpGreeting(MechanismOf(true), true).substr(kVersionEnd);
}

ZmtpHandshake::Step ZmtpHandshake::Fail(ZmtpFault fault) {
  fault_ = fault;
  return Step::kFault;
}

void ZmtpHandshake::Closed() {
  const bool begun = state_ != State::kGreeting || !gathered_.empty();
  if (begun && !key_.empty() && fault_ == ZmtpFault::kNone) fault_ = ZmtpFault::kKey;
}

// How many bytes the greeting or the frame has, as far as it can be known.
size_t ZmtpHandshake::Needed() const {
  if (state_ == State::kGreeting) return kZmtpGreeting;
  if (gathered_.empty()) return 1;
  const bool is_long = (static_cast<uint8_t>(gathered_[0]) & kZmtpLong) != 0;
  const size_t head = is_long ? 9 : 2;
  if (gathered_.size() < head) return head;
  size_t size = 0;
  for (size_t i = 1; i < head; ++i) size = size << 8 | static_cast<uint8_t>(gathered_[i]);
  return size > kLongestCommand ? size : head + size;
}

ZmtpHandshake::Step ZmtpHandshake::Take(std::string_view& in, std::string& replies) {
  while (fault_ == ZmtpFault::kNone) {
    const size_t needed = Needed();
    if (needed > kZmtpGreeting + kLongestCommand) return Fail(ZmtpFault::kProtocol);
    if (gathered_.size() < needed) {
      if (in.empty()) return Step::kMore;
      const size_t some = std::min(needed - gathered_.size(), in.size());
      gathered_ += in.substr(0, some);
      in.remove_prefix(some);
      // A peer that speaks another protocol may wait for an answer after a few bytes.
      if (state_ == State::kGreeting && FaultOfGreeting() != ZmtpFault::kNone) {
        return Fail(FaultOfGreeting());
      }
      if (state_ == State::kGreeting) SendMechanism(replies);
      continue;
    }
    const Step step = state_ == State::kGreeting ? TakeGreeting() : TakeFrame(replies);
    gathered_.clear();
    if (step != Step::kMore) return step;
  }
  return Step::kFault;
}

ZmtpFault ZmtpHandshake::FaultOfGreeting() const {
  if (static_cast<uint8_t>(gathered_[0]) != 0xff) return ZmtpFault::kProtocol;
  if (gathered_.size() > 9 && (static_cast<uint8_t>(gathered_[9]) & 1) == 0) {
    return ZmtpFault::kProtocol;
  }
  if (gathered_.size() > kMajorAt && static_cast<uint8_t>(gathered_[kMajorAt]) < 3)
    return ZmtpFault::kVersion;
  return ZmtpFault::kNone;
}

ZmtpHandshake::Step ZmtpHandshake::TakeGreeting() {
  minor_ = static_cast<uint8_t>(gathered_[kMinorAt]);
  std::string_view mechanism(gathered_.data() + kMechanismAt, kMechanismEnd - kMechanismAt);
  mechanism = mechanism.substr(0, mechanism.find('\0'));
  if (mechanism != MechanismOf(!key_.empty())) {
    return Fail(key_.empty() ? ZmtpFault::kMechanism : ZmtpFault::kKey);
  }
  state_ = key_.empty() ? State::kReady : State::kHello;
  return Step::kMore;
}

ZmtpHandshake::Step ZmtpHandshake::TakeFrame(std::string& replies) {
  const auto flags = static_cast<uint8_t>(gathered_[0]);
  if ((flags & ~kZmtpLong) != kZmtpCommand) return Fail(ZmtpFault::kProtocol);
  const size_t head = (flags & kZmtpLong) != 0 ? 9 : 2;
  const auto command = ReadZmtpCommand(std::string_view(gathered_).substr(head));
  if (!command) return Fail(ZmtpFault::kProtocol);
  if (command->name == "ERROR") return Fail(ZmtpFault::kRefused);
  return TakeCommand(*command, replies);
}

ZmtpHandshake::Step ZmtpHandshake::TakeCommand(const ZmtpCommandView& command,
                                               std::string& replies) {
  if (state_ == State::kHello && command.name == "HELLO") return TakeHello(command.data, replies);
  if (state_ == State::kInitiate && command.name == "INITIATE") {
    const Step step = TakeMetadata(command.data);
    if (step == Step::kDone) AppendZmtpCommand("READY", ZmtpMetadata(type_, properties_), replies);
    return step;
  }
  if (state_ == State::kReady && command.name == "READY") return TakeMetadata(command.data);
  return Fail(ZmtpFault::kProtocol);
}

// A user name and a password, each with its length in one byte.
ZmtpHandshake::Step ZmtpHandshake::TakeHello(std::string_view data, std::string& replies) {
  const auto size_at = [&](size_t at) {
    return at < data.size() ? static_cast<size_t>(static_cast<uint8_t>(data[at])) : data.size();
  };
  const size_t name = size_at(0);
  const size_t password = size_at(1 + name);
  if (data.size() != 2 + name + password) return Fail(ZmtpFault::kProtocol);
  if (!SameKey(data.substr(2 + name), key_)) {
    AppendZmtpCommand("ERROR", std::string_view("\x0bInvalid key", 12), replies);
    return Fail(ZmtpFault::kKey);
  }
  AppendZmtpCommand("WELCOME", "", replies);
  state_ = State::kInitiate;
  return Step::kMore;
}

ZmtpHandshake::Step ZmtpHandshake::TakeMetadata(std::string_view metadata) {
  const auto peer = FindZmtpProperty(metadata, "Socket-Type");
  if (!peer) return Fail(ZmtpFault::kProtocol);
  if (!Fits(type_, *peer)) return Fail(ZmtpFault::kType);
  if (!properties_.empty()) peer_metadata_ = metadata;
  return Step::kDone;
}

}  // namespace fathom
