// What does this request show about the rank that serves it, and how much was wasted because it did
// not go to another?
//
//   created    when the request is dispatched: notes the prediction, the other ranks that hold its
//              prefix, and sometimes its tokens, to compare them with the rank's events
//   FirstByte  the engine has computed the prompt: its blocks are remembered
//   End        compares the engine's cached tokens with the prediction; waste is assigned to causes
//
// Time is always passed in, as in Steering.
//
// Threads  One, the steering's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "router/fleet/fleet.h"
#include "router/fleet/served_request.h"
#include "router/routing/steering.h"
#include "router/routing/waste.h"

namespace fathom {

class Testimony {
 public:
  struct About {
    const FleetSnapshot& fleet;
    std::string_view model;
    bool exact = false;       // the tokens are those of the whole prompt
    bool comparable = false;  // nothing in the request changes how the engine counts cached tokens
    bool narrowed = false;    // the request's own option excluded places
  };
  // For the decision that `steering` just made. The fleet and `lost`, which may be null, must
  // outlive the testimony.
  Testimony(LostBlocks* lost, Steering& steering, const Steering::Choice& choice,
            const RouteQuestion& question, const About& about, TimePoint now);
  ~Testimony();
  Testimony(const Testimony&) = delete;
  Testimony& operator=(const Testimony&) = delete;

  void FirstByte(TimePoint now);

  struct Outcome {
    uint32_t predicted = 0;         // tokens
    std::optional<uint32_t> found;  // if comparable
    Waste waste;
  };
  // `cached` is the engine's report, if any. Returns nullopt if the request failed.
  std::optional<Outcome> End(std::optional<uint32_t> cached, TimePoint now);

 private:
  void NoteOthers(const Decision& decision, std::span<const Steering::Outsider> outsiders,
                  const About& about);
  void NoteLost(Steering& steering, const About& about, TimePoint now);
  void Note(WasteCause cause, uint32_t tokens, Rank* owner);
  void NoteBlocks(Steering& steering, const RouteQuestion& question, const About& about, bool busy,
                  TimePoint now);
  void CountServed(const Waste& waste, uint32_t evicted, std::optional<uint32_t> found,
                   TimePoint now);

  LostBlocks* const lost_blocks_;
  Rank& rank_;
  const RankLabel label_;
  BlockShape shape_;
  ServedRequest served_;
  KnownPrefixes known_;
  std::array<Rank*, kWasteCauses> owners_{};  // by cause; null: no rank is responsible
  std::vector<uint64_t> keys_;                // of the blocks that the engine computes for it
  uint64_t note_ = 0;
  bool first_byte_ = false;
};

}  // namespace fathom
