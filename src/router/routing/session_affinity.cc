#include "router/routing/session_affinity.h"

#include <xxhash.h>

#include <algorithm>

namespace fathom {

// Sessions are identified by a 64-bit hash of their name: a collision only makes two sessions share
// a worker.
uint64_t SessionAffinity::KeyOf(std::string_view session) const {
  return XXH3_64bits_withSeed(session.data(), session.size(), secret_);
}

std::optional<WorkerId> SessionAffinity::Find(std::string_view session, TimePoint now) {
  const auto found = bindings_.Find(KeyOf(session), now);
  return found ? std::optional(found->value.worker) : std::nullopt;
}

void SessionAffinity::Remember(std::string_view session, WorkerId worker, TimePoint now) {
  const uint64_t key = KeyOf(session);
  std::optional<Told> news;
  bindings_.Change(key, now, [&](std::optional<Bindings::Slot>& slot) {
    if (!slot || slot->value.worker != worker) {
      const uint64_t clock = clock_.fetch_add(1, std::memory_order_relaxed) + 1;
      slot = {.value = {.worker = worker, .clock = clock, .told = now}, .last_used = now};
      news = Told{key, worker, clock, now};
      return;
    }
    slot->last_used = std::max(slot->last_used, now);
    if (now - slot->value.told < bindings_.ttl() / kRetell) return;
    slot->value.told = now;
    news = Told{key, worker, slot->value.clock, now};
  });
  if (news && enabled()) news_.Add(*news);
}

void SessionAffinity::Learn(const Told& told, TimePoint now) {
  uint64_t highest = clock_.load(std::memory_order_relaxed);
  // A replica that is out of its mind must not use up the numbers of all.
  if (now - told.last_used >= bindings_.ttl() || told.clock > highest + kMostAhead) return;
  while (highest < told.clock &&
         !clock_.compare_exchange_weak(highest, told.clock, std::memory_order_relaxed)) {
  }
  bindings_.Change(told.session, now, [&](std::optional<Bindings::Slot>& slot) {
    const Binding binding{.worker = told.worker, .clock = told.clock, .told = now};
    if (!slot) {
      slot = {.value = binding, .last_used = told.last_used};
      return;
    }
    const Binding& known = slot->value;
    const bool wins =
        known.clock != told.clock ? known.clock < told.clock : told.worker <= known.worker;
    if (!wins) return;
    slot->value = binding;
    slot->last_used = std::max(slot->last_used, told.last_used);
  });
}

void SessionAffinity::Continue(Walk& walk, std::vector<Told>& into, size_t most) const {
  bindings_.Continue(walk, most, [&](uint64_t key, const Binding& binding, TimePoint last_used) {
    into.push_back({key, binding.worker, binding.clock, last_used});
  });
}

}  // namespace fathom
