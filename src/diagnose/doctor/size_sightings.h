// Which block sizes has anybody named, on which side, and where?
//
// The heart of the configuration part: the same number must stand on both sides of the fleet, and
// the sides are written in different files, by different people, or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/doctor/case_file.h"
#include "diagnose/doctor/finding_book.h"

namespace fathom {

struct SizeSighting {
  enum class Side : uint8_t { kRouter, kEngine };
  Side side{};
  uint32_t size = 0;
  std::string who;    // "Frontend", "http://10.0.0.1:8000"
  std::string how;    // "DYN_KV_CACHE_BLOCK_SIZE", "default", "events heard"
  std::string where;  // "agg.yaml:12", "GET /metrics"
  std::string group;  // model or graph: sizes of different ones need not agree; empty: any
  EngineKind engine = EngineKind::kUnknown;
  bool live = false;      // seen at work, not in a file
  bool fathom = false;    // of a router: it is a Fathom
  bool harmless = false;  // of a router that takes the size from its workers whatever this says
  bool mixed = false;     // of an engine whose router serves different sizes side by side
};

// Routers first, then engines.
std::vector<SizeSighting> SightingsOf(const CaseFile& seen);

// Sizes that do not agree although they should, as far as no file says so by itself: that is the
// linter's to find.
void DiagnoseSizes(const std::vector<SizeSighting>& sightings, FindingBook& book);

}  // namespace fathom
