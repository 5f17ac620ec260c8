// Which worker served this session last?
//
// Threads  Any; sharded mutexes, only for requests that name a session.
// Memory   At most kMaxSessions are remembered, each until it has been idle for the TTL.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ids.h"
#include "router/routing/idle_map.h"

namespace fathom {

class SessionAffinity {
 public:
  static constexpr size_t kMaxSessions = 1 << 20;

  explicit SessionAffinity(Duration ttl) : workers_(ttl, kMaxSessions) {}

  bool enabled() const { return workers_.ttl() > Duration::zero(); }
  std::optional<WorkerId> Find(std::string_view session, TimePoint now);
  void Remember(std::string_view session, WorkerId worker, TimePoint now);
  size_t size() const { return workers_.size(); }

 private:
  static uint64_t KeyOf(std::string_view session);

  IdleMap<WorkerId> workers_;
};

}  // namespace fathom
