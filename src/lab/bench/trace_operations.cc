#include "lab/bench/trace_operations.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/random.h"
#include "lab/mock/block_pool.h"

namespace fathom {
namespace {

using Kind = IndexOperation::Kind;

constexpr BlockHash kRoot = 0x66617468;

// One of the blocks that an id stands for.
uint64_t LocalOf(uint64_t id, uint64_t child) {
  Random of_id(id);
  return Random(of_id.Next() + child).Next();
}

// The engine's name for a block and all before it: not what the index calls it.
BlockHash HashOf(BlockHash before, uint64_t local) { return Random(before ^ (local << 1)).Next(); }

// A rank's cache, which says what happens to it.
class CachedRank {
 public:
  CachedRank(uint32_t rank, const TraceOperationsPlan& plan, OperationList& out)
      : rank_(rank), block_size_(plan.block_size), pool_(plan.blocks + 1), out_(out) {}

  // A prompt with these full blocks and `tokens` tokens, and so many blocks generated after it.
  void Serve(const std::vector<uint64_t>& locals, uint64_t tokens, size_t generated) {
    if ((tokens + block_size_ - 1) / block_size_ + generated > pool_.usable_blocks()) return;
    locals_ = locals;
    hashes_.clear();
    for (const uint64_t local : locals_) PushHash(local);
    const size_t found = TakeCached((tokens - 1) / block_size_);
    Store(found, locals_.size());
    for (size_t i = 0; i < generated; ++i) {
      locals_.push_back(fresh_.Next());
      PushHash(locals_.back());
      Store(locals_.size() - 1, locals_.size());
    }
    pool_.Free(blocks_);
    blocks_.clear();
  }

 private:
  void PushHash(uint64_t local) {
    hashes_.push_back(HashOf(hashes_.empty() ? kRoot : hashes_.back(), local));
  }

  // The last token is always computed, so its block is never taken from the cache.
  size_t TakeCached(size_t most) {
    size_t found = 0;
    for (; found < std::min(most, hashes_.size()); ++found) {
      const auto block = pool_.Find(hashes_[found]);
      if (!block) break;
      blocks_.push_back(*block);
    }
    for (const auto block : blocks_) pool_.Touch(block);
    return found;
  }

  // The engine evicts when it allocates, and stores after that.
  void Store(size_t begin, size_t end) {
    if (begin == end) return;
    words_.clear();
    pool_.Allocate(end - begin, blocks_, words_);
    if (!words_.empty()) out_.Add({Kind::kRemoved, rank_, {}, words_});
    words_.clear();
    for (size_t i = begin; i < end; ++i) {
      pool_.Register(blocks_[i], hashes_[i]);
      words_.push_back(hashes_[i]);
      words_.push_back(locals_[i]);
    }
    IndexOperation stored{Kind::kStored, rank_, {}, words_};
    if (begin > 0) stored.parent = hashes_[begin - 1];
    out_.Add(stored);
  }

  const uint32_t rank_;
  const uint32_t block_size_;
  BlockPool pool_;
  OperationList& out_;
  Random fresh_{(uint64_t{rank_} + 1) << 40};  // what this rank generates, nobody has
  // Of the request at hand.
  std::vector<uint64_t> locals_;
  std::vector<BlockHash> hashes_;
  std::vector<BlockPool::BlockId> blocks_;
  std::vector<uint64_t> words_;
};

class TracePlayer {
 public:
  TracePlayer(const TraceOperationsPlan& plan, OperationList& out) : plan_(plan), out_(out) {
    for (uint32_t rank = 0; rank < plan.ranks; ++rank) {
      ranks_.push_back(std::make_unique<CachedRank>(rank, plan, out));
    }
  }

  // `shift` is added to its ids.
  void Play(const TraceRequest& request, uint64_t shift) {
    locals_.clear();
    const uint64_t children = kTokensPerTraceId / plan_.block_size;
    for (uint64_t i = 0; i < request.input / plan_.block_size; ++i) {
      const size_t id = std::min<size_t>(i / children, request.ids.size() - 1);
      locals_.push_back(LocalOf(request.ids[id] + shift, i % children));
    }
    const uint32_t rank = RankFor(request, shift);
    out_.Add({Kind::kQuery, rank, {}, locals_});
    ranks_[rank]->Serve(locals_, request.input, GeneratedBlocks(request));
  }

 private:
  size_t GeneratedBlocks(const TraceRequest& request) const {
    // The block in which the prompt ends begins with tokens that the answer goes on with.
    if (!plan_.generated) return 0;
    const uint64_t tokens = uint64_t{request.input} + request.output;
    return tokens / plan_.block_size - request.input / plan_.block_size;
  }

  uint32_t RankFor(const TraceRequest& request, uint64_t shift) {
    uint32_t rank = static_cast<uint32_t>(next_++ % plan_.ranks);
    if (plan_.assign == TraceOperationsPlan::Assign::kSticky) {
      for (size_t i = request.ids.size(); i > request.ids.size() / 2; --i) {
        const auto found = last_rank_.find(request.ids[i - 1] + shift);
        if (found == last_rank_.end()) continue;
        rank = found->second;
        break;
      }
      for (const uint64_t id : request.ids) last_rank_[id + shift] = rank;
    }
    return rank;
  }

  const TraceOperationsPlan& plan_;
  OperationList& out_;
  std::vector<std::unique_ptr<CachedRank>> ranks_;
  std::unordered_map<uint64_t, uint32_t> last_rank_;  // by id
  uint64_t next_ = 0;
  std::vector<uint64_t> locals_;
};

}  // namespace

OperationList OperationsOf(const std::vector<TraceRequest>& trace,
                           const TraceOperationsPlan& plan) {
  OperationList list;
  TracePlayer player(plan, list);
  const uint64_t ids = IdsEnd(trace);
  for (uint64_t repetition = 0; repetition < plan.repeat; ++repetition) {
    for (const TraceRequest& request : trace) player.Play(request, repetition * ids);
  }
  return list;
}

}  // namespace fathom
