#include "io/zmtp/zmtp_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fathom {
namespace {

// Memory of a frame at first; it doubles as bytes arrive.
constexpr size_t kFirstStep = 64 << 10;
// From here on it is worth reading into the frame directly.
constexpr size_t kWorthRoom = 16 << 10;

}  // namespace

ZmtpDecoder::Step ZmtpDecoder::Fault(ZmtpFault fault) {
  if (fault_ == ZmtpFault::kNone) fault_ = fault;
  Release();
  return Step::kFault;
}

void ZmtpDecoder::Release() {
  message_.Clear();
  frame_ = nullptr;
  earlier_ = 0;
  frames_ = 0;
  if (holder_ != nullptr) holder_->HoldAnyway(0);
}

ZmtpDecoder::Step ZmtpDecoder::Take(std::string_view& in) {
  if (std::exchange(complete_, false)) Release();
  while (fault_ == ZmtpFault::kNone) {
    if (frame_ == nullptr && !TakeHead(in)) break;
    if (!TakeBody(in)) break;
    const bool is_command = frame_ == &command_ && !drop_;
    frame_ = nullptr;
    if (is_command) return Step::kCommand;
    earlier_ += size_;
    if (more_) continue;
    complete_ = true;
    return Step::kMessage;
  }
  return fault_ == ZmtpFault::kNone ? Step::kMore : Step::kFault;
}

bool ZmtpDecoder::TakeHead(std::string_view& in) {
  for (;;) {
    const bool is_long = head_size_ > 0 && (static_cast<uint8_t>(head_[0]) & kZmtpLong) != 0;
    const size_t needed = is_long ? 9 : 2;
    if (head_size_ == needed) break;
    if (in.empty()) return false;
    head_[head_size_++] = in.front();
    in.remove_prefix(1);
  }
  return ReadHead();
}

bool ZmtpDecoder::ReadHead() {
  uint64_t size = 0;
  for (size_t i = 1; i < head_size_; ++i) size = size << 8 | static_cast<uint8_t>(head_[i]);
  head_size_ = 0;
  const auto flags = static_cast<uint8_t>(head_[0]);
  constexpr uint8_t kKnown = kZmtpMore | kZmtpLong | kZmtpCommand;
  const bool odd = (flags & ~kKnown) != 0 || (flags & kZmtpCommand && flags & kZmtpMore);
  if (odd) {
    Fault(ZmtpFault::kProtocol);
    return false;
  }
  return BeginFrame(flags, size);
}

bool ZmtpDecoder::BeginFrame(uint8_t flags, uint64_t size) {
  const bool is_command = (flags & kZmtpCommand) != 0;
  if (size > (is_command ? limits_.command : limits_.message - earlier_)) {
    Fault(ZmtpFault::kSize);
    return false;
  }
  if (!is_command && frames_ == limits_.frames) {
    Fault(ZmtpFault::kFrames);
    return false;
  }
  size_ = size;
  filled_ = 0;
  drop_ = !is_command && message_.size() == ZmqMessage::kMostFrames;
  if (drop_) message_.Truncate();
  frame_ = is_command || drop_ ? &command_ : &message_.Add();
  frame_->clear();
  if (is_command) return true;
  ++frames_;
  more_ = (flags & kZmtpMore) != 0;
  return true;
}

// The old memory is freed after its bytes were copied, so both are counted.
bool ZmtpDecoder::Grow() {
  const size_t before = frame_->size();
  const size_t next = std::min(size_, std::max(kFirstStep, 2 * before));
  const bool counts = holder_ != nullptr && frame_ != &command_;
  if (counts && !holder_->Hold(earlier_ + before + next)) {
    Fault(ZmtpFault::kMemory);
    return false;
  }
  frame_->resize(next);
  if (counts) holder_->HoldAnyway(earlier_ + next);
  return true;
}

bool ZmtpDecoder::TakeBody(std::string_view& in) {
  while (filled_ < size_) {
    if (in.empty()) return false;
    if (!drop_ && filled_ == frame_->size() && !Grow()) return false;
    const size_t some = std::min((drop_ ? size_ : frame_->size()) - filled_, in.size());
    if (!drop_) std::memcpy(frame_->data() + filled_, in.data(), some);
    filled_ += some;
    in.remove_prefix(some);
  }
  return true;
}

std::span<char> ZmtpDecoder::Room() {
  if (frame_ == nullptr || drop_ || size_ - filled_ < kWorthRoom) return {};
  if (filled_ == frame_->size() && !Grow()) return {};
  return {frame_->data() + filled_, frame_->size() - filled_};
}

}  // namespace fathom
