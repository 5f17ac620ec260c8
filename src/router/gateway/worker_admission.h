// What does a worker still wait for before requests go to it, and who asks?
//
// A worker is admitted once the router's own checks are done, its block size is agreed on, and its
// part of the index is filled. A pod that Kubernetes does not call ready yet counts as admitted:
// its readiness may be what asks here.
//
// Threads  Any.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "codec/http_head.h"
#include "io/http/server_connection.h"
#include "metrics/exposition.h"
#include "router/gateway/gateway_context.h"

namespace fathom {

enum class WaitsFor : uint8_t { kNothing, kInterview, kBlockSize, kReplay };

// "" for nothing.
std::string_view Name(WaitsFor what);

// Nothing, too, if it is unhealthy or excluded: then it is not on its way.
WaitsFor WaitOf(const GatewayContext& context, const Member& member, TimePoint now);
bool IsAdmitted(const GatewayContext& context, const Member& member, TimePoint now);

// Whether this is one of the two questions below.
bool AsksOfOneWorker(const RequestHead& head, std::string_view path);

// GET /workers/{id}/ready, for operators: 200, or 503 with what it waits for; 404.
Answer WorkerReadyPage(const GatewayContext& context, std::string_view id);

// GET /ready?worker=URL, for everyone: 200 or 503, and nothing else about the fleet. nullopt: the
// query names no worker.
std::optional<Answer> ReadyOfWorker(const GatewayContext& context, const RequestHead& head);

void CollectWaits(const GatewayContext& context, const FleetSnapshot& fleet, Exposition& out);

}  // namespace fathom
