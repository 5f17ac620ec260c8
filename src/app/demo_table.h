// What did the demo show, in the end? Both sides beside each other, and one sentence.
#pragma once

#include <string>

#include "app/demo_moment.h"

namespace fathom {

// "follow-up turns: kv 15 ms, round-robin 90 ms: 6.0 times sooner". With one side only, follow-up
// turns are compared with first turns.
std::string RenderVerdict(const DemoMoment& moment);

// Who talks to whom: "4 workers, 12 people in conversation".
std::string RenderScene(const DemoMoment& moment);

// What stays on the screen: a table of a width of its own, with the verdict below it.
std::string RenderSummary(const DemoMoment& moment, bool color);

}  // namespace fathom
