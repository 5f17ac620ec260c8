#include "lab/replay/event_path.h"

#include <utility>

namespace fathom {

EventPath::EventPath(CacheIndex& index, RankLabel rank, uint32_t block_size, Epochs::Seat& seat,
                     Duration delay, const EventFaults& faults)
    : holdings_(index.Open(rank, {.size = block_size}, seat)),
      delay_(delay + faults.later),
      faults_(faults) {}

void EventPath::TellTo(RankWitness& witness) {
  witnesses_.push_back(&witness);
  witness.Pulse(heard_.pulse);
}

void EventPath::Send(std::vector<KvEvent>& events, TimePoint now) {
  Distort(events);
  if (events.empty()) return;
  const uint64_t number = sent_++;
  const bool lost = faults_.loses_each > 0 && number % faults_.loses_each == faults_.loses_each - 1;
  if (lost) {
    events.clear();
    return;
  }
  batches_.push_back({.sent = now,
                      .arrives = now + delay_,
                      .number = number,
                      .first = std::exchange(restarted_, false),
                      .events = std::exchange(events, {})});
}

void EventPath::Distort(std::vector<KvEvent>& events) const {
  if (faults_.silent) events.clear();
  if (faults_.keeps_removals) {
    std::erase_if(events, [](const KvEvent& e) { return std::holds_alternative<BlockRemoved>(e); });
  }
  if (!faults_.other_tokens) return;
  for (KvEvent& event : events) {
    auto* const stored = std::get_if<BlocksStored>(&event);
    if (stored == nullptr) continue;
    for (TokenId& token : stored->tokens) ++token;
  }
}

void EventPath::Deliver(TimePoint now) {
  for (; next() <= now; batches_.pop_front()) {
    const Batch& batch = batches_.front();
    Follow(batch);
    for (RankWitness* const witness : witnesses_) witness->Stamped(now - batch.sent, now);
    for (const KvEvent& event : batch.events) Apply(event, now);
    ++heard_.batches;
    Count();
  }
}

void EventPath::Follow(const Batch& batch) {
  const uint64_t missing = batch.number - std::exchange(expected_, batch.number + 1);
  heard_.lost += missing;
  // Another process may have other blocks: what it has must be proven anew.
  if (batch.first) heard_.proven = false;
  if (batch.first || missing > 0) Forget();
}

void EventPath::Forget() {
  holdings_->Clear();
  ++heard_.pulse.lives;
}

void EventPath::Apply(const KvEvent& event, TimePoint now) {
  if (const auto* const stored = std::get_if<BlocksStored>(&event)) {
    for (RankWitness* const witness : witnesses_) Compare(*witness, *stored, now);
    const StoredRun run{.parent = stored->parent,
                        .hashes = stored->hashes,
                        .tokens = stored->tokens,
                        .locals = {},
                        .extra = {},
                        .seed = NamespaceSeed(stored->lora, stored->salt),
                        .part = {}};
    holdings_->Store(run, now);
    heard_.proven = true;
  } else if (const auto* const removed = std::get_if<BlockRemoved>(&event)) {
    holdings_->Remove({&removed->hash, 1}, {});
  } else {
    Forget();
  }
}

void EventPath::Compare(RankWitness& witness, const BlocksStored& stored, TimePoint now) const {
  if (!witness.expects()) return;
  StoredTokens told{.tokens = stored.tokens};
  if (stored.parent) {
    const auto before = holdings_->KeyOf(*stored.parent);
    told.place = before ? StoredTokens::Place::kKnown : StoredTokens::Place::kUnknown;
    told.before = before.value_or(0);
  }
  witness.Stored(told, now);
}

void EventPath::Count() {
  const HoldingCounters& counters = holdings_->counters();
  heard_.stored = counters.stored.value();
  heard_.held = counters.held.value();
  heard_.pulse.removed = counters.removed.value() + counters.unknown_removed.value();
  for (RankWitness* const witness : witnesses_) witness->Pulse(heard_.pulse);
}

}  // namespace fathom
