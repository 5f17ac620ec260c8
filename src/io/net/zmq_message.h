// The frames of one ZeroMQ message. A reused message keeps the memory of small frames, and frees
// that of large ones.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fathom {

class ZmqMessage {
 public:
  static constexpr size_t kMostFrames = 16;
  // Bytes; larger frames are freed by Clear(). What is kept counts nowhere, so all kept frames
  // together are small.
  static constexpr size_t kKeptFrame = 4 << 10;

  ZmqMessage() = default;
  ZmqMessage(std::initializer_list<std::string_view> frames);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::string& operator[](size_t i) const { return frames_[i]; }
  const std::string& back() const { return frames_[size_ - 1]; }
  const std::string* begin() const { return frames_.data(); }
  const std::string* end() const { return frames_.data() + size_; }
  // The message had more than kMostFrames frames; the others were dropped.
  bool truncated() const { return truncated_; }

  void Add(std::string_view frame);
  // There was another frame, which is not kept.
  void Truncate() { truncated_ = true; }
  // One more frame, to be filled. Precondition: size() < kMostFrames.
  std::string& Add() { return frames_[size_++]; }
  void Clear();

 private:
  std::array<std::string, kMostFrames> frames_;
  size_t size_ = 0;
  bool truncated_ = false;
};

}  // namespace fathom
