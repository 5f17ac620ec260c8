// What does a running Fathom say of itself, its workers and what it has done so far?
//
// Its own pages: /health, /ready, /metrics, /debug/index and /debug/decisions. Without the admin
// key they leave out the workers, which is said.
//
// Threads  On the loop.
// Memory   At most kMaxWorkers workers with kMaxRanks ranks each, kMaxModels models and
//          kMaxSources sources and kMaxReplicas replicas.
// Errors   None: what a page does not say stays empty, and `problem` says why there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/doctor/metrics_page.h"
#include "diagnose/doctor/read_only_client.h"

namespace fathom {

// One rank's stream of events as the router follows it, from /debug/index.
struct FollowedFeed {
  std::string source;
  bool connected = false;
  std::string reach;  // "open", "refused", ...
  uint64_t batches = 0;
  uint64_t stored_blocks = 0;
  uint64_t removed_blocks = 0;
  uint64_t clears = 0;
  uint64_t gaps = 0;
  uint64_t lost_batches = 0;
  uint64_t malformed = 0;          // batches and events
  uint64_t mismatched_events = 0;  // of another block size than the one in use
  uint64_t restarts = 0;
  uint64_t parked_blocks = 0;  // their parent was not known
  uint64_t adopted_blocks = 0;
  uint64_t unknown_removed = 0;
  uint64_t unsupported_groups = 0;
  uint64_t blocks = 0;
  uint32_t block_size = 0;  // as events say; 0 before the first
};

// Texts are empty, and numbers 0, where the router has not said.
struct RoutedRank {
  uint32_t rank = 0;
  std::string trust;  // "trusted", "doubted", ...
  std::string cause;  // "block_size_mismatch", ...
  std::string since;
  std::string evidence;
  std::string fix;
  std::string events;  // where they come from
  uint64_t cost_tokens = 0;
  double credit = 0;  // of a plain prompt, 0 to 1
  uint64_t blocks = 0;
  std::optional<double> last_event_age;  // seconds
  std::optional<FollowedFeed> feed;
};

struct RoutedWorker {
  uint64_t id = 0;
  std::string url;
  std::vector<std::string> models;
  std::string state;  // "ready", "unhealthy", ...
  std::string cause;
  std::string circuit;
  std::string engine;
  uint32_t block_size = 0;
  std::string block_size_source;
  uint64_t kv_tokens = 0;
  uint64_t kv_blocks = 0;
  uint64_t context_length = 0;
  uint64_t max_running = 0;
  uint64_t batch_tokens = 0;
  std::optional<bool> prefix_caching;
  uint64_t running = 0;
  uint64_t waiting = 0;
  std::optional<double> cache_usage;
  uint64_t in_flight = 0;
  uint64_t requests = 0;
  std::vector<RoutedRank> ranks;
};

// Whether the prompts of a model are read.
struct RoutedModel {
  std::string model;
  std::string status;  // "ok", "degraded"
  std::string cause;   // "prompts_unread", "prompts_by_text"; empty: they are read
  double share = 0;    // of the last prompts
  std::string reason;  // of the latest one: "no_tokenizer", ...
  std::string route;
  std::string engine;
  uint64_t cost_tokens = 0;
  std::string fix;
};

// Where the router learns which workers there are.
struct RoutedSource {
  std::string source;   // "k8s://prod/vllm:http"
  std::string status;   // "ok", "stale"
  std::string error;    // why it is stale
  std::string unknown;  // what it cannot see, though it works
  uint64_t workers = 0;
};

// A router of its group, as it is heard.
struct RoutedReplica {
  std::string id;
  bool self = false;
  bool hears_us = true;
  double age = 0;      // seconds
  double unheard = 0;  // seconds, for which it does not hear this router
  uint64_t workers = 0;
  std::string worker_set;           // the same text for the same workers; empty: not known
  std::vector<std::string> models;  // patterns of those that it serves; empty: all
};

struct ReplicaCarrierLook {
  bool known = false;  // it is in a group
  std::string kind;    // "nats", "zmq"
  std::string group;
  std::string status;  // "ok", "down"
  std::string error;
  uint64_t conflicts = 0;
};

struct SizeMismatch {
  std::string worker;  // id
  uint32_t configured = 0;
  uint32_t reported = 0;
  double events = 0;
};

// Since the router began.
struct RouterCounters {
  bool known = false;
  double prompt_tokens = 0;
  double cached_tokens = 0;     // on the rank that was chosen, as events had confirmed
  double predicted_tokens = 0;  // of requests whose engine told what it found
  double actual_tokens = 0;
  MetricsPage::ByLabel wasted;     // prefill tokens by cause
  MetricsPage::ByLabel decisions;  // by "cache", "belief", "load", "no_tokens"
  MetricsPage::ByLabel tokenize_failures;
  MetricsPage::ByLabel unread;  // prompts by reason
  std::vector<SizeMismatch> mismatches;
  Observations first_token;  // seconds
  Observations event_lag;    // seconds, by the engines' clocks
  double requests = 0;
  double index_bytes = 0;
  double index_max_bytes = 0;

  // Between two looks; all of it if the router has begun anew since.
  RouterCounters Since(const RouterCounters& earlier) const;
};

// The latest decisions together.
struct RecentDecisions {
  uint64_t looked_at = 0;
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t found_tokens = 0;         // what engines reported
  uint64_t found_prompt_tokens = 0;  // of the prompts for which they did
  uint64_t with_cached = 0;          // decisions for a rank that held something
  uint64_t tokens_unknown = 0;       // decisions without the prompt's tokens
  double oldest = 0;                 // seconds ago
  uint64_t tree_size = 0;            // of the newest
  std::string mode;                  // of the newest
};

struct RouterLook {
  static constexpr size_t kMaxWorkers = 4096;
  static constexpr size_t kMaxRanks = 1024;
  static constexpr size_t kMaxModels = 1024;
  static constexpr size_t kMaxSources = 1024;
  static constexpr size_t kMaxReplicas = 256;

  std::string url;
  bool reached = false;  // it answered, and is a Fathom
  std::string problem;   // why not, or what was not shown
  bool wants_admin_key = false;
  std::string status;  // "ok", "degraded", "down"
  std::string version;
  std::string mode;               // "kv", ...; empty: an older one does not say
  std::optional<bool> kv_events;  // whether it follows them
  bool draining = false;
  bool ready = false;
  std::string not_ready_because;
  uint64_t in_flight = 0;
  uint64_t waiting = 0;
  uint64_t workers_ready = 0;
  uint64_t workers_total = 0;
  std::vector<RoutedWorker> workers;
  std::vector<RoutedModel> models;  // empty: an older one does not say
  std::vector<RoutedSource> sources;
  std::vector<RoutedReplica> replicas;
  ReplicaCarrierLook carrier;
  RouterCounters counters;
  RecentDecisions decisions;
};

Task<RouterLook> LookAtRouter(ReadOnlyClient& client);

// Readers of its pages, on their own. False: it is no such page.
bool ReadRouterHealth(std::string_view page, RouterLook& look);
void ReadRouterIndex(std::string_view page, RouterLook& look);
RouterCounters ReadRouterMetrics(const MetricsPage& page);
RecentDecisions ReadRouterDecisions(std::string_view page);

}  // namespace fathom
