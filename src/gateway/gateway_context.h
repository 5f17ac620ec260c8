// What all loops of the gateway share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "discovery/directory.h"
#include "discovery/dns_watch.h"
#include "fleet/block_sizes.h"
#include "fleet/feed_board.h"
#include "fleet/fleet.h"
#include "fleet/trust_keeper.h"
#include "gateway/admission.h"
#include "gateway/dispatch_queue.h"
#include "gateway/gateway_metrics.h"
#include "gateway/key_ring.h"
#include "gateway/retry_budget.h"
#include "gateway/tokenize_metrics.h"
#include "gateway/tokenize_roster.h"
#include "index/cache_index.h"
#include "metrics/registry.h"
#include "model/model_library.h"
#include "model/prefix_cache.h"
#include "model/token_cache.h"
#include "net/resolver.h"
#include "net/side_work.h"
#include "routing/session_affinity.h"
#include "routing/steering.h"

namespace fathom {

struct GatewayOptions {
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
  bool log_selections = true;
  bool routing_headers = true;
  Duration dispatch_timeout = std::chrono::seconds(60);  // in the line for a rank with room
  Duration fleet_wait = std::chrono::seconds(10);        // for workers that are just being asked
  SteeringOptions steering;
  Duration tokenize_timeout = std::chrono::milliseconds(250);
  size_t tokenize_cache_bytes = size_t{64} << 20;
  size_t tokenize_threads = 1;
  bool forward_tokens = false;
  bool literal_user_text = false;
  bool ask_usage = true;
  bool ready_when_trusted = false;
};

struct GatewayContext {
  // `secret` keeps outsiders from choosing which prompts collide.
  GatewayContext(const GatewayOptions& o, ModelLibrary m, Fleet& f, Directory& d, Resolver& r,
                 Registry& reg, Log& l, uint64_t secret)
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
        admin_keys(o.admin_key.empty() ? KeyRing() : KeyRing({o.admin_key})),
        steering(o.steering, secret),
        tokenizing{reg},
        models(std::move(m)),
        token_cache(o.tokenize_cache_bytes / 4 * 3, tokenizing.cache_bytes),
        prefix_cache(o.tokenize_cache_bytes / 4, secret, tokenizing.prefix_bytes),
        tokenizers(l, o.tokenize_timeout),
        side_work(models.empty() ? 0 : o.tokenize_threads) {}

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
  SteeringWorld steering;
  DispatchQueue dispatch;
  TokenizeMetrics tokenizing;
  const ModelLibrary models;
  TokenCache token_cache;
  PrefixCache prefix_cache;
  TokenizeRoster tokenizers;
  // What is known of the workers' caches; null where nobody follows them.
  const CacheIndex* cache_index = nullptr;
  const FeedBoard* feeds = nullptr;
  const BlockSizes* sizes = nullptr;   // null: nobody has to agree on them
  const TrustKeeper* trust = nullptr;  // null: caches are not looked at
  DnsWatch* dns_watch = nullptr;       // null: workers have URLs of their own only
  std::atomic<int64_t> reading{0};     // requests whose bodies are on their way
  std::atomic<bool> draining{false};   // set once, by the signal thread
  SideWork side_work;                  // last: its jobs use what is above
};

}  // namespace fathom
