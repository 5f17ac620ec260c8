// What does this request tell about the rank that it goes to, and what is lost because it did not
// go to another?
//
//   made       when its place is booked: notes what was predicted, who else knew its prefix, and
//              sometimes its tokens, for the rank's events to be held against
//   FirstByte  the engine has computed it: its blocks are remembered
//   End        what the engine found is held against what was predicted; waste is shared out
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

#include "fleet/fleet.h"
#include "fleet/served_request.h"
#include "routing/steering.h"
#include "routing/waste.h"

namespace fathom {

class Testimony {
 public:
  struct About {
    const FleetSnapshot& fleet;
    std::string_view model;
    bool exact = false;       // the tokens are those of the whole prompt
    bool comparable = false;  // the engine counts cached tokens as for any request
    bool narrowed = false;    // the request's own wish left only some places
  };
  // The decision that `steering` just made. The fleet and `lost`, which may be null, outlive it.
  Testimony(LostBlocks* lost, Steering& steering, const Steering::Choice& choice,
            const RouteQuestion& question, const About& about, TimePoint now);
  ~Testimony();
  Testimony(const Testimony&) = delete;
  Testimony& operator=(const Testimony&) = delete;

  void FirstByte(TimePoint now);

  struct Outcome {
    uint32_t predicted = 0;         // tokens
    std::optional<uint32_t> found;  // where it can be compared
    Waste waste;
  };
  // `cached` is what the engine says, if it does. Nothing: it came to nothing.
  std::optional<Outcome> End(std::optional<uint32_t> cached, TimePoint now);

 private:
  void NoteOthers(const Decision& decision, std::span<const Steering::Outsider> outsiders,
                  const About& about);
  void NoteLost(const CacheReader::Lost& lost, const About& about, TimePoint now);
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
  std::array<Rank*, kWasteCauses> owners_{};  // of what was known; null: nobody is to blame
  std::vector<uint64_t> keys_;                // of blocks that the engine will have computed
  uint64_t note_ = 0;
  bool first_byte_ = false;
};

}  // namespace fathom
