// Which metrics does Fathom have?
//
// All of them, by area. Whoever exposes one names it by Metric("..."), which does not compile
// when the catalogue has no such row. Engines that are played by mock/ have metrics of their own.
#pragma once

#include <array>
#include <string_view>

#include "metrics/feed_families.h"
#include "metrics/metric_family.h"
#include "metrics/request_families.h"
#include "metrics/routing_families.h"
#include "metrics/trust_families.h"

namespace fathom {

inline constexpr std::array<MetricArea, 11> kMetricAreas = {{
    {"Requests", "What clients ask for, and how it feels to them.", kRequestFamilies},
    {"Workers", "What the router sees of each worker, whatever the router mode.", kWorkerFamilies},
    {"Routing", "What cache-aware routing is worth, and what it missed.", kRoutingFamilies},
    {"Queue", "Requests that wait in the router because no rank has room.", kQueueFamilies},
    {"Tokens", "How prompts become the tokens that are looked up.", kTokenFamilies},
    {"Trust", "Whose KV events are believed. A rank is one data-parallel rank of a worker.",
     kTrustFamilies},
    {"Block sizes", "Found out from the workers; nothing has to be set.", kBlockSizeFamilies},
    {"KV events",
     "How each rank's stream of events flows, and what it says. All numbers start again at zero "
     "when a worker leaves and comes back.",
     kFeedFamilies},
    {"Index", "What is remembered of the workers' caches.", kIndexFamilies},
    {"Engines",
     "What engines say of themselves, asked every `--engine-load-interval`. Of workers that are "
     "ready, and of engines that tell.",
     kEngineFamilies},
    {"The router itself", "What runs here.", kOwnFamilies},
}};

// The row of the catalogue with this name.
consteval const MetricFamily& Metric(std::string_view name) {
  for (const MetricArea& area : kMetricAreas) {
    for (const MetricFamily& family : area.families) {
      if (family.name == name) return family;
    }
  }
  throw "the catalogue has no such metric";  // which no compiler evaluates
}

}  // namespace fathom
