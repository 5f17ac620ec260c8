// ZeroMQ sockets that coroutines wait for on our own loop.
//
//   ZmqContext context;                                // one per process, outlives every socket
//   TRY(auto events, ZmqSocket::Open(context, loop, ZmqType::kSub, {}));
//   events->Subscribe("");
//   TRY_VOID(events->Connect("tcp://worker-1:5557"));
//   ZmqMessage message;
//   while (true) {
//     const IoStatus status = co_await events->Receive(message, kNever);
//     if (status != IoStatus::kOk) co_return;
//     Handle(message);
//   }
//
// Threads       A socket belongs to its loop; it may be set up before the loop runs. The context
//               may be used from any thread, and runs one I/O thread.
// Waiting       One coroutine at a time receives, and it should wait in Receive() all the time:
//               libzmq does a socket's protocol work (a bound SUB sends its subscriptions to a new
//               peer) only while the socket is used. An uninterrupted stream yields to the loop
//               after a bounded number of messages.
// Destruction   Never blocks: unsent messages are lost. A coroutine that still waits in Receive()
//               resumes with kCancelled and must not touch the socket any more.
// Reconnecting  A lost connection is re-established automatically, also where libzmq would give up:
//               after a peer that does not speak ZeroMQ, or a message above the limit.
// Losing        When a high-water mark is reached, PUB and SUB drop messages silently; to detect
//               that, number the messages. The other types refuse to send.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "io/net/loop.h"
#include "io/net/zmq_message.h"

namespace fathom {

class ZmqSocket;

// libzmq's I/O thread. Every socket must be destroyed before it.
class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

 private:
  friend class ZmqSocket;

  void* const context_;
  std::atomic<size_t> open_{0};        // sockets; checked at destruction
  std::atomic<uint64_t> monitors_{0};  // created so far; makes each monitor's name unique
};

enum class ZmqType : uint8_t { kSub, kPub, kDealer, kRouter };

struct ZmqOptions {
  int receive_limit = 100'000;  // messages that wait to be received, per peer; 0: no limit
  int send_limit = 100'000;     // messages that wait to be sent, per peer; 0: no limit
  int64_t max_message = -1;     // bytes of a frame; a peer that sends more is disconnected; -1: any
  Duration reconnect_first = std::chrono::milliseconds(100);  // pause before the first attempt
  Duration reconnect_most = std::chrono::seconds(5);          // the pause doubles up to here
  bool keepalive = true;    // TCP's: a peer that vanished is detected within a minute
  bool count_peers = true;  // if false: connects() and disconnects() stay 0, OnPeer() is not
                            // called, and a connection that libzmq gives up is not retried
};

// A peer has connected (its handshake succeeded) or disconnected.
enum class ZmqPeerEvent : uint8_t { kConnected, kDisconnected };

class ReceiveOperation final : public IoOperation {
 public:
  ReceiveOperation(ZmqSocket& socket, ZmqMessage& into, TimePoint deadline);
  IoStatus await_resume() const { return status_; }

 private:
  bool Attempt() override;
  ZmqSocket& socket_;
  ZmqMessage& into_;
};

class ZmqSocket {
 public:
  using PeerListener = std::function<void(ZmqPeerEvent)>;

  // Fails only when the process has no more descriptors.
  static Result<std::unique_ptr<ZmqSocket>> Open(ZmqContext& context, Loop& loop, ZmqType type,
                                                 const ZmqOptions& options);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  // Once per socket. Returns before there is a connection; there may never be one.
  Result<void> Connect(const std::string& endpoint);
  // The endpoint with the port that "tcp://*:0" got: tcp://[::]:41234.
  Result<std::string> Bind(const std::string& endpoint);
  // Selects messages whose first frame begins with `prefix`. A SUB without a subscription receives
  // nothing.
  void Subscribe(std::string_view prefix);

  // kOk: a message; kTimeout, kCancelled: none yet, try again; kError: the socket is unusable.
  ReceiveOperation Receive(ZmqMessage& into, TimePoint deadline) { return {*this, into, deadline}; }
  // False: no message is available now.
  bool TryReceive(ZmqMessage& into);
  // Never blocks. False: nothing was sent, because the high-water mark is reached or there is no
  // such peer. A ROUTER's first frame names the peer.
  bool Send(const ZmqMessage& message);
  // Ends a waiting Receive(), in this turn but not inside this call.
  void Cancel() { loop_.Cancel(source_); }

  // How often a peer has connected and disconnected. The counts are never behind the messages: once
  // a message of a new connection was received, that connection is counted.
  uint64_t connects() const { return connects_; }
  uint64_t disconnects() const { return disconnects_; }
  // Called when connects() or disconnects() rises. The listener must not destroy this socket, nor
  // receive from it.
  void OnPeer(PeerListener listener) { on_peer_ = std::move(listener); }

 private:
  friend class ReceiveOperation;
  class Monitor;

  ZmqSocket(ZmqContext& context, Loop& loop, void* socket);
  void Apply(ZmqType type, const ZmqOptions& options);
  bool StartMonitor();
  IoStatus TakeMessage(ZmqMessage& into, bool& taken);
  void WakeReceiver();
  void Count(ZmqPeerEvent event);
  void Redial();

  ZmqContext& context_;
  Loop& loop_;
  void* const socket_;
  Source& source_;
  std::string dialled_;  // by Connect()
  std::unique_ptr<Monitor> monitor_;
  PeerListener on_peer_;
  uint64_t connects_ = 0;
  uint64_t disconnects_ = 0;
  uint32_t streak_ = 0;  // messages received without a turn of the loop in between
};

}  // namespace fathom
