// What did the demo show, in the end? Both sides beside each other, and one sentence.
#pragma once

#include <string>

#include "lab/demo/demo_moment.h"

namespace fathom {

// What stays on the screen: a table of a width of its own, with the verdict below it.
std::string RenderSummary(const DemoMoment& moment, bool color);

}  // namespace fathom
