// Is the router ready, and how is each of its workers: GET /ready, GET /health, GET /workers.
//
// What clients may see has no addresses of workers in it.
#pragma once

#include "codec/json.h"
#include "gateway/gateway_context.h"
#include "http/server_connection.h"

namespace fathom {

// 200 once the start is over and somebody can be routed to; else why not.
Answer ReadyPage(const GatewayContext& context);
Answer HealthPage(const GatewayContext& context, bool with_workers);
// The member "workers" of an object.
void WriteWorkers(JsonWriter& w, const GatewayContext& context, const FleetSnapshot& fleet);

}  // namespace fathom
