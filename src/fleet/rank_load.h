// How much of our work lies on this rank?
//
// Each request stays on its rank from dispatch to its last byte: first as prefill work, in the
// order of arrival, as engines take it; from its first byte on as context that is decoded. When all
// stays have ended every number is exactly zero again, whatever happened to the requests.
//
// Progress  The oldest prefill is under way, so part of the backlog is done already. How much is an
//           estimate from the engines' speed; the next first byte corrects it. A request whose
//           answer comes whole announces no first token: it counts as prefilled when its time is
//           over, or when one that came after it has its first byte.
// Threads   Any; a short lock.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace fathom {

class RankLoad {
 public:
  enum class Kind : uint8_t { kAnnounced, kSilent };

  // One request on the rank. Whoever keeps it must Leave() before it goes.
  class Stay {
   public:
    Stay() = default;
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    friend class RankLoad;
    double work_ = 0;       // while it prefills
    uint64_t context_ = 0;  // tokens that leave with it
    uint64_t grown_ = 0;    // tokens that were generated
    Kind kind_ = Kind::kAnnounced;
    bool here_ = false;
    bool prefilling_ = false;
    Stay* before_ = nullptr;  // among those that prefill
    Stay* after_ = nullptr;
  };

  struct View {
    double backlog = 0;    // work before a newcomer's, what is done already taken off
    double queued = 0;     // work of all requests without a first byte, done or not
    uint64_t context = 0;  // tokens that all requests keep there
    uint32_t requests = 0;
    uint32_t waiting = 0;  // of these, without a first byte
    friend bool operator==(const View&, const View&) = default;
  };

  void Enter(Stay& stay, Kind kind, double work, uint64_t context, TimePoint now);
  // Its first byte has come: it is prefilled, and so are the silent ones before it.
  void FirstByte(Stay& stay, TimePoint now);
  // It has so many tokens more.
  void Grow(Stay& stay, uint64_t tokens);
  // What it brought is shared by now: so much of it leaves with it, and not what it brought.
  void SetShare(Stay& stay, uint64_t context);
  void Leave(Stay& stay, TimePoint now);

  // `unit` is how many nanoseconds a unit of work lasts.
  View Look(TimePoint now, double unit);

 private:
  // With mutex_ held.
  void EndPrefill(Stay& stay, TimePoint now);
  void EndOverdue(TimePoint now, double unit);

  std::mutex mutex_;
  Stay* oldest_ = nullptr;  // guarded by mutex_, as everything below
  Stay* youngest_ = nullptr;
  double queued_ = 0;
  uint64_t context_ = 0;
  uint32_t requests_ = 0;
  uint32_t waiting_ = 0;
  TimePoint busy_since_{};  // when the oldest prefill began, while there is one
};

}  // namespace fathom
