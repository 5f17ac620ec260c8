#include "io/zmtp/zmtp_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

constexpr Duration kWriteTime = std::chrono::seconds(10);
// A large message takes memory from others until it is complete.
constexpr Duration kMessageTime = std::chrono::seconds(30);

// A peer that vanished is detected within a minute.
int WithKeepalive(int fd) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  return fd;
}

}  // namespace

ZmtpConnection::ZmtpConnection(Loop& loop, int fd, ZmtpType type, std::string key,
                               const ZmtpLimits& limits, ByteBudget& budget,
                               ZmtpProperties properties)
    : ByteHolder(budget),
      loop_(loop),
      // A PUB sends in one coroutine while another one receives, and only one may write.
      answers_pings_(type != ZmtpType::kPub),
      socket_(loop, WithKeepalive(fd)),
      handshake_(type, std::move(key), std::move(properties)),
      decoder_(limits, this),
      buffer_(new char[kBuffer]),
      share_(loop) {}

ZmtpFault ZmtpConnection::fault() const {
  if (too_slow_) return ZmtpFault::kSlow;
  return handshake_.fault() != ZmtpFault::kNone ? handshake_.fault() : decoder_.fault();
}

void ZmtpConnection::Cancel() {
  cancelled_ = true;
  socket_.Cancel();
}

// Called when another stream needs the memory.
bool ZmtpConnection::GiveUp() {
  if (!reading_ || !decoder_.inside()) return false;
  decoder_.Refuse(ZmtpFault::kMemory);
  socket_.Cancel();
  return true;
}

ZmtpNews ZmtpConnection::NewsOf(IoStatus status) const {
  if (cancelled_) return ZmtpNews::kCancelled;
  if (faulty()) return ZmtpNews::kDisconnected;
  return status == IoStatus::kTimeout ? ZmtpNews::kTimeout : ZmtpNews::kDisconnected;
}

Task<bool> ZmtpConnection::Write(std::string bytes) {
  if (cancelled_) co_return false;
  const IoResult written = co_await socket_.Write(bytes, loop_.now() + kWriteTime);
  co_return written.ok();
}

// Into the frame itself, or into the buffer.
Task<IoResult> ZmtpConnection::Read(TimePoint deadline) {
  const std::span<char> room = decoder_.Room();
  if (faulty() || cancelled_) co_return IoResult{IoStatus::kCancelled, 0};
  const std::span<char> into = room.empty() ? std::span<char>(buffer_.get(), kBuffer) : room;
  reading_ = true;
  const IoResult read = co_await socket_.Read(into, deadline);
  reading_ = false;
  if (!read.ok() || faulty() || cancelled_) co_return read;
  if (room.empty()) {
    unread_ = {buffer_.get(), read.bytes};
  } else {
    decoder_.Filled(read.bytes);
    taken_ += read.bytes;
  }
  co_return read;
}

Task<ZmtpNews> ZmtpConnection::Open(TimePoint deadline) {
  const IoResult connected = co_await socket_.Connected(deadline);
  if (!connected.ok() || cancelled_) co_return NewsOf(connected.status);
  auto greeting = Write(handshake_.Opening());
  bool sent = co_await greeting;
  while (sent) {
    std::string replies;
    const ZmtpHandshake::Step step = handshake_.Take(unread_, replies);
    if (!replies.empty()) {
      auto replying = Write(std::move(replies));
      sent = co_await replying;
    }
    if (step == ZmtpHandshake::Step::kFault || !sent) break;
    if (step == ZmtpHandshake::Step::kDone) co_return ZmtpNews::kConnected;
    auto reading = Read(deadline);
    const IoResult read = co_await reading;
    if (read.status == IoStatus::kEof || read.status == IoStatus::kError) handshake_.Closed();
    if (!read.ok()) co_return NewsOf(read.status);
  }
  co_return NewsOf(IoStatus::kError);
}

Task<bool> ZmtpConnection::Subscribe(std::string_view topic) {
  std::string bytes;
  AppendZmtpSubscription(topic, handshake_.minor(), bytes);
  auto writing = Write(std::move(bytes));
  const bool sent = co_await writing;
  co_return sent;
}

Task<bool> ZmtpConnection::Send(const ZmqMessage& message) {
  std::string bytes;
  AppendZmtpMessage(message, bytes);
  auto writing = Write(std::move(bytes));
  const bool sent = co_await writing;
  co_return sent;
}

TimePoint ZmtpConnection::DeadlineOf(TimePoint deadline) {
  if (held() == 0) {
    message_due_ = kNever;
  } else if (message_due_ == kNever) {
    message_due_ = loop_.now() + kMessageTime;
  }
  return std::min(deadline, message_due_);
}

Task<ZmtpNews> ZmtpConnection::Receive(TimePoint deadline) {
  for (;;) {
    if (share_.Spent(std::exchange(taken_, 0))) co_await Yield(loop_);
    if (cancelled_) co_return ZmtpNews::kCancelled;
    const size_t before = unread_.size();
    const ZmtpDecoder::Step step = decoder_.Take(unread_);
    taken_ += before - unread_.size();
    if (step == ZmtpDecoder::Step::kMessage) {
      message_due_ = kNever;
      co_return ZmtpNews::kMessage;
    }
    if (step == ZmtpDecoder::Step::kFault) co_return ZmtpNews::kDisconnected;
    if (step == ZmtpDecoder::Step::kCommand) {
      auto obeying = Obey(decoder_.command());
      const bool fine = co_await obeying;
      if (!fine) co_return NewsOf(IoStatus::kError);
      continue;
    }
    const TimePoint due = DeadlineOf(deadline);
    auto reading = Read(due);
    const IoResult read = co_await reading;
    if (!read.ok()) {
      too_slow_ = read.status == IoStatus::kTimeout && loop_.now() >= message_due_;
      co_return NewsOf(read.status);
    }
  }
}

// A command of the traffic. Only PING wants an answer: its context, after two bytes of a time.
Task<bool> ZmtpConnection::Obey(std::string_view body) {
  constexpr size_t kTime = 2;
  constexpr size_t kLongestContext = 16;
  const auto command = ReadZmtpCommand(body);
  if (!command || command->name == "ERROR") {
    decoder_.Refuse(ZmtpFault::kProtocol);
    co_return false;
  }
  if (command->name != "PING" || !answers_pings_) co_return true;
  std::string bytes;
  const std::string_view context = command->data.substr(std::min(kTime, command->data.size()));
  AppendZmtpCommand("PONG", context.substr(0, kLongestContext), bytes);
  auto writing = Write(std::move(bytes));
  const bool sent = co_await writing;
  co_return sent;
}

}  // namespace fathom
