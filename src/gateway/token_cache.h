// Which tokens did this prompt have, when somebody asked last?
//
// Threads    Any. Shards with a mutex each, held for a lookup or an insertion.
// Memory     At most `max_bytes`, tokens and bookkeeping together; what was used least recently
//            goes first. What is larger than a shard's part is not kept. 0 keeps nothing.
// Staleness  An entry lives until it is pushed out: the same text has the same tokens as long as
//            the model keeps its name and its tokenizer.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gateway/prompt_key.h"
#include "metrics/counter.h"
#include "tokens/token.h"

namespace fathom {

using SharedTokens = std::shared_ptr<const std::vector<TokenId>>;

class TokenCache {
 public:
  // `bytes` shows how much is held.
  TokenCache(size_t max_bytes, Gauge& bytes);
  TokenCache(const TokenCache&) = delete;
  TokenCache& operator=(const TokenCache&) = delete;

  // Null where it is not known.
  SharedTokens Find(const PromptKey& key);
  void Put(const PromptKey& key, SharedTokens tokens);

 private:
  struct Entry {
    PromptKey key;
    SharedTokens tokens;
    size_t bytes;
  };
  struct Shard {
    std::mutex mutex;          // guards the rest
    std::list<Entry> entries;  // the one that was used last is first
    std::unordered_map<PromptKey, std::list<Entry>::iterator> by_key;
    size_t bytes = 0;
  };

  Shard& ShardOf(const PromptKey& key) { return shards_[key.high % shards_.size()]; }
  void DropLast(Shard& shard);

  Gauge& bytes_;
  std::vector<Shard> shards_;
  const size_t shard_bytes_;
};

}  // namespace fathom
