// What one answered request tells about the rank that served it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace fathom {

// What keeps a prompt's blocks apart from those of others: an engine that hashes what we do not see
// (or the reverse) goes wrong in one of these only.
enum class PromptSpace : uint8_t { kPlain, kAdapter, kSalted };
constexpr size_t kPromptSpaces = 3;

// What a rank's stream had said at some moment, as counts that only grow.
struct PulseReading {
  uint64_t removed = 0;  // blocks
  uint64_t lives = 0;    // times that everything known of the rank was given up, or it was emptied
  bool operator==(const PulseReading&) const = default;
};

struct ServedRequest {
  PromptSpace space = PromptSpace::kPlain;
  uint32_t block_size = 16;  // of the rank, as well as it is known
  // Leading tokens of the prompt:
  uint32_t predicted = 0;          // that events said were there
  uint32_t repeated = 0;           // that the rank is known to have computed before
  uint32_t untold = 0;             // likewise, so long ago that an event should have told of it
  std::optional<uint32_t> cached;  // that the engine says it found
  bool comparable = true;          // nothing in the request makes the engine count in another way
  bool has_block = false;          // the prompt fills a block
  bool has_news = false;  // it fills one that the rank has not computed before, as far as we know
  TimePoint sent{};
  PulseReading pulse;  // of the rank, when it was sent
};

}  // namespace fathom
