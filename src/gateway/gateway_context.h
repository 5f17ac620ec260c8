// What all loops of the gateway share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "discovery/directory.h"
#include "fleet/feed_board.h"
#include "fleet/fleet.h"
#include "gateway/admission.h"
#include "gateway/gateway_metrics.h"
#include "gateway/key_ring.h"
#include "gateway/retry_budget.h"
#include "index/cache_index.h"
#include "metrics/registry.h"
#include "net/resolver.h"
#include "routing/policy.h"
#include "routing/session_affinity.h"

namespace fathom {

struct GatewayOptions {
  RouterMode router_mode = RouterMode::kRoundRobin;
  uint64_t seed = 0;
  Duration session_ttl = std::chrono::minutes(10);
  uint32_t max_in_flight = 10000;
  uint32_t max_waiting = 1000;
  Duration queue_timeout = std::chrono::seconds(30);
  Duration connect_timeout = std::chrono::seconds(2);
  Duration first_byte_timeout = std::chrono::seconds(600);
  Duration idle_timeout = std::chrono::seconds(120);
  Duration request_timeout = std::chrono::seconds(3600);
  Duration silent_stream_grace = std::chrono::seconds(5);
  size_t pool_size = 256;
  Duration pool_idle_timeout = std::chrono::seconds(4);
  uint32_t retry_attempts = 3;  // tries in all
  double retry_budget = 0.2;
  std::vector<std::string> api_keys;
  std::string admin_key;
  bool admin_elsewhere = false;  // the admin routes have a listener of their own
  bool log_requests = false;
};

struct GatewayContext {
  GatewayContext(const GatewayOptions& o, Fleet& f, Directory& d, Resolver& r, Registry& reg,
                 Log& l)
      : options(o),
        fleet(f),
        directory(d),
        resolver(r),
        registry(reg),
        log(l),
        metrics(reg),
        admission(o.max_in_flight, o.max_waiting),
        retry_budget(o.retry_budget),
        affinity(o.session_ttl),
        api_keys(o.api_keys),
        admin_keys(o.admin_key.empty() ? KeyRing() : KeyRing({o.admin_key})) {}

  const GatewayOptions options;
  Fleet& fleet;
  Directory& directory;
  Resolver& resolver;
  Registry& registry;
  Log& log;
  GatewayMetrics metrics;
  Admission admission;
  RetryBudget retry_budget;
  SessionAffinity affinity;
  Turn turn{0};
  const KeyRing api_keys;
  const KeyRing admin_keys;
  // What is known of the workers' caches; null where nobody follows them.
  const CacheIndex* cache_index = nullptr;
  const FeedBoard* feeds = nullptr;
  std::atomic<int64_t> reading{0};    // requests whose bodies are on their way
  std::atomic<bool> draining{false};  // set once, by the signal thread
};

}  // namespace fathom
