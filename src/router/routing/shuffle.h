// In which random order are the positions below `count` drawn?
//
// A permutation that the seed alone determines: a recorded decision repeats it, for any part of its
// candidates. Both directions cost a few multiplications, so the first of many equal candidates is
// found without a look at all of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/random.h"

namespace fathom {

class Shuffle {
 public:
  Shuffle(uint64_t seed, uint32_t count) {
    const int bits =
        std::max(kLeastBits, static_cast<int>(std::bit_width(std::max(count, 1u) - 1)));
    mask_ = (uint32_t{1} << bits) - 1;
    fold_ = (bits + 1) / 2;
    Random random(seed);
    for (Round& round : rounds_) {
      const uint64_t drawn = random.Next();
      round.add = static_cast<uint32_t>(drawn);
      round.factor = static_cast<uint32_t>(drawn >> 32) | 1;
    }
  }

  // The turn of a position: unique, below turns().
  uint32_t TurnOf(uint32_t position) const {
    uint32_t x = position;
    for (const Round& round : rounds_) {
      x = ((x + round.add) * round.factor) & mask_;
      x ^= x >> fold_;
    }
    return x;
  }
  // The position whose turn it is; a value of `count` or more is no position.
  uint32_t PositionAt(uint32_t turn) const {
    uint32_t x = turn;
    for (size_t i = rounds_.size(); i-- > 0;) {
      x ^= x >> fold_;
      x = (x * Inverse(rounds_[i].factor) - rounds_[i].add) & mask_;
    }
    return x;
  }
  uint32_t turns() const { return mask_ + 1; }

 private:
  static constexpr int kLeastBits = 4;  // fewer are not mixed well
  struct Round {
    uint32_t add = 0;
    uint32_t factor = 1;  // odd, so that it has an inverse
  };

  // Newton's method: each step doubles the number of right bits.
  static uint32_t Inverse(uint32_t odd) {
    uint32_t inverse = odd;
    for (int i = 0; i < 4; ++i) inverse *= 2 - odd * inverse;
    return inverse;
  }

  uint32_t mask_ = 0;
  int fold_ = 0;
  std::array<Round, 3> rounds_;
};

}  // namespace fathom
