// Merges neighbouring tokens of one word, the pair of the lowest rank first and of equal ones the
// leftmost, until nothing is left to merge.
//
// Memory   Grows to the longest word: about 30 bytes per symbol.
// Threads  One thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/tokenizer/merge_table.h"

namespace fathom {

class Merger {
 public:
  explicit Merger(const MergeTable& merges) : merges_(merges) {}

  // O(n log n). What is left of `symbols` is left in it.
  void Run(std::vector<TokenId>& symbols);

 private:
  // Up to here looking at all pairs every time is faster than keeping order among them.
  static constexpr size_t kFew = 64;
  static constexpr uint32_t kNowhere = 0xffffffff;

  struct Link {
    uint32_t before;
    uint32_t after;
    uint32_t rank;  // of the pair that it makes with the one after it
  };

  void RunFew(std::vector<TokenId>& symbols) const;
  void RunMany(std::vector<TokenId>& symbols);
  void LinkAll(const std::vector<TokenId>& symbols);
  void Join(std::vector<TokenId>& symbols, uint32_t at);
  void Rank(const std::vector<TokenId>& symbols, uint32_t at);

  const MergeTable& merges_;
  std::vector<Link> links_;
  std::vector<uint64_t> heap_;  // rank and place; those that no longer hold are passed over
};

}  // namespace fathom
