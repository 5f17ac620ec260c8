// What does an engine report about itself: cache size, concurrency, load?
//
// Every value is the engine's own report, not verified, and may be missing: 0 (or nullopt) means
// not reported.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_kind.h"

namespace fathom {

// The load of one rank, from all its clients.
struct RankLoadReport {
  uint32_t rank = 0;
  uint32_t running = 0;      // sequences
  uint32_t waiting = 0;      // sequences in the engine's own queue
  double cache_usage = 0;    // 0 to 1, used by running sequences; reusable blocks count as free
  uint64_t preemptions = 0;  // since the engine started

  bool operator==(const RankLoadReport&) const = default;
};

struct EngineReport {
  static constexpr uint32_t kMaxRanks = 1024;

  EngineKind engine = EngineKind::kUnknown;
  uint32_t ranks = 0;
  uint32_t block_size = 0;        // tokens that one rank keeps in a block
  uint64_t num_blocks = 0;        // of one rank's cache
  uint32_t context_parallel = 0;  // ranks that share each block of a context; at most kMaxRanks
  uint64_t kv_tokens = 0;         // that one rank's cache holds
  uint32_t max_running = 0;       // sequences that one rank runs at once
  uint32_t batch_tokens = 0;      // that one step of a rank computes at most
  std::optional<bool> prefix_caching;
  uint64_t context_length = 0;  // tokens
  // Of SGLang: which marks of thoughts it knows. Empty: none.
  std::optional<std::string> reasoning_parser;
  // What the engine was started with: a name of a hub, or a path on its own machine. Empty:
  // unknown.
  std::string model_path = {};
  std::string tokenizer_path = {};
  double started = 0;                 // seconds since 1970 at which the process began; 0: unknown
  std::vector<RankLoadReport> loads;  // by rank, each at most once

  // The block size that events should have: a shared block has the tokens of all ranks that share
  // it.
  uint32_t event_block_size() const { return block_size * std::max(1u, context_parallel); }

  // Over all ranks: the sum of requests, the mean of the usage. nullopt if no rank has reported.
  std::optional<RankLoadReport> TotalLoad() const;

  bool operator==(const EngineReport&) const = default;
};

}  // namespace fathom
