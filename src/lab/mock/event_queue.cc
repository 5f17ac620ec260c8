#include "lab/mock/event_queue.h"

#include <utility>

#include "lab/mock/event_wire.h"

namespace fathom {

EventQueue::EventQueue(uint64_t blocks, uint64_t blocks_after_restart, uint64_t window,
                       size_t limit, std::optional<size_t> rank)
    : blocks_after_restart_(blocks_after_restart), window_(window), limit_(limit), rank_(rank) {
  Begin(blocks);
}

void EventQueue::Begin(uint64_t blocks) {
  next_ = 0;
  entries_.clear();
  Push(EventWire::PolledCreated(blocks));
}

void EventQueue::Restart() { Begin(blocks_after_restart_); }

void EventQueue::Push(std::string data) {
  entries_.push_back({next_++, std::move(data)});
  if (entries_.size() > limit_) entries_.pop_front();
}

void EventQueue::Add(const std::vector<KvEvent>& batch, BatchFate fate) {
  for (const KvEvent& event : batch) {
    auto data = EventWire::Polled(event);
    if (!data) continue;
    if (fate.published) {
      Push(*std::move(data));
    } else {
      ++next_;
    }
  }
}

void EventQueue::Drain(JsonWriter& out) {
  for (const Entry& entry : std::exchange(entries_, {})) {
    out.BeginObject().Key("event_id").Unsigned(entry.id).Key("window_size").Unsigned(window_);
    out.Key("data").Raw(entry.data);
    if (rank_) out.Key("attention_dp_rank").Unsigned(*rank_);
    out.EndObject();
  }
}

}  // namespace fathom
