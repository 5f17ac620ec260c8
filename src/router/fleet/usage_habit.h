// Does this engine send the usage of a stream only if the request asks for it?
//
// Usage that an engine sends unasked must reach the client. Therefore the router asks for usage
// only after an unasked stream has ended without it. An engine whose usage never has cached tokens
// is asked rarely. Occasionally a stream is left unasked, in case the engine has changed unnoticed.
//
// Threads    Any. The state is one atomic word; a stream's result counts only if there was no
//            Reset() since the stream began.
// Staleness  Reset() forgets all of it.
#pragma once

#include <atomic>
#include <cstdint>

namespace fathom {

class UsageHabit {
 public:
  static constexpr uint16_t kPatience = 8;     // answers without details before it is asked rarely
  static constexpr uint32_t kSeldom = 64;      // then one stream in this many asks
  static constexpr uint32_t kLeftAlone = 256;  // otherwise one in this many does not ask

  // What to do with a stream whose client does not ask for usage.
  struct Plan {
    bool ask = false;
    bool null_unasked = false;  // when unasked, its events have "usage":null
    uint32_t life = 0;
  };
  Plan Next();

  // A stream without a request for usage is complete.
  void LearnUnasked(const Plan& plan, bool told, bool nulls);
  // A stream in which the router asked is complete; `details`: it had the cached tokens.
  void LearnAsked(const Plan& plan, bool details);

  // The engine refused a request that asked for usage and answered it without.
  void LearnRefused(const Plan& plan);

  // The engine that answers from now on may be a different one.
  void Reset();

 private:
  enum class State : uint8_t { kUnknown, kOnlyIfAsked, kAlways, kRefuses };

  // One word, so that a result from before a Reset() cannot be applied after it.
  struct Known {
    uint32_t life = 0;
    State state = State::kUnknown;
    uint8_t null_unasked = 0;
    uint16_t lacking = 0;  // consecutive answers without details
  };
  static_assert(sizeof(Known) == sizeof(uint64_t));

  template <class Change>
  void Revise(const Plan& plan, Change change);

  std::atomic<Known> known_{Known{}};  // relaxed, pairs with nothing
  std::atomic<uint32_t> turn_{0};      // relaxed, pairs with nothing
};

// Per worker, by kind of answer: engines send usage differently in chats and in text completions.
struct UsageHabits {
  UsageHabit chats;
  UsageHabit texts;

  void Reset() { chats.Reset(), texts.Reset(); }
};

}  // namespace fathom
