// Plays a list of operations on an index, on one or more threads, and takes the time.
//
// Threads  A rank's changes are all on one thread, rank modulo threads, in order; queries are dealt
//          out in turn. Threads do not wait for each other, so with several of them a query may see
//          a rank somewhat earlier or later than the list has it. Begin and end are those of the
//          first thread that begins and the last one that ends.
#pragma once

#include <algorithm>
#include <atomic>
#include <ctime>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "lab/bench/operation_list.h"
#include "lab/bench/plain_index.h"
#include "metrics/latency_histogram.h"
#include "router/index/prefix_index.h"

namespace fathom {

// The real index with all its ranks. One Hand per thread.
class RealIndex {
 public:
  RealIndex(uint32_t ranks, uint32_t block_size, size_t threads);

  class Hand {
   public:
    explicit Hand(RealIndex& index);
    void Change(const IndexOperation& operation);
    void Query(std::span<const uint64_t> locals);
    uint32_t depth(uint32_t rank) const { return depths_[rank].device(); }

   private:
    void Store(const IndexOperation& operation);

    RealIndex& index_;
    IndexReader reader_;
    std::vector<uint64_t> keys_;
    std::vector<uint64_t> hashes_;
    std::vector<uint64_t> locals_;
    std::span<const Depth> depths_;
  };
  Hand MakeHand() { return Hand(*this); }

  size_t held_blocks() const;
  size_t distinct_blocks() const { return index_.CountBlocks(); }
  size_t bytes();
  // Of blocks that the plain index may treat otherwise: parked, refused or contradicting.
  uint64_t oddities() const;

 private:
  MemoryMeter meter_;
  Epochs epochs_;
  PrefixIndex index_;
  std::vector<std::unique_ptr<Epochs::Seat>> seats_;  // by thread
  std::vector<std::unique_ptr<RankHoldings>> holdings_;
};

// The same for the plain one.
class PlainHand {
 public:
  PlainHand(PlainIndex& index, uint32_t ranks) : index_(index), depths_(ranks) {}
  void Change(const IndexOperation& operation) { index_.Change(operation); }
  void Query(std::span<const uint64_t> locals) { index_.Match(locals, depths_); }
  uint32_t depth(uint32_t rank) const { return depths_[rank]; }

 private:
  PlainIndex& index_;
  std::vector<uint32_t> depths_;
};

// What each thread does: numbers of operations, rising.
using Shares = std::vector<std::vector<uint32_t>>;
Shares SharesOf(const OperationList& list, size_t threads);

Duration ThreadTime();  // that the calling thread has run

struct PlayTimes {
  TimePoint begun = TimePoint::max();
  TimePoint ended = TimePoint::min();
  Duration cpu{};
  double seconds() const { return Seconds(ended - begun); }
  void Add(const PlayTimes& other);
};

// As fast as it goes. `hand_of` makes the hand of a thread, on that thread.
template <class HandOf>
PlayTimes Play(const OperationList& list, const Shares& shares, HandOf hand_of) {
  std::vector<PlayTimes> times(shares.size());
  std::latch ready(static_cast<ptrdiff_t>(shares.size()));
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < shares.size(); ++t) {
    threads.emplace_back([&, t] {
      auto hand = hand_of(t);
      ready.arrive_and_wait();
      times[t].begun = std::chrono::steady_clock::now();
      const Duration cpu = ThreadTime();
      for (const uint32_t number : shares[t]) {
        const IndexOperation operation = list[number];
        operation.kind == IndexOperation::Kind::kQuery ? hand.Query(operation.words)
                                                       : hand.Change(operation);
      }
      times[t].cpu = ThreadTime() - cpu;
      times[t].ended = std::chrono::steady_clock::now();
    });
  }
  threads.clear();  // joins
  PlayTimes sum;
  for (const PlayTimes& time : times) sum.Add(time);
  return sum;
}

// What the answers were, and how long every single operation took.
struct Observed {
  uint64_t checksum = 0;    // of all depths, whatever the order
  uint64_t best_found = 0;  // blocks, of the best rank for each query
  LatencyHistogram lookups;
  Duration querying{};
  Duration storing{};
  Duration removing{};
  void Add(const Observed& other);
};

// Takes the answer of a query into account.
template <class Hand>
void Judge(const Hand& hand, uint32_t number, uint32_t ranks, Observed& seen) {
  uint32_t best = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t depth = hand.depth(rank);
    if (depth == 0) continue;
    Random mix((uint64_t{number} << 32) + rank);
    seen.checksum += Random(mix.Next() + depth).Next();
    best = std::max(best, depth);
  }
  seen.best_found += best;
}

// The same with a look at the clock around every operation, and at the answers.
template <class HandOf>
Observed Observe(const OperationList& list, const Shares& shares, HandOf hand_of) {
  std::vector<Observed> seen(shares.size());
  std::latch ready(static_cast<ptrdiff_t>(shares.size()));
  std::vector<std::jthread> threads;
  for (size_t t = 0; t < shares.size(); ++t) {
    threads.emplace_back([&, t] {
      auto hand = hand_of(t);
      Observed& mine = seen[t];
      ready.arrive_and_wait();
      for (const uint32_t number : shares[t]) {
        const IndexOperation operation = list[number];
        const bool query = operation.kind == IndexOperation::Kind::kQuery;
        const bool stored = operation.kind == IndexOperation::Kind::kStored;
        const TimePoint begun = std::chrono::steady_clock::now();
        query ? hand.Query(operation.words) : hand.Change(operation);
        const Duration took = std::chrono::steady_clock::now() - begun;
        (query ? mine.querying : stored ? mine.storing : mine.removing) += took;
        if (!query) continue;
        mine.lookups.Record(took);
        Judge(hand, number, list.ranks(), mine);
      }
    });
  }
  threads.clear();  // joins
  Observed sum;
  for (const Observed& part : seen) sum.Add(part);
  return sum;
}

// Asks everything once more: of an index at rest, the answers are the same on any number of
// threads.
template <class Hand>
uint64_t ChecksumAtRest(const OperationList& list, Hand hand) {
  Observed seen;
  for (uint32_t number = 0; number < list.size(); ++number) {
    const IndexOperation operation = list[number];
    if (operation.kind != IndexOperation::Kind::kQuery) continue;
    hand.Query(operation.words);
    Judge(hand, number, list.ranks(), seen);
  }
  return seen.checksum;
}

}  // namespace fathom
