// Applies a large batch in steps of about a millisecond, so that other streams have their turn.
//
// Events with many blocks are applied in parts: readers may see a batch that is half applied, as
// they do while the engine itself works through it.
//
// Memory   One decoded event, which is counted in the budget.
// Threads  The intake's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "io/zmtp/byte_budget.h"
#include "router/events/msgpack_dialect.h"
#include "router/events/rank_feed.h"

namespace fathom {

class LargeBatch {
 public:
  // Smaller payloads are applied at once.
  static constexpr size_t kLarge = 128 << 10;

  enum class Step : uint8_t { kMore, kChecked, kDone, kInvalid };

  // The payload must outlive it.
  LargeBatch(uint64_t sequence, std::string_view payload, ByteBudget& budget)
      : sequence_(sequence), reader_(payload), held_(budget) {}

  uint64_t sequence() const { return sequence_; }
  // The batch without its events: complete after kChecked, counts after kDone.
  const EventBatch& head() const { return reader_.head(); }
  const std::string& problem() const { return problem_; }

  // kChecked once, kDone or kInvalid at the end.
  Step Advance(RankFeed& feed, TimePoint now);

 private:
  Step Check();
  bool ApplyPart(RankFeed& feed, TimePoint now);
  bool ApplyPart(const StoredEvent& event, RankFeed& feed, TimePoint now);
  bool ApplyPart(const RemovedEvent& event, RankFeed& feed, TimePoint now);

  const uint64_t sequence_;
  EventBatchReader reader_;
  ByteHolder held_;
  std::string problem_;
  bool checked_ = false;
  std::optional<CacheEvent> event_;  // that is being applied
  size_t applied_ = 0;               // of its blocks
};

}  // namespace fathom
