// Does this rank serve requests that must leave blocks in its cache, and say nothing?
//
// Of a rank that never spoke, every request counts that fills a block. One that spoke before has
// nothing to say about what it holds already, so only requests with news count.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "fleet/served_request.h"
#include "fleet/trust_evidence.h"

namespace fathom {

class SilenceWatch {
 public:
  static constexpr uint64_t kRequests = 64;

  void Served(const ServedRequest& request, TimePoint now) {
    if (heard_ ? !request.has_news : !request.has_block) return;
    if (requests_++ == 0) since_ = now;
  }
  // `batches` have come so far.
  void Heard(uint64_t batches) {
    const bool more = batches > std::exchange(batches_, batches);  // a new stream counts anew
    if (!more) return;
    heard_ = true;
    requests_ = 0;
  }

  // Not before it has lasted for `after`.
  std::optional<Silence> Look(Duration after, TimePoint now) const {
    if (requests_ < kRequests || now - since_ < after) return std::nullopt;
    return Silence{.requests = requests_, .over = now - since_, .heard_before = heard_};
  }

 private:
  uint64_t batches_ = 0;
  bool heard_ = false;
  uint64_t requests_ = 0;  // since it spoke last
  TimePoint since_{};      // the first of them
};

}  // namespace fathom
