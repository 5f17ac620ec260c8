#include "lab/mock/engine_core.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"

namespace fathom {
namespace {

constexpr TokenId kVocabulary = 32000;

// The hash that the first block of a prompt is chained to: namespaces never share a block.
BlockHash RootOf(const std::string& lora, const std::string& salt) {
  const BlockHash named = XXH3_64bits(lora.data(), lora.size());
  return XXH3_64bits_withSeed(salt.data(), salt.size(), named);
}

// A block and all before it; `parent` ends with the block before.
BlockHash HashOf(std::span<const TokenId> block, BlockHash parent) {
  return XXH3_64bits_withSeed(block.data(), block.size_bytes(), parent);
}

}  // namespace

struct EngineCore::Sequence {
  SequenceId id;
  EngineRequest request;
  std::vector<TokenId> tokens;    // the prompt and what was generated
  std::vector<BlockHash> hashes;  // of the full blocks of `tokens`, as far as they were needed
  std::vector<uint32_t> blocks;   // those it uses
  size_t registered = 0;          // of `blocks`, full and known to the cache
  uint64_t computed = 0;          // tokens whose KV is there
  uint64_t planned = 0;           // tokens that this step computes
  std::optional<uint32_t> cached;
  bool preempted = false;
  bool uncached = false;  // its blocks are from a time without caching
  BlockHash root;

  uint64_t generated() const { return tokens.size() - request.prompt.size(); }

