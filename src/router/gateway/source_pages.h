// Where do workers come from, and can each source be read? For /health and /metrics.
//
// The names of sources are for operators: they tell of clusters and files.
#pragma once

#include "codec/json.h"
#include "metrics/exposition.h"
#include "router/sources/worker_sources.h"

namespace fathom {

// That cannot be read now, or not yet. Null: there are no sources.
size_t StaleSources(const WorkerSources* sources);

// Writes the member "sources" of an object.
void WriteSources(JsonWriter& w, const WorkerSources* sources);

// Without names a source is called by its kind and its turn among those of its kind: "k8s-1".
void CollectSources(const WorkerSources* sources, bool with_names, Exposition& out);

}  // namespace fathom
