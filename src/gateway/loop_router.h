// What one loop needs to choose workers: its own generator, its own way into the index, its own
// reader of prompts, and room that is used again from one choice to the next.
//
// Threads  One each.
#pragma once

#include <vector>

#include "fleet/fleet.h"
#include "gateway/gateway_context.h"
#include "gateway/prompt_tokens.h"
#include "routing/policy.h"
#include "routing/steering.h"

namespace fathom {

struct LoopRouter {
  LoopRouter(GatewayContext& c, Loop& l, uint64_t seed);

  GatewayContext& context;
  Loop& loop;
  FleetReader fleet;
  Chooser chooser;
  Steering steering;
  PromptReader prompts;
  // Room for a choice.
  std::vector<const Member*> eligible;
  std::vector<Candidate> candidates;
  std::vector<Place> places;
};

}  // namespace fathom
