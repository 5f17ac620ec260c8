// What have others polled from an engine of which it is not known here yet that it is polled?
//
// A router that starts looks for the engine's events while another one already polls, and passes on
// each event once. What comes in the meantime is kept until the stream begins.
//
// Memory   kMost words, counted in the intake's budget. What does not fit is dropped; the stream
//          then finds that events are missing.
// Threads  The intake's loop.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "io/zmtp/byte_budget.h"
#include "router/events/poll_turn.h"

namespace fathom {

class EarlyWords {
 public:
  static constexpr size_t kMost = 256;

  // A word without events is not kept: what others know is asked when the stream begins.
  void Keep(ByteBudget& budget, PolledWord word);
  // In the order in which they came. Holds nothing of the budget after that.
  std::vector<PolledWord> Take();

 private:
  std::vector<PolledWord> words_;
  size_t bytes_ = 0;  // of them
  std::optional<ByteHolder> held_;
};

}  // namespace fathom
