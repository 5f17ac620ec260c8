// Which metrics does Fathom have?
//
// All of them, by area. Code that exposes one names it by Metric("..."), which does not compile if
// the catalogue has no such row. Mock engines (mock/) have metrics of their own.
#pragma once

#include <array>
#include <string_view>

#include "metrics/feed_families.h"
#include "metrics/metric_family.h"
#include "metrics/replica_families.h"
#include "metrics/request_families.h"
#include "metrics/routing_families.h"
#include "metrics/trust_families.h"

namespace fathom {

inline constexpr std::array<MetricArea, 12> kMetricAreas = {{
    {"Requests", "Requests of clients, and their latency.", kRequestFamilies},
    {"Workers", "What the router observes of each worker, in every router mode.", kWorkerFamilies},
    {"Routing", "What cache-aware routing is worth, and what it missed.", kRoutingFamilies},
    {"Queue", "Requests that wait in the router because no rank has free capacity.",
     kQueueFamilies},
    {"Tokens", "How prompts become the tokens that are looked up.", kTokenFamilies},
    {"Trust", "Which ranks' KV events are trusted. A rank is one data-parallel rank of a worker.",
     kTrustFamilies},
    {"Block sizes", "Detected from the workers; nothing has to be set.", kBlockSizeFamilies},
    {"KV events",
     "State and content of each rank's event stream. All numbers start again at zero when a "
     "worker is removed and added again.",
     kFeedFamilies},
    {"Index", "The router's record of the workers' caches.", kIndexFamilies},
    {"Engines",
     "What engines report about themselves, polled every `--engine-load-interval`. Only of "
     "workers that are ready, and of engines that report it.",
     kEngineFamilies},
    {"Replicas", "What this router hears of the others of its group. Only with `--replicas`.",
     kReplicaFamilies},
    {"The router itself", "The running version, and limits on labels.", kOwnFamilies},
}};

// The row of the catalogue with this name.
consteval const MetricFamily& Metric(std::string_view name) {
  for (const MetricArea& area : kMetricAreas) {
    for (const MetricFamily& family : area.families) {
      if (family.name == name) return family;
    }
  }
  throw "the catalogue has no such metric";  // reached only at compile time: an error
}

}  // namespace fathom
