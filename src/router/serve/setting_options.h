// What is each part of the router built with, as the operator set it?
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "base/result.h"
#include "config/settings.h"
#include "io/http/server_connection.h"
#include "io/net/resolver.h"
#include "router/discovery/prober.h"
#include "router/events/intake.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/model_slice.h"
#include "router/gateway/gateway_context.h"

namespace fathom {

// Random unless --seed sets it.
uint64_t SeedOf(const Settings& settings);
size_t ThreadsOf(const Settings& settings);

bool FollowsEvents(const Settings& s);
// Other modes choose without looking at prompts.
bool UsesPrompts(const Settings& s);
// Block sizes do not matter if the contents of caches are not used.
bool NeedsBlockSizes(const Settings& s);

Result<BlockSizeRules> BlockSizeRulesOf(const Settings& s);
Result<ModelSlice> SliceOf(const Settings& s);
GatewayOptions GatewayOptionsOf(const Settings& s);
ServerOptions ServerOptionsOf(const Settings& s);
ProbeOptions ProbeOptionsOf(const Settings& s);
Result<IntakeOptions> IntakeOptionsOf(const Settings& s);
Result<ResolverOptions> ResolverOptionsOf(const Settings& s, Log& log);

}  // namespace fathom
