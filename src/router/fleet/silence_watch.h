// Does this rank serve requests that must store blocks, without publishing events?
//
// For a rank that never published, every request that fills a block counts. A rank that has
// published before sends no event for blocks it already holds, so only requests with new blocks
// count.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "router/fleet/served_request.h"
#include "router/fleet/trust_evidence.h"

namespace fathom {

class SilenceWatch {
 public:
  static constexpr uint64_t kRequests = 64;

  void Served(const ServedRequest& request, TimePoint now) {
    if (heard_ ? !request.has_news : !request.has_block) return;
    if (requests_++ == 0) since_ = now;
  }
  // The number of batches received so far.
  void Heard(uint64_t batches) {
    const bool more = batches > std::exchange(batches_, batches);  // a new stream counts from 0
    if (!more) return;
    heard_ = true;
    requests_ = 0;
  }

  // Nothing until the silence has lasted for `after`.
  std::optional<Silence> Look(Duration after, TimePoint now) const {
    if (requests_ < kRequests || now - since_ < after) return std::nullopt;
    return Silence{.requests = requests_, .over = now - since_, .heard_before = heard_};
  }

 private:
  uint64_t batches_ = 0;
  bool heard_ = false;
  uint64_t requests_ = 0;  // since the last batch
  TimePoint since_{};      // time of the first of them
};

}  // namespace fathom
