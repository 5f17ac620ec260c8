// How do messages come from libnats' threads to our loop?
//
// Bounded: what arrives while kMostBytes wait is dropped and counted. The loop handles them in
// shares, so that others have their turn.
//
// Threads  Take() and Tell(): any. The others and all callbacks: the loop's.
// Ending   After Close() no callback is called and the loop is not used.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "io/net/loop.h"
#include "io/net/yield.h"

namespace fathom {

class NatsInbox : public std::enable_shared_from_this<NatsInbox> {
 public:
  static constexpr size_t kMostBytes = 16 << 20;
  static constexpr size_t kOverhead = 128;  // of each message

  using OnMessage = std::function<void(std::string_view bytes)>;
  // Connected or not, and what is wrong.
  using OnState = std::function<void(bool up, const std::string& problem)>;

  explicit NatsInbox(Loop& loop) : loop_(loop), share_(loop) {}

  void Open(OnMessage on_message, OnState on_state);
  void Close();

  void Take(std::string_view bytes);
  void Tell(bool up, std::string problem);

  struct Counts {
    uint64_t bytes = 0;
    uint64_t missed = 0;  // messages that were dropped
  };
  Counts counts() const;

 private:
  void Drain();
  void PostDrain();  // under the mutex

  Loop& loop_;
  OnMessage on_message_;
  OnState on_state_;
  LoopShare share_;

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  bool draining_ = false;
  bool closed_ = true;
  Counts counts_;
};

}  // namespace fathom
