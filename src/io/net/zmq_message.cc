#include "io/net/zmq_message.h"

namespace fathom {

ZmqMessage::ZmqMessage(std::initializer_list<std::string_view> frames) {
  for (const std::string_view frame : frames) Add(frame);
}

void ZmqMessage::Add(std::string_view frame) {
  if (size_ == kMostFrames) {
    truncated_ = true;
    return;
  }
  Add().assign(frame);
}

void ZmqMessage::Clear() {
  for (size_t i = 0; i < size_; ++i) {
    if (frames_[i].capacity() > kKeptFrame) frames_[i] = std::string();
  }
  size_ = 0;
  truncated_ = false;
}

}  // namespace fathom
