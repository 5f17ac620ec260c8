// Which routers are in the group, and how well do they hear each other? For /health and /metrics.
#pragma once

#include "codec/json.h"
#include "metrics/exposition.h"
#include "router/gateway/peer_directory.h"
#include "router/replicas/replica_view.h"

namespace fathom {

// Writes the members "replicas", "replica_group" and "replica_carrier" of an object. Null: the
// router is in no group.
void WriteReplicas(JsonWriter& w, const ReplicaBoard* board);

// What is wrong with the group, in words; empty: nothing.
std::string ReplicaProblem(const ReplicaBoard* board);

void CollectReplicas(const ReplicaBoard& board, Exposition& out);
void CollectForwarded(const PeerDirectory::Counts& counts, Exposition& out);

}  // namespace fathom
