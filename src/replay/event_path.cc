#include "replay/event_path.h"

#include <utility>

namespace fathom {

void EventPath::Send(std::vector<KvEvent>& events, TimePoint now) {
  if (events.empty()) return;
  batches_.push_back({now + delay_, std::exchange(events, {})});
}

void EventPath::Deliver(TimePoint now) {
  for (; next() <= now; batches_.pop_front()) {
    for (const KvEvent& event : batches_.front().events) Apply(event, now);
  }
}

void EventPath::Apply(const KvEvent& event, TimePoint now) {
  if (const auto* const stored = std::get_if<BlocksStored>(&event)) {
    const StoredRun run{.parent = stored->parent,
                        .hashes = stored->hashes,
                        .tokens = stored->tokens,
                        .locals = {},
                        .extra = {},
                        .seed = NamespaceSeed(stored->lora, stored->salt),
                        .part = {}};
    holdings_->Store(run, now);
  } else if (const auto* const removed = std::get_if<BlockRemoved>(&event)) {
    holdings_->Remove({&removed->hash, 1}, {});
  } else {
    holdings_->Clear();
  }
}

}  // namespace fathom
