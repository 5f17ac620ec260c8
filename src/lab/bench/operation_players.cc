#include "lab/bench/operation_players.h"

#include <limits>

#include "base/check.h"

namespace fathom {
namespace {

constexpr uint64_t kSecret = 0x5bd1e995a3c59ac3u;  // any; runs shall be alike

}  // namespace

RealIndex::RealIndex(uint32_t ranks, uint32_t block_size, size_t threads)
    : meter_(std::numeric_limits<size_t>::max()),
      index_(BlockShape{.size = block_size}, epochs_, meter_, kSecret) {
  for (size_t i = 0; i < threads; ++i) seats_.push_back(std::make_unique<Epochs::Seat>(epochs_));
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    holdings_.push_back(index_.AddRank({.worker = rank, .dp_rank = 0}, *seats_[rank % threads]));
    CHECK(holdings_.back() != nullptr && holdings_.back()->rank() == rank);
  }
}

size_t RealIndex::held_blocks() const {
  size_t held = 0;
  for (const auto& rank : holdings_) held += rank->counters().held.value();
  return held;
}

size_t RealIndex::bytes() {
  epochs_.Collect();
  return meter_.bytes();
}

uint64_t RealIndex::oddities() const {
  uint64_t blocks = 0;
  for (const auto& rank : holdings_) {
    const HoldingCounters& counters = rank->counters();
    blocks += counters.parked.value() + counters.refused.value() + counters.conflicts.value();
  }
  return blocks;
}

RealIndex::Hand::Hand(RealIndex& index) : index_(index), reader_(index.index_) {}

void RealIndex::Hand::Query(std::span<const uint64_t> locals) {
  KeyChain keys(locals, keys_);
  depths_ = reader_.Match(keys);
}

void RealIndex::Hand::Change(const IndexOperation& operation) {
  RankHoldings& rank = *index_.holdings_[operation.rank];
  switch (operation.kind) {
    case IndexOperation::Kind::kQuery:
      return;
    case IndexOperation::Kind::kStored:
      return Store(operation);
    case IndexOperation::Kind::kRemoved:
      return rank.Remove(operation.words, {});
    case IndexOperation::Kind::kCleared:
      return rank.Clear();
  }
}

void RealIndex::Hand::Store(const IndexOperation& operation) {
  const size_t blocks = operation.blocks();
  hashes_.resize(blocks);
  locals_.resize(blocks);
  for (size_t i = 0; i < blocks; ++i) {
    hashes_[i] = operation.words[2 * i];
    locals_[i] = operation.words[2 * i + 1];
  }
  StoredRun run;
  run.parent = operation.parent;
  run.hashes = hashes_;
  run.locals = locals_;
  index_.holdings_[operation.rank]->Store(run, TimePoint{});
}

Shares SharesOf(const OperationList& list, size_t threads) {
  Shares shares(threads);
  size_t queries = 0;
  for (uint32_t number = 0; number < list.size(); ++number) {
    const IndexOperation operation = list[number];
    const bool query = operation.kind == IndexOperation::Kind::kQuery;
    shares[(query ? queries++ : operation.rank) % threads].push_back(number);
  }
  return shares;
}

Duration ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void PlayTimes::Add(const PlayTimes& other) {
  begun = std::min(begun, other.begun);
  ended = std::max(ended, other.ended);
  cpu += other.cpu;
}

void Observed::Add(const Observed& other) {
  checksum += other.checksum;
  best_found += other.best_found;
  lookups.Add(other.lookups);
  querying += other.querying;
  storing += other.storing;
  removing += other.removing;
}

}  // namespace fathom
