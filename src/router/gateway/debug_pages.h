// Debug pages: what a prompt would find on every rank, the contents of the index, why requests were
// routed as they were, and where a request would be routed.
//
//   POST /debug/lookup     {"model", "tokens": [...], "lora", "salt"}; only tokens is required
//   GET  /debug/index
//   GET  /debug/decisions  ?limit=N, the newest first
//   POST /debug/explain    a client's request body: a dry run, nothing is sent or reserved
//
// Threads  The control loop. What takes long is done in slices, so that probes are not held up.
#pragma once

#include <memory>
#include <string_view>

#include "io/http/server_connection.h"
#include "router/gateway/gateway_context.h"
#include "router/gateway/loop_router.h"
#include "router/index/cache_index.h"

namespace fathom {

class DebugPages {
 public:
  static constexpr std::string_view kLookup = "/debug/lookup";
  static constexpr std::string_view kIndex = "/debug/index";

  static constexpr std::string_view kDecisions = "/debug/decisions";
  static constexpr std::string_view kExplain = "/debug/explain";

  DebugPages(GatewayContext& context, Loop& loop) : context_(context), loop_(loop) {}

  Answer Lookup(std::string_view body);
  Task<Answer> Index() const;
  Answer Decisions(const RequestHead& head) const;
  Task<Answer> Explain(const RequestHead& head, std::string_view body);

 private:
  Task<size_t> CountBlocks(const PrefixIndex& index) const;
  Answer NobodyFor(const FleetSnapshot& fleet, const std::string& model) const;

  GatewayContext& context_;
  Loop& loop_;
  std::unique_ptr<CacheReader> reader_;  // created by the first lookup
  std::unique_ptr<LoopRouter> router_;   // created by the first explanation
};

// The metrics of the index, and of the event streams of the workers in the fleet.
void CollectCacheMetrics(const FleetSnapshot& fleet, const FeedBoard& feeds,
                         const CacheIndex& index, Exposition& out);

}  // namespace fathom
