#include "router/events/large_batch.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

constexpr size_t kCheckedPerStep = 64 << 10;  // bytes
constexpr size_t kBlocksPerStep = 1024;

size_t BytesOf(const CacheEvent& event) {
  if (const auto* stored = std::get_if<StoredEvent>(&event)) {
    return stored->tokens.capacity() * sizeof(TokenId) +
           stored->hashes.capacity() * sizeof(uint64_t) +
           stored->extra.capacity() * sizeof(ExtraKey);
  }
  const auto* removed = std::get_if<RemovedEvent>(&event);
  return removed == nullptr ? 0 : removed->hashes.capacity() * sizeof(uint64_t);
}

// Blocks without hashes cannot be anyone's parent, so such an event has no parts.
bool HasParts(const StoredEvent& event) {
  const size_t positions = event.tokens.size() - (event.pairs ? 1 : 0);
  return event.hashes.size() > kBlocksPerStep &&
         event.hashes.size() * event.block_size == positions;
}

std::vector<ExtraKey> KeysOf(const StoredEvent& event, size_t from, size_t to) {
  std::vector<ExtraKey> keys;
  auto key = std::ranges::lower_bound(event.extra, from, {}, &ExtraKey::block);
  for (; key != event.extra.end() && key->block < to; ++key) {
    keys.push_back({static_cast<uint32_t>(key->block - from), key->key});
  }
  return keys;
}

// The blocks [from, to) as an event of their own.
StoredEvent PartOf(const StoredEvent& event, size_t from, size_t to) {
  const auto cut = [](const auto& all, size_t begin, size_t end) {
    return std::vector(all.begin() + static_cast<ptrdiff_t>(begin),
                       all.begin() + static_cast<ptrdiff_t>(end));
  };
  const size_t size = event.block_size;
  StoredEvent part{.hashes = cut(event.hashes, from, to),
                   .parent = from == 0 ? event.parent : event.hashes[from - 1],
                   .tokens = cut(event.tokens, from * size, to * size + (event.pairs ? 1 : 0)),
                   .block_size = event.block_size,
                   .tier = event.tier,
                   .group = event.group,
                   .kind = event.kind,
                   .window = event.window,
                   .pairs = event.pairs,
                   .lora = event.lora,
                   .salt = event.salt,
                   .extra = KeysOf(event, from, to)};
  return part;
}

void Apply(CacheEvent event, RankFeed& feed, TimePoint now) { feed.Apply({&event, 1}, now); }

}  // namespace

LargeBatch::Step LargeBatch::Advance(RankFeed& feed, TimePoint now) {
  if (!checked_) return Check();
  if (event_) {
    if (ApplyPart(feed, now)) event_.reset();
    return Step::kMore;
  }
  applied_ = 0;
  const bool more = reader_.Next(event_);
  held_.HoldAnyway(event_ ? BytesOf(*event_) : 0);
  return more ? Step::kMore : Step::kDone;
}

LargeBatch::Step LargeBatch::Check() {
  const auto checked = reader_.Check(kCheckedPerStep);
  if (!checked) {
    problem_ = checked.error().what;
    return Step::kInvalid;
  }
  checked_ = *checked;
  return checked_ ? Step::kChecked : Step::kMore;
}

// True: all of the event was applied.
bool LargeBatch::ApplyPart(RankFeed& feed, TimePoint now) {
  if (const auto* stored = std::get_if<StoredEvent>(&*event_); stored && HasParts(*stored)) {
    return ApplyPart(*stored, feed, now);
  }
  if (const auto* removed = std::get_if<RemovedEvent>(&*event_)) {
    return ApplyPart(*removed, feed, now);
  }
  feed.Apply({&*event_, 1}, now);
  return true;
}

bool LargeBatch::ApplyPart(const StoredEvent& event, RankFeed& feed, TimePoint now) {
  const size_t until = std::min(applied_ + kBlocksPerStep, event.hashes.size());
  Apply(PartOf(event, applied_, until), feed, now);
  applied_ = until;
  return applied_ == event.hashes.size();
}

bool LargeBatch::ApplyPart(const RemovedEvent& event, RankFeed& feed, TimePoint now) {
  const size_t until = std::min(applied_ + kBlocksPerStep, event.hashes.size());
  RemovedEvent part{.hashes = {event.hashes.begin() + static_cast<ptrdiff_t>(applied_),
                               event.hashes.begin() + static_cast<ptrdiff_t>(until)},
                    .tier = event.tier,
                    .group = event.group};
  Apply(std::move(part), feed, now);
  applied_ = until;
  return applied_ == event.hashes.size();
}

}  // namespace fathom
