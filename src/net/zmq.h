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
// Threads       A socket belongs to its loop; it may be set up before the loop runs. The context is
//               for any thread, and runs one of its own.
// Waiting       One coroutine at a time receives, and should be at it all the time: libzmq answers
//               for a socket (a bound SUB tells a new peer what it subscribes to) only while it is
//               used. A stream that never pauses lets others on the
//               loop have a turn now and then.
// Destruction   Never waits for anybody: what was not sent is lost. A coroutine that still waits in
//               Receive() ends with kCancelled and must not touch the socket any more.
// Reconnecting  A lost connection is made again by itself, also where libzmq would give up: after a
//               peer that sent what is no ZeroMQ, or a message above the limit.
// Losing        Where a high-water mark is reached, PUB and SUB drop messages without a word:
//               whoever cares numbers them. The other types refuse to send.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/loop.h"

namespace fathom {

class ZmqSocket;

// libzmq's I/O thread. Every socket must be gone before it.
class ZmqContext {
 public:
  ZmqContext();
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

 private:
  friend class ZmqSocket;

  void* const context_;
  std::atomic<size_t> open_{0};        // sockets; says at the end that none was forgotten
  std::atomic<uint64_t> monitors_{0};  // so far, each of which has a name of its own
};

// The frames of one message. Used again and again it keeps its memory.
class ZmqMessage {
 public:
  static constexpr size_t kMostFrames = 16;

  ZmqMessage() = default;
  ZmqMessage(std::initializer_list<std::string_view> frames);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::string& operator[](size_t i) const { return frames_[i]; }
  const std::string& back() const { return frames_[size_ - 1]; }
  const std::string* begin() const { return frames_.data(); }
  const std::string* end() const { return frames_.data() + size_; }
  // It had more frames than these.
  bool truncated() const { return truncated_; }

  void Add(std::string_view frame);
  void Clear();

 private:
  std::array<std::string, kMostFrames> frames_;
  size_t size_ = 0;
  bool truncated_ = false;
};

enum class ZmqType : uint8_t { kSub, kPub, kDealer, kRouter };

struct ZmqOptions {
  int receive_limit = 100'000;  // messages that wait to be received, per peer; 0: no limit
  int send_limit = 100'000;     // messages that wait to be sent, per peer; 0: no limit
  int64_t max_message = -1;     // bytes of a frame; a peer that sends more is disconnected; -1: any
  Duration reconnect_first = std::chrono::milliseconds(100);  // pause before the first try
  Duration reconnect_most = std::chrono::seconds(5);          // it doubles up to here
  bool keepalive = true;    // TCP's: a peer that vanished without a word is noticed in a minute
  bool count_peers = true;  // without it connects() and disconnects() stay 0, OnPeer() is silent,
                            // and libzmq's giving up is final
};

// A peer has come (its handshake succeeded) or gone.
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

  // An error only when the process has no more descriptors.
  static Result<std::unique_ptr<ZmqSocket>> Open(ZmqContext& context, Loop& loop, ZmqType type,
                                                 const ZmqOptions& options);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  // Once per socket. Returns before there is a connection, which may take for ever.
  Result<void> Connect(const std::string& endpoint);
  // The endpoint with the port that "tcp://*:0" got: tcp://[::]:41234.
  Result<std::string> Bind(const std::string& endpoint);
  // To messages whose first frame begins with this. A SUB that subscribes to nothing gets nothing.
  void Subscribe(std::string_view prefix);

  // kOk: a message; kTimeout, kCancelled: none yet, try again; kError: the socket is of no use.
  ReceiveOperation Receive(ZmqMessage& into, TimePoint deadline) { return {*this, into, deadline}; }
  // False: there is none now.
  bool TryReceive(ZmqMessage& into);
  // Never waits. False, and nothing was sent: the high-water mark is reached, or there is no such
  // peer. A ROUTER's first frame names the peer.
  bool Send(const ZmqMessage& message);
  // Ends a Receive() that waits, in this turn but not inside this call.
  void Cancel() { loop_.Cancel(source_); }

  // How often a peer has come, and gone. They are never behind the messages: whoever has received
  // one from a new connection finds that connection counted.
  uint64_t connects() const { return connects_; }
  uint64_t disconnects() const { return disconnects_; }
  // Called as they are counted. It takes note: it must not destroy this socket, nor receive from
  // it.
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
