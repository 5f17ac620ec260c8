// What was computed of prompts that begin like this one?
//
// Found by the places of a prompt (model/prompt_parts.h), the deepest first. Of a prompt that is
// new the first places and the last have entries: a system prompt is found again under another
// conversation, and a conversation when it goes on.
//
// Threads, memory  As KeyedCache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "text/model/keyed_cache.h"
#include "text/model/prompt_parts.h"
#include "text/tokens/prefix_keys.h"

namespace fathom {

class PrefixCache {
 public:
  PrefixCache(size_t max_bytes, uint64_t secret, Gauge& bytes)
      : secret_(secret), cache_(max_bytes, bytes) {}

  // `seed` is the namespace that keys are made in.
  KnownPrefix Find(std::span<const PromptParts::Place> places, uint64_t seed);
  // Keeps what was computed of a prompt whose first `known` tokens are here already.
  void Put(std::span<const PromptParts::Place> places, uint64_t seed, size_t known,
           PrefixKeys keys);

 private:
  static constexpr size_t kAtEachEnd = 4;

  TextKey KeyOf(const PromptParts::Place& place, uint64_t seed) const {
    return ChainText(place.key, TextKey{seed, 0}, secret_);
  }

  const uint64_t secret_;
  KeyedCache<KnownPrefix> cache_;
};

}  // namespace fathom
