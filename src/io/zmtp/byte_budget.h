// How many bytes may all streams hold together, and which stream gives way when there are no more?
//
// Small messages are free: each stream may always receive them, so that a stream that fills the
// budget cannot stop the others. For a large one the memory is counted before it is taken. When the
// budget is used up, the stream that holds the most and is still receiving gives up its message; if
// that is the stream that asks, it is refused.
//
// Threads  One.
#pragma once

#include <cstddef>
#include <vector>

namespace fathom {

class ByteHolder;

class ByteBudget {
 public:
  static constexpr size_t kFree = 64 << 10;  // per stream

  explicit ByteBudget(size_t most) : most_(most) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  size_t used() const { return used_; }
  size_t most() const { return most_; }

 private:
  friend class ByteHolder;

  bool MakeRoom(const ByteHolder& asking, size_t bytes);

  const size_t most_;
  size_t used_ = 0;
  std::vector<ByteHolder*> holders_;
};

// One stream's share.
class ByteHolder {
 public:
  explicit ByteHolder(ByteBudget& budget);
  virtual ~ByteHolder();
  ByteHolder(const ByteHolder&) = delete;
  ByteHolder& operator=(const ByteHolder&) = delete;

  // From now on it holds `bytes`. False: it still holds what it held, and must not take more.
  bool Hold(size_t bytes);
  // The same, above the limit if need be: others are refused until enough is released.
  void HoldAnyway(size_t bytes);
  size_t held() const { return held_; }

 protected:
  // Releases everything with Hold(0), and returns true; or false: it cannot now.
  virtual bool GiveUp() { return false; }

 private:
  friend class ByteBudget;
  ByteBudget& budget_;
  size_t held_ = 0;
};

}  // namespace fathom
