// Which messages and commands do these bytes contain? The traffic of a connection after its
// handshake.
//
//   ZmtpDecoder decoder(limits, &holder);
//   while (decoder.Take(bytes) == ZmtpDecoder::Step::kMessage) Handle(decoder.message());
//
// Limits  Frames and bytes of a message, bytes of a command. Of a message with more frames than
//         ZmqMessage::kMostFrames the others are read and dropped. A size that is announced is
//         compared before memory is taken; memory grows with the bytes that have arrived, and is
//         counted by the holder first. Whatever a peer sends, a decoder has at most one message.
// Errors  kFault is final; fault() has the reason.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/zmtp/byte_budget.h"
#include "io/zmtp/zmtp_wire.h"

namespace fathom {

struct ZmtpLimits {
  size_t frames = 1024;
  size_t message = 64 << 20;
  size_t command = 4096;
};

class ZmtpDecoder {
 public:
  enum class Step : uint8_t { kMore, kMessage, kCommand, kFault };

  // Without a holder nothing is counted.
  explicit ZmtpDecoder(const ZmtpLimits& limits, ByteHolder* holder = nullptr)
      : limits_(limits), holder_(holder) {}

  // Takes bytes up to the end of a message or a command, or all of them.
  Step Take(std::string_view& in);
  // Valid until the next call.
  const ZmqMessage& message() const { return message_; }
  std::string_view command() const { return command_; }
  ZmtpFault fault() const { return fault_; }

  // Where the next bytes of a large frame can be put without a copy; empty: use Take(). After
  // Filled(), Take() goes on.
  std::span<char> Room();
  void Filled(size_t bytes) { filled_ += bytes; }

  // A message was begun and is not complete.
  bool inside() const { return fault_ == ZmtpFault::kNone && !complete_ && !message_.empty(); }
  // Takes nothing more, and frees the message.
  void Refuse(ZmtpFault fault) { Fault(fault); }

 private:
  Step Fault(ZmtpFault fault);
  void Release();
  bool TakeHead(std::string_view& in);
  bool ReadHead();
  bool BeginFrame(uint8_t flags, uint64_t size);
  bool TakeBody(std::string_view& in);
  bool Grow();

  const ZmtpLimits limits_;
  ByteHolder* const holder_;
  ZmqMessage message_;
  std::string command_;
  ZmtpFault fault_ = ZmtpFault::kNone;
  bool complete_ = false;  // `message_` was handed out

  std::array<char, 9> head_{};  // flags and size of the frame
  size_t head_size_ = 0;
  std::string* frame_ = nullptr;  // that is being received, in `message_` or `command_`
  size_t size_ = 0;               // of the frame
  size_t filled_ = 0;
  size_t earlier_ = 0;  // bytes of the message's earlier frames
  size_t frames_ = 0;   // of the message, dropped ones included
  bool drop_ = false;   // the frame
  bool more_ = false;
};

}  // namespace fathom
