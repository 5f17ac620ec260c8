// The index that one would write first: maps from the library behind one lock, walked block by
// block. The benchmark compares with its speed and with its answers.
//
// Unlike the real one it forgets a run whose predecessor it does not know.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "lab/bench/operation_list.h"

namespace fathom {

class PlainIndex {
 public:
  explicit PlainIndex(uint32_t ranks) : held_(ranks), lanes_((ranks + 63) / 64) {}

  // Stored, removed or cleared.
  void Change(const IndexOperation& operation);
  // Leading blocks that each rank holds, into `depths`, one per rank.
  void Match(std::span<const uint64_t> locals, std::span<uint32_t> depths) const;

  // Blocks of all ranks.
  size_t held_blocks() const;

 private:
  using RankSet = std::vector<uint64_t>;  // a bit per rank

  struct Held {
    uint64_t key = 0;
    uint32_t copies = 0;
  };

  void Store(const IndexOperation& operation);
  void Remove(uint32_t rank, std::span<const uint64_t> hashes);
  void Clear(uint32_t rank);
  void Leave(uint32_t rank, uint64_t key);

  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, RankSet> ranks_;           // by key
  std::vector<std::unordered_map<uint64_t, Held>> held_;  // by rank, by engine hash
  const size_t lanes_;
};

}  // namespace fathom