  void HashUpTo(size_t blocks_wanted, uint32_t block_size) {
    while (hashes.size() < blocks_wanted) {
      const BlockHash parent = hashes.empty() ? root : hashes.back();
      const auto begin = std::span(tokens).subspan(hashes.size() * block_size);
      hashes.push_back(HashOf(begin.first(block_size), parent));
    }
  }
};

EngineCore::EngineCore(const EngineOptions& options, const TimingProfile& profile)
    : options_(options), profile_(profile), pool_(options.num_blocks) {}

EngineCore::~EngineCore() = default;

Result<SequenceId> EngineCore::Submit(EngineRequest request) {
  if (request.prompt.empty()) return Fail(Blame::kCaller, "the prompt is empty");
  const uint64_t most = request.prompt.size() + std::max(request.max_tokens, 1u);
  if (most > capacity_tokens()) {
    return Fail(
        Blame::kCaller,
        "{} prompt tokens and up to {} generated ones do not fit the {} that the cache holds",
        request.prompt.size(), request.max_tokens, capacity_tokens());
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = next_id_++;
  sequence->tokens = request.prompt;
  sequence->root = RootOf(request.lora, request.salt);
  sequence->request = std::move(request);
  sequence->request.max_tokens = std::max(sequence->request.max_tokens, 1u);
  waiting_.push_back(sequence.get());
  const SequenceId id = sequence->id;
  sequences_.emplace(id, std::move(sequence));
  return id;
}

void EngineCore::Cancel(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence* const sequence = found->second.get();
  std::erase(waiting_, sequence);
  std::erase(running_, sequence);
  Release(*sequence);
  sequences_.erase(found);
}

uint64_t EngineCore::CachedTokens(std::span<const TokenId> prompt) const {
  if (prompt.empty()) return 0;
  const size_t most = (prompt.size() - 1) / options_.block_size;
  BlockHash hash = RootOf({}, {});
  for (size_t i = 0; i < most; ++i) {
    hash = HashOf(prompt.subspan(i * options_.block_size, options_.block_size), hash);
    if (!pool_.Find(hash)) return i * options_.block_size;
  }
  return most * options_.block_size;
}

double EngineCore::cache_usage() const {
  return 1.0 -
         static_cast<double>(pool_.free_blocks()) / static_cast<double>(pool_.usable_blocks());
}

bool EngineCore::ResetPrefixCache() {
  if (!pool_.Clear()) return false;
  if (options_.publish_events) events_.emplace_back(AllBlocksCleared{});
  return true;
}

void EngineCore::Restart(uint32_t block_size) {
  while (!running_.empty()) Preempt(*running_.back());
  events_.clear();
  CHECK(pool_.Clear());
  if (block_size > 0 && block_size != options_.block_size) Reshape(block_size);
}

void EngineCore::SetPrefixCaching(bool on) {
  if (on == options_.prefix_caching) return;
  options_.prefix_caching = on;
  if (!on) {
    pool_.ForgetAll();
    forgot_ = true;
    return;
  }
  if (forgot_ && options_.publish_events) events_.emplace_back(AllBlocksCleared{});
  for (Sequence* const sequence : running_) sequence->uncached = true;
}

void EngineCore::Reshape(uint32_t block_size) {
  options_.num_blocks = BlockPool::BlocksFor(capacity_tokens(), block_size);
  options_.block_size = block_size;
  pool_ = BlockPool(options_.num_blocks);
  for (const auto& [id, sequence] : sequences_) sequence->hashes.clear();
}

bool EngineCore::Step(EngineStep& out) {
  if (running_.empty() && waiting_.empty()) return false;
  load_ = {.cache_tokens = capacity_tokens()};
  planned_.clear();
  preempted_ = false;
  uint64_t budget = options_.max_num_batched_tokens;
  ScheduleRunning(budget);
  if (!preempted_) ScheduleWaiting(budget);
  ++counters_.steps;
  out.load = load_;
  out.duration = profile_.StepTime(load_);
  Emit(out);
  out.events.clear();
  std::swap(out.events, events_);
  return true;
}

void EngineCore::ScheduleRunning(uint64_t& budget) {
  for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    const uint64_t wanted = std::min(sequence.tokens.size() - sequence.computed, budget);
    // MakeRoom preempts from the back of running_, in the end this sequence itself.
    if (!MakeRoom(sequence, wanted)) break;
    Plan(sequence, wanted);
    budget -= wanted;
  }
}

bool EngineCore::MakeRoom(Sequence& sequence, uint64_t new_tokens) {
  while (!Allocate(sequence, new_tokens, {})) {
    Sequence& youngest = *running_.back();
    Preempt(youngest);
    if (&youngest == &sequence) return false;
  }
  return true;
}

void EngineCore::Preempt(Sequence& sequence) {
  CHECK(running_.back() == &sequence);
  running_.pop_back();
  Release(sequence);
  waiting_.push_front(&sequence);
  sequence.preempted = true;
  preempted_ = true;
  ++counters_.preemptions;
}

void EngineCore::Release(Sequence& sequence) {
  pool_.Free(sequence.blocks);
  sequence.blocks.clear();
  sequence.registered = 0;
  sequence.computed = 0;
  sequence.uncached = false;
}

void EngineCore::ScheduleWaiting(uint64_t& budget) {
  while (!waiting_.empty() && budget > 0 && running_.size() < options_.max_num_seqs) {
    Sequence& sequence = *waiting_.front();
    const std::vector<uint32_t> found = FindCached(sequence);
    const uint64_t cached = found.size() * options_.block_size;
    const uint64_t wanted = std::min(sequence.tokens.size() - cached, budget);
    const uint64_t known = KnownTokens(sequence);
    sequence.computed = cached;
    if (!Allocate(sequence, wanted, found)) {
      sequence.computed = 0;
      return;
    }
    waiting_.pop_front();
    running_.push_back(&sequence);
    if (!sequence.cached) {
      sequence.cached = static_cast<uint32_t>(cached);
      counters_.prompt_tokens += sequence.request.prompt.size();
      counters_.cached_tokens += cached;
      counters_.recomputed_tokens += known - std::min(known, cached);
    }
    Plan(sequence, wanted);
    budget -= wanted;
  }
}

// The longest run of cached blocks that the sequence begins with. The last token is always
// computed, because its logits are wanted.
std::vector<uint32_t> EngineCore::FindCached(Sequence& sequence) {
  std::vector<uint32_t> found;
  if (sequence.request.skip_cache || !options_.prefix_caching) return found;
  const size_t most = (sequence.tokens.size() - 1) / options_.block_size;
  for (size_t i = 0; i < most; ++i) {
    sequence.HashUpTo(i + 1, options_.block_size);
    const auto block = pool_.Find(sequence.hashes[i]);
    if (!block) break;
    found.push_back(*block);
  }
  return found;
}

// How much of a prompt that was not started yet a cache could have saved, if it held all that any
// engine ever had.
uint64_t EngineCore::KnownTokens(Sequence& sequence) const {
  if (!options_.ledger || sequence.cached) return 0;
  const size_t most = (sequence.request.prompt.size() - 1) / options_.block_size;
  sequence.HashUpTo(most, options_.block_size);
  return options_.ledger->Known(std::span(sequence.hashes).first(most)) * options_.block_size;
}

// Takes `found` into use and as many new blocks as the tokens need. False if they are not there.
bool EngineCore::Allocate(Sequence& sequence, uint64_t new_tokens,
                          const std::vector<uint32_t>& found) {
  const uint64_t size = options_.block_size;
  const uint64_t wanted = (sequence.computed + new_tokens + size - 1) / size;
  const uint64_t have = sequence.blocks.size() + found.size();
  const uint64_t fresh = wanted > have ? wanted - have : 0;
  const auto idle = static_cast<uint64_t>(std::count_if(
      found.begin(), found.end(), [this](uint32_t block) { return !pool_.in_use(block); }));
  if (fresh + idle > pool_.free_blocks()) return false;
  for (const uint32_t block : found) pool_.Touch(block);
  sequence.blocks.insert(sequence.blocks.end(), found.begin(), found.end());
  sequence.registered += found.size();
  evicted_.clear();
  pool_.Allocate(fresh, sequence.blocks, evicted_);
  if (options_.publish_events) {
    for (const BlockHash hash : evicted_) events_.emplace_back(BlockRemoved{hash});
  }
  CacheFullBlocks(sequence, sequence.computed + new_tokens);
  return true;
}

// Blocks are known to the cache as soon as the step that fills them is scheduled.
void EngineCore::CacheFullBlocks(Sequence& sequence, uint64_t computed) {
  const size_t full = computed / options_.block_size;
  const size_t first = sequence.registered;
  if (full <= first) return;
  sequence.HashUpTo(full, options_.block_size);
  sequence.registered = full;
  if (options_.ledger)
    options_.ledger->Enter(std::span(sequence.hashes).subspan(first, full - first));
  if (!options_.prefix_caching || sequence.uncached) return;
  for (size_t i = first; i < full; ++i) pool_.Register(sequence.blocks[i], sequence.hashes[i]);
  if (options_.publish_events) AnnounceStored(sequence, first, full);
}

void EngineCore::AnnounceStored(const Sequence& sequence, size_t first, size_t full) {
  BlocksStored stored;
  stored.hashes.assign(sequence.hashes.begin() + static_cast<ptrdiff_t>(first),
                       sequence.hashes.begin() + static_cast<ptrdiff_t>(full));
  if (first > 0) stored.parent = sequence.hashes[first - 1];
  const auto tokens = sequence.tokens.begin();
  stored.tokens.assign(tokens + static_cast<ptrdiff_t>(first * options_.block_size),
                       tokens + static_cast<ptrdiff_t>(full * options_.block_size));
  stored.block_size = options_.block_size;
  stored.lora = sequence.request.lora;
  if (first == 0) stored.salt = sequence.request.salt;
  events_.emplace_back(std::move(stored));
}

void EngineCore::Plan(Sequence& sequence, uint64_t new_tokens) {
  sequence.planned = new_tokens;
  planned_.push_back(&sequence);
  Account(sequence, new_tokens);
}

void EngineCore::Account(const Sequence& sequence, uint64_t new_tokens) {
  const bool decodes = sequence.generated() > 0 && new_tokens == 1;
  if (decodes) {
    ++load_.decoding;
    load_.context_of_decoding += sequence.tokens.size();
  } else {
    load_.new_tokens += new_tokens;
    load_.context_of_new += new_tokens * sequence.computed;
  }
}

TokenId EngineCore::NextToken(const Sequence& sequence) const {
  const uint64_t index = sequence.generated();
  if (index < sequence.request.answer.size()) return sequence.request.answer[index];
  const BlockHash mixed[] = {sequence.root, sequence.id, index};
  return static_cast<TokenId>(XXH3_64bits_withSeed(mixed, sizeof(mixed), options_.seed) %
                              kVocabulary);
}

// The end of the step: what was planned has been computed, and whoever has no more to compute gets
// a token.
void EngineCore::Emit(EngineStep& out) {
  out.outputs.clear();
  for (Sequence* const sequence : planned_) {
    sequence->computed += sequence->planned;
    if (sequence->computed < sequence->tokens.size()) continue;
    const TokenId token = NextToken(*sequence);
    sequence->tokens.push_back(token);
    ++counters_.generated_tokens;
    const bool finished = sequence->generated() >= sequence->request.max_tokens;
    out.outputs.push_back({.sequence = sequence->id,
                           .token = token,
                           .finished = finished,
                           .cached_tokens = sequence->cached.value_or(0),
                           .preempted = sequence->preempted});
    if (!finished) continue;
    std::erase(running_, sequence);
    Release(*sequence);
    sequences_.erase(sequence->id);
  }
}

}  // namespace fathom
