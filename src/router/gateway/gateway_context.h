// State that all loops of the gateway share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/repeat_limit.h"
#include "base/request_memory.h"
#include "io/http/client_connection.h"
#include "io/net/resolver.h"
#include "io/net/side_work.h"
#include "metrics/registry.h"
#include "router/discovery/directory.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/feed_board.h"
#include "router/fleet/fleet.h"
#include "router/fleet/token_parity.h"
#include "router/fleet/trust_keeper.h"
#include "router/gateway/admin_door.h"
#include "router/gateway/admission.h"
#include "router/gateway/blind_prompts.h"
#include "router/gateway/dispatch_queue.h"
#include "router/gateway/gateway_metrics.h"
#include "router/gateway/key_ring.h"
#include "router/gateway/pass_routes.h"
#include "router/gateway/peer_directory.h"
#include "router/gateway/prompt_watch.h"
#include "router/gateway/retry_budget.h"
#include "router/gateway/search_board.h"
#include "router/gateway/tokenize_metrics.h"
#include "router/gateway/tokenize_roster.h"
#include "router/index/cache_index.h"
#include "router/replicas/replica_view.h"
#include "router/routing/response_pins.h"
#include "router/routing/session_affinity.h"
#include "router/routing/session_hints.h"
#include "router/routing/steering.h"
#include "router/sources/worker_sources.h"
#include "text/model/model_library.h"
#include "text/model/prefix_cache.h"
#include "text/model/token_cache.h"

namespace fathom {

struct GatewayOptions {
  uint64_t seed = 0;
  Duration session_ttl = std::chrono::minutes(10);
  std::vector<HintKind> session_hints;  // in the order in which they count
  uint32_t max_in_flight = 10000;
  uint32_t max_waiting = 1000;
  Duration queue_timeout = std::chrono::seconds(30);
  Duration connect_timeout = std::chrono::seconds(2);
  Duration first_byte_timeout = std::chrono::seconds(600);
  Duration idle_timeout = std::chrono::seconds(120);
  Duration request_timeout = std::chrono::seconds(3600);
  Duration silent_stream_grace = std::chrono::seconds(5);
  size_t max_head = ClientConnection::kUsualMaxHead;  // of an answer
  size_t pool_size = 256;
  Duration pool_idle_timeout = std::chrono::seconds(4);
  uint32_t retry_attempts = 3;  // attempts in total
  double retry_budget = 0.2;
  size_t retry_answer_bytes = size_t{1} << 20;  // of an answer that is held; 0: none is
  std::vector<std::string> api_keys;
  std::vector<std::string> admin_keys;
  AdminRules main_listener;              // that clients use
  AdminRules admin_listener;             // of the admin routes, where they have one of their own
  std::vector<std::string> pass_routes;  // beside those of inference
  bool allow_transfer_fields = false;    // clients may steer transfers between engines
  bool metrics_urls = false;             // URLs of workers in the metrics of the main listener too
  bool log_requests = false;
  bool log_selections = true;
  bool routing_headers = true;
  Duration dispatch_timeout = std::chrono::seconds(60);  // in the dispatch queue
  Duration fleet_wait = std::chrono::seconds(10);        // for workers whose first probe is pending
  Duration replay_wait{};  // for replays of workers that have just joined
  SteeringOptions steering;
  Duration tokenize_timeout = std::chrono::milliseconds(250);
  size_t tokenize_cache_bytes = size_t{64} << 20;
  size_t tokenize_threads = 1;
  uint64_t prompt_bytes = uint64_t{4}
                          << 30;  // token ids of all prompts, and texts on their way to them
  bool forward_tokens = false;
  bool literal_user_text = false;
  bool ask_usage = true;
  bool ready_when_trusted = false;
  bool ready_when_informed = false;
  Duration replay_timeout = std::chrono::seconds(5);  // a replay without progress is not awaited
  std::string replica_id = "router";  // told to replicas that requests are forwarded to
  std::string replica_ca_file;        // authorities of their URLs; empty: the system's
};

struct GatewayContext {
  // `secret` is random, so that clients cannot construct prompts with colliding keys.
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
        affinity(o.session_ttl, secret),
        response_pins(secret),
        response_searches(secret),
        hints(o.session_ttl, secret),
        api_keys(o.api_keys),
        admin_keys(o.admin_keys),
        routes(o.pass_routes),
        steering(o.steering, secret),
        tokenizing{reg},
        prompt_watch(reg, l),
        models(std::move(m)),
        token_cache(o.tokenize_cache_bytes / 4 * 3, tokenizing.cache_bytes),
        prefix_cache(o.tokenize_cache_bytes / 4, secret, tokenizing.prefix_bytes),
        prompt_memory(o.prompt_bytes),
        tokenizers(l, o.tokenize_timeout),
        peers(o.replica_ca_file),
        side_work(models.empty() && !models.expects_more() ? 0 : o.tokenize_threads) {}

  const GatewayOptions options;
  Fleet& fleet;
  Directory& directory;
  Resolver& resolver;
  Registry& registry;
  Log& log;
  RepeatLimits broken_answer_lines{{.freely = 10}};  // by worker
  RepeatLimits peer_lines;                           // by replica
  GatewayMetrics metrics;
  Admission admission;
  RetryBudget retry_budget;
  SessionAffinity affinity;
  ResponsePins response_pins;
  SearchBoard response_searches;
  SessionHints hints;
  Turn turn{0};
  KeyRing api_keys;
  KeyRing admin_keys;
  const PassRoutes routes;
  SteeringWorld steering;
  DispatchQueue dispatch;
  TokenizeMetrics tokenizing;
  PromptWatch prompt_watch;
  BlindPrompts blind_prompts;
  const ModelLibrary models;
  TokenCache token_cache;
  PrefixCache prefix_cache;
  RequestMemory prompt_memory;
  RequestMemory held_answers{uint64_t{256} << 20};  // those that do not fit are not held
  TokenizeRoster tokenizers;
  ParityBoard parity;   // whether engines have the tokens of the models' files
  PeerDirectory peers;  // other replicas, and the models that they serve
  // The contents of the workers' caches; null if KV events are not followed.
  const CacheIndex* cache_index = nullptr;
  const FeedBoard* feeds = nullptr;
  BlockSizes* sizes = nullptr;             // null: block sizes are not checked
  const TrustKeeper* trust = nullptr;      // null: caches are not used for routing
  WorkerSources* sources = nullptr;        // null: workers cannot be added
  const ReplicaBoard* replicas = nullptr;  // null: this router chooses alone
  std::atomic<int64_t> reading{0};         // requests whose bodies are being received
  std::atomic<bool> draining{false};       // set once, by the signal thread
  // Set once: the index was complete after the start (--ready-when informed).
  mutable std::atomic<bool> was_informed{false};
  SideWork side_work;  // last: its jobs use the members above
};

}  // namespace fathom
