#include "lab/replay/virtual_index.h"

namespace fathom {
namespace {

constexpr size_t kIndexBytes = size_t{8} << 30;
constexpr size_t kLostBytes = size_t{64} << 20;

}  // namespace

VirtualIndex::VirtualIndex(const VirtualIndexOptions& options,
                           std::span<VirtualEngine* const> engines)
    : options_(options),
      index_(kIndexBytes, options.seed, options.remembers_lost ? kLostBytes : 0),
      seat_(index_.epochs()) {
  for (size_t i = 0; i < engines.size(); ++i) paths_.push_back(PathOf(i, *engines[i]));
}

std::unique_ptr<EventPath> VirtualIndex::PathOf(size_t engine, const VirtualEngine& to) {
  const EventFaults faults =
      engine < options_.faults.size() ? options_.faults[engine] : EventFaults{};
  return std::make_unique<EventPath>(index_, to.label(), to.core().options().block_size, seat_,
                                     options_.delay, faults);
}

void VirtualIndex::Replace(size_t engine, const VirtualEngine& by) {
  paths_[engine] = PathOf(engine, by);
}

void VirtualIndex::Hear(size_t engine, std::vector<KvEvent>& events, TimePoint now) {
  const bool none = paths_[engine]->next() == kNever;
  paths_[engine]->Send(events, now);
  if (none) arrivals_.Push(paths_[engine]->next(), engine);
}

// A path that was replaced may be in the queue for what it no longer has: that is nothing.
void VirtualIndex::Deliver(TimePoint now) {
  while (const auto engine = arrivals_.Pop(now)) {
    paths_[*engine]->Deliver(now);
    arrivals_.Push(paths_[*engine]->next(), *engine);
  }
}

}  // namespace fathom
