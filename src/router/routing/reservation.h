// The load of one request on its rank, from dispatch to its last byte.
//
// However the request ends, Release() (or the destructor) subtracts exactly what was added.
//
// Threads  One at a time.
#pragma once

#include "router/routing/steering.h"

namespace fathom {

class Reservation {
 public:
  // Only the first byte of a stream shows how long the prefill took; other answers arrive complete.
  enum class Answer : uint8_t { kStreamed, kWhole };

  // For the decision that `steering` just made about the prompt in the question. The place's worker
  // must outlive the reservation.
  Reservation(Steering& steering, const Steering::Choice& choice, const RouteQuestion& question,
              Answer answer, TimePoint now);
  ~Reservation() { Release(now_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // The first byte of a successful answer.
  void FirstByte(TimePoint now);
  // The engine generated `tokens` more.
  void Grow(uint64_t tokens) { rank_.load.Grow(stay_, tokens); }
  void Release(TimePoint now);

 private:
  SteeringWorld& world_;
  Rank& rank_;
  const Answer answer_;
  const TimePoint sent_at_;
  const uint64_t life_;  // of the engine that it was sent to
  TimePoint now_;        // time of the last call, for the destructor
  double ahead_;         // queued work until its first token, including its own
  bool first_byte_ = false;
  bool released_ = false;
  uint64_t guess_ = 0;  // number in the ApproximateIndex, if there is one
  uint64_t rest_;       // tokens of the prompt after the last mark; never shared
  RankLoad::Stay stay_;
  SentPrompts::Sending sending_;
};

}  // namespace fathom
