// Which publishers may connect to a port of ours, and what do they send? A SUB that is bound.
//
// Each publisher has a connection and a coroutine of its own, so none waits for another.
//
// Access   Addresses outside of `allow` are closed before a byte is read. With a key, a publisher
//          must send it (ZMTP PLAIN).
// Limits   `most_peers` connections, whether their handshake has ended or not; of these at most
//          `most_strangers` from addresses that are not `known`, so that they cannot keep the
//          others out. A handshake has ten seconds.
// Threads  The loop's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "io/net/address_range.h"
#include "io/net/listener.h"
#include "io/net/wakeable_wait.h"
#include "io/zmtp/zmtp_connection.h"
#include "io/zmtp/zmtp_endpoint.h"

namespace fathom {

struct ZmtpListenerOptions {
  std::vector<AddressRange> allow;  // empty: all
  std::string key;                  // empty: none
  size_t most_peers = 1024;
  std::function<bool(const Address& from)> known;  // empty: all are
  size_t most_strangers = 0;
  ZmtpLimits limits;
  ZmtpProperties properties;  // what we say about ourselves
};

// Why a publisher was turned away or cut off.
enum class ZmtpRefusal : uint8_t {
  kAddress,
  kKey,
  kPeers,     // too many connections
  kProtocol,  // not a ZeroMQ publisher
  kLimit,     // frames, bytes or time of a message
};

class ZmtpListener {
 public:
  // Handles the messages of one publisher until the connection ends.
  using Serve = std::function<Task<void>(ZmtpConnection& peer)>;
  using OnRefusal = std::function<void(ZmtpRefusal why, const Address& from, ZmtpFault fault)>;

  static Result<std::unique_ptr<ZmtpListener>> Bind(Loop& loop, ByteBudget& budget,
                                                    std::string_view endpoint,
                                                    ZmtpListenerOptions options, Log& log);

  const Address& address() const { return listener_->address(); }
  // Publishers whose handshake has succeeded.
  size_t connected() const { return connected_; }

  // Accepts publishers until Stop(), and ends when all of them have been served.
  Task<void> Run(Serve serve, OnRefusal on_refusal);
  void Stop();

 private:
  ZmtpListener(Loop& loop, ByteBudget& budget, ZmtpListenerOptions options)
      : loop_(loop), budget_(budget), options_(std::move(options)), ending_(loop) {}

  void Accept(int fd);
  Task<void> ServePeer(int fd, Address from, bool known);
  Task<void> Converse(ZmtpConnection& peer);
  bool Allowed(const Address& from) const;
  void Refuse(ZmtpFault fault, const Address& from);

  Loop& loop_;
  ByteBudget& budget_;
  const ZmtpListenerOptions options_;
  std::unique_ptr<Listener> listener_;
  std::vector<ZmtpConnection*> peers_;
  size_t strangers_ = 0;  // of `peers_`
  size_t connected_ = 0;
  Serve serve_;
  OnRefusal on_refusal_;
  WakeableWait ending_;
  bool stopped_ = false;
};

}  // namespace fathom
