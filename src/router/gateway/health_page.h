// Is the router ready, and in which state is each worker: GET /ready, GET /health, GET /workers.
//
// The version for clients contains no worker addresses.
#pragma once

#include "codec/json.h"
#include "io/http/server_connection.h"
#include "router/gateway/gateway_context.h"

namespace fathom {

// 200 once the start is over and at least one worker is routable; else the reason.
Answer ReadyPage(const GatewayContext& context);
Answer HealthPage(const GatewayContext& context, bool with_workers);
// Writes the member "workers" of an object.
void WriteWorkers(JsonWriter& w, const GatewayContext& context, const FleetSnapshot& fleet);

}  // namespace fathom
