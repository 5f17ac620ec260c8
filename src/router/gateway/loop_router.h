// What one loop needs to select workers: its own random generator, index reader and prompt reader,
// and buffers that are reused from one decision to the next.
//
// Threads  One each.
#pragma once

#include <memory>
#include <vector>

#include "router/fleet/fleet.h"
#include "router/gateway/gateway_context.h"
#include "router/gateway/prompt_tokens.h"
#include "router/gateway/response_search.h"
#include "router/gateway/rosters.h"
#include "router/routing/policy.h"
#include "router/routing/steering.h"

namespace fathom {

struct LoopRouter {
  LoopRouter(GatewayContext& c, Loop& l, uint64_t seed);

  GatewayContext& context;
  Loop& loop;
  FleetReader fleet;
  Policy policy;
  Steering steering;
  PromptReader prompts;
  const std::shared_ptr<ResponseSearch> responses;
  Rosters rosters;
  // Buffers for a decision.
  std::vector<const Member*> eligible;
  std::vector<Candidate> candidates;
  std::vector<Place> places;
};

}  // namespace fathom
