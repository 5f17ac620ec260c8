#include "router/routing/session_affinity.h"

#include <xxhash.h>

namespace fathom {

// Sessions are identified by a 64-bit hash of their name: a collision only makes two sessions share
// a worker.
uint64_t SessionAffinity::KeyOf(std::string_view session) {
  return XXH3_64bits(session.data(), session.size());
}

std::optional<WorkerId> SessionAffinity::Find(std::string_view session, TimePoint now) {
  const auto found = workers_.Find(KeyOf(session), now);
  return found ? std::optional(found->value) : std::nullopt;
}

void SessionAffinity::Remember(std::string_view session, WorkerId worker, TimePoint now) {
  workers_.Put(KeyOf(session), worker, now);
}

}  // namespace fathom
