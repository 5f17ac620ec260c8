// To look inside: what a prompt would find on every rank, and what the index is made of.
//
//   POST /debug/lookup  {"model", "tokens": [...], "lora", "salt"}; only tokens is required
//   GET  /debug/index
//
// Threads  One each.
#pragma once

#include <memory>
#include <string_view>

#include "gateway/gateway_context.h"
#include "http/server_connection.h"
#include "index/cache_index.h"

namespace fathom {

class DebugPages {
 public:
  static constexpr std::string_view kLookup = "/debug/lookup";
  static constexpr std::string_view kIndex = "/debug/index";

  explicit DebugPages(const GatewayContext& context) : context_(context) {}

  Answer Lookup(std::string_view body);
  Answer Index() const;

 private:
  const GatewayContext& context_;
  std::unique_ptr<CacheReader> reader_;  // made by the first lookup
};

// The index, and the streams of the workers that are in the fleet, for /metrics.
void CollectCacheMetrics(const FleetSnapshot& fleet, const FeedBoard& feeds,
                         const CacheIndex& index, Exposition& out);

}  // namespace fathom
