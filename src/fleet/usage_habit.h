// Does this engine tell what a stream has used only if it is asked to?
//
// Nobody may lose what an engine tells unasked, so it is asked only after a stream in which nobody
// had asked has ended without an answer. One that never says how much it found cached is asked
// seldom. Now and then a stream is left alone, in case the engine has changed unseen.
//
// Threads    Any. One word of atomics; a stream's lesson counts only if the engine is still the one
//            that it began with.
// Staleness  Reset() forgets all of it.
#pragma once

#include <atomic>
#include <cstdint>

namespace fathom {

class UsageHabit {
 public:
  static constexpr uint16_t kPatience = 8;     // answers without details, until it is asked seldom
  static constexpr uint32_t kSeldom = 64;      // one stream in so many is asked in then
  static constexpr uint32_t kLeftAlone = 256;  // one in so many is not, otherwise

  // What to do with a stream in which the client does not ask.
  struct Plan {
    bool ask = false;
    bool null_unasked = false;  // without a question its events say "usage":null
    uint32_t life = 0;
  };
  Plan Next();

  // A stream in which nobody had asked is complete.
  void LearnUnasked(const Plan& plan, bool told, bool nulls);
  // One in which we had asked is: did it say how much was cached?
  void LearnAsked(const Plan& plan, bool details);

  // It answered a request that it had refused with the question in it.
  void LearnRefused(const Plan& plan);

  // Whoever answers from now on may be another engine.
  void Reset();

 private:
  enum class State : uint8_t { kUnknown, kOnlyIfAsked, kAlways, kRefuses };

  // All of it at once, so that a lesson of an earlier life cannot slip in.
  struct Known {
    uint32_t life = 0;
    State state = State::kUnknown;
    uint8_t null_unasked = 0;
    uint16_t lacking = 0;  // answers without details, one after the other
  };
  static_assert(sizeof(Known) == sizeof(uint64_t));

  template <class Change>
  void Revise(const Plan& plan, Change change);

  std::atomic<Known> known_{Known{}};  // orders nothing else
  std::atomic<uint32_t> turn_{0};      // orders nothing else
};

// One worker's, by what its answers are made of: engines write chats and texts differently.
struct UsageHabits {
  UsageHabit chats;
  UsageHabit texts;

  void Reset() { chats.Reset(), texts.Reset(); }
};

}  // namespace fathom
