// What does the demo show, in sentences? The comparison, once there are enough samples, and the
// story of the fault.
#pragma once

#include <string>
#include <vector>

#include "lab/demo/demo_moment.h"

namespace fathom {

// Whether both sides have kLeastSamples: fewer are no comparison.
bool HasVerdict(const DemoMoment& moment);

// Two lines: the headline and its numbers, or what is being measured and how many samples there
// are. With one side only, follow-up turns are compared with first turns. Empty without sides.
std::vector<std::string> RenderVerdict(const DemoMoment& moment);

// Who talks to whom: "4 workers, 12 people in conversation".
std::string RenderScene(const DemoMoment& moment);

// Which worker's events are lost, what the router made of it, and what it costs. Empty for a side
// that does not route by events.
std::string RenderFault(const SideMoment& side);
// The next step for the reader; empty if there is none.
std::string RenderFaultAdvice(const SideMoment& side);

}  // namespace fathom
