// One connection to a ZeroMQ peer, read on our own loop.
//
//   ZmtpConnection connection(loop, fd, ZmtpType::kSub, {}, limits, budget);
//   const ZmtpNews opened = co_await connection.Open(deadline);
//   while (co_await connection.Receive(kNever) == ZmtpNews::kMessage) Handle(connection.message());
//
// Memory         At most one message, within the limits and the budget, and a buffer of 32 KiB.
//                While a message is handled, nothing is read: the peer has to wait or to drop.
// Fairness       Yields to the loop after a bounded number of bytes and a bounded time, including
//                the time that the caller takes for its messages.
// Cancellation   Cancel() is final, and may be called at any time on the loop.
// Threads        The loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/net/socket.h"
#include "io/net/task.h"
#include "io/net/yield.h"
#include "io/zmtp/byte_budget.h"
#include "io/zmtp/zmtp_decoder.h"
#include "io/zmtp/zmtp_handshake.h"

namespace fathom {

enum class ZmtpNews : uint8_t {
  kConnected,
  kMessage,
  kDisconnected,  // fault() has the reason
  kTimeout,
  kCancelled,
};

class ZmtpConnection final : private ByteHolder {
 public:
  // Takes over a connected or connecting descriptor. With a key, the peer must send it.
  ZmtpConnection(Loop& loop, int fd, ZmtpType type, std::string key, const ZmtpLimits& limits,
                 ByteBudget& budget, ZmtpProperties properties = {});

  // Waits for the connection and shakes hands: kConnected, or why not.
  Task<ZmtpNews> Open(TimePoint deadline);
  Task<bool> Subscribe(std::string_view topic);
  Task<bool> Send(const ZmqMessage& message);
  // Any but kConnected.
  Task<ZmtpNews> Receive(TimePoint deadline);
  // Valid until the next Receive().
  const ZmqMessage& message() const { return decoder_.message(); }

  void Cancel();
  // What the peer says about itself, after kConnected; only if we have properties too.
  std::optional<std::string_view> PeerProperty(std::string_view name) const {
    return handshake_.PeerProperty(name);
  }
  // Why it was closed by us; kNone: the peer closed it.
  ZmtpFault fault() const;

 private:
  static constexpr size_t kBuffer = 32 << 10;

  bool GiveUp() override;
  bool faulty() const { return fault() != ZmtpFault::kNone; }
  ZmtpNews NewsOf(IoStatus status) const;
  Task<bool> Write(std::string bytes);
  Task<IoResult> Read(TimePoint deadline);
  Task<bool> Obey(std::string_view body);
  TimePoint DeadlineOf(TimePoint deadline);

  Loop& loop_;
  const bool answers_pings_;
  Socket socket_;
  ZmtpHandshake handshake_;
  ZmtpDecoder decoder_;
  const std::unique_ptr<char[]> buffer_;
  std::string_view unread_;  // of the buffer
  LoopShare share_;
  size_t taken_ = 0;                // bytes that `share_` does not count yet
  TimePoint message_due_ = kNever;  // of a large message that is being received
  bool reading_ = false;            // waits for bytes, so that its message may be given up
  bool cancelled_ = false;
  bool too_slow_ = false;
};

}  // namespace fathom
