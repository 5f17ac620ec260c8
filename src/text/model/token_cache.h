// Which tokens did this text have, when somebody asked last?
//
// Staleness  An entry lives until it is pushed out: the same text has the same tokens as long as
//            the model keeps its name and its tokenizer.
// Threads, memory  As KeyedCache.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "text/model/keyed_cache.h"
#include "text/tokens/token.h"

namespace fathom {

using SharedTokens = std::shared_ptr<const std::vector<TokenId>>;

class TokenCache {
 public:
  TokenCache(size_t max_bytes, Gauge& bytes) : cache_(max_bytes, bytes) {}

  // Null where it is not known.
  SharedTokens Find(const TextKey& key) { return cache_.Find(key); }
  void Put(const TextKey& key, SharedTokens tokens) {
    const size_t bytes = tokens->capacity() * sizeof(TokenId);
    cache_.Put(key, std::move(tokens), bytes);
  }

 private:
  KeyedCache<SharedTokens> cache_;
};

}  // namespace fathom
