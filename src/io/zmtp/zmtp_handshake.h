// Who is the peer, and may it connect? The first bytes of a connection, from the greeting to READY.
//
// Without a key the mechanism is NULL. With one we are the server of PLAIN: the peer must send the
// key as its password, with any user name.
//
// Limits  A command of the handshake has at most kLongestCommand bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/zmtp/zmtp_wire.h"

namespace fathom {

class ZmtpHandshake {
 public:
  static constexpr size_t kLongestCommand = 4096;

  enum class Step : uint8_t { kMore, kDone, kFault };

  explicit ZmtpHandshake(ZmtpType type, std::string key = {}, ZmtpProperties properties = {});

  // Sent at once, without waiting for the peer. With a key: the greeting up to its version.
  std::string Opening() const;
  // Takes bytes of the peer, and appends what has to be sent. After kDone the rest of `in` belongs
  // to the traffic. After kFault the replies are still to be sent; then the connection is closed.
  Step Take(std::string_view& in, std::string& replies);

  // The peer closed the connection. libzmq does so when it sees that we want a key that it lacks.
  void Closed();

  ZmtpFault fault() const { return fault_; }
  uint8_t minor() const { return minor_; }  // of the peer's version
  // What the peer says about itself, after kDone; kept only if we have properties too.
  std::optional<std::string_view> PeerProperty(std::string_view name) const {
    return FindZmtpProperty(peer_metadata_, name);
  }

 private:
  enum class State : uint8_t { kGreeting, kHello, kInitiate, kReady };

  Step Fail(ZmtpFault fault);
  void SendMechanism(std::string& replies);
  Step TakeGreeting();
  Step TakeFrame(std::string& replies);
  Step TakeCommand(const ZmtpCommandView& command, std::string& replies);
  Step TakeHello(std::string_view data, std::string& replies);
  Step TakeMetadata(std::string_view metadata);
  ZmtpFault FaultOfGreeting() const;
  size_t Needed() const;

  const ZmtpType type_;
  const std::string key_;
  const ZmtpProperties properties_;
  std::string peer_metadata_;
  State state_ = State::kGreeting;
  std::string gathered_;
  ZmtpFault fault_ = ZmtpFault::kNone;
  uint8_t minor_ = 0;
  bool mechanism_sent_ = false;
};

}  // namespace fathom
