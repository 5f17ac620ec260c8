// To look inside: what a prompt would find on every rank, what the index is made of, why requests
// went where they went, and where one would go.
//
//   POST /debug/lookup     {"model", "tokens": [...], "lora", "salt"}; only tokens is required
//   GET  /debug/index
//   GET  /debug/decisions  ?limit=N, the newest first
//   POST /debug/explain    a request body as clients send it: a dry run, nothing is sent or booked
//
// Threads  One each.
#pragma once

#include <memory>
#include <string_view>

#include "gateway/gateway_context.h"
#include "gateway/loop_router.h"
#include "http/server_connection.h"
#include "index/cache_index.h"

namespace fathom {

class DebugPages {
 public:
  static constexpr std::string_view kLookup = "/debug/lookup";
  static constexpr std::string_view kIndex = "/debug/index";

  static constexpr std::string_view kDecisions = "/debug/decisions";
  static constexpr std::string_view kExplain = "/debug/explain";

  DebugPages(GatewayContext& context, Loop& loop) : context_(context), loop_(loop) {}

  Answer Lookup(std::string_view body);
  Answer Index() const;
  Answer Decisions(const RequestHead& head) const;
  Task<Answer> Explain(const RequestHead& head, std::string_view body);

 private:
  Answer NobodyFor(const FleetSnapshot& fleet, const std::string& model) const;

  GatewayContext& context_;
  Loop& loop_;
  std::unique_ptr<CacheReader> reader_;  // made by the first lookup
  std::unique_ptr<LoopRouter> router_;   // made by the first explanation
};

// The index, and the streams of the workers that are in the fleet, for /metrics.
void CollectCacheMetrics(const FleetSnapshot& fleet, const FeedBoard& feeds,
                         const CacheIndex& index, Exposition& out);

}  // namespace fathom
