// One request's place in the books, from its dispatch to its last byte.
//
// Whatever becomes of the request, Release() (or the end of this object) takes out exactly what was
// put in.
//
// Threads  One at a time.
#pragma once

#include "routing/steering.h"

namespace fathom {

class Reservation {
 public:
  // Which first bytes tell how long the prefill took: those of streams. Another answer comes whole.
  enum class Answer : uint8_t { kStreamed, kWhole };

  // The decision that `steering` just made, for the prompt in the question. The place's worker must
  // outlive it.
  Reservation(Steering& steering, const Steering::Choice& choice, const RouteQuestion& question,
              Answer answer, TimePoint now);
  ~Reservation() { Release(now_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // The first byte of an answer that is worth learning from.
  void FirstByte(TimePoint now);
  // Tokens were generated.
  void Grow(uint64_t tokens) { rank_.load.Grow(stay_, tokens); }
  void Release(TimePoint now);

 private:
  SteeringWorld& world_;
  Rank& rank_;
  const Answer answer_;
  const TimePoint sent_at_;
  TimePoint now_;  // the last time that was heard of
  double ahead_;   // work until its first token, its own included
  bool first_byte_ = false;
  bool released_ = false;
  uint64_t guess_ = 0;  // its number, where depths are guessed
  uint64_t rest_;       // tokens of the prompt that nobody can share
  RankLoad::Stay stay_;
  SentPrompts::Sending sending_;
};

}  // namespace fathom
