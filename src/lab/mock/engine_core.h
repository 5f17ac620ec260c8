// An inference engine without a GPU and without a clock: continuous batching over a paged KV cache,
// by vLLM's rules, in virtual time.
//
// Each Step() schedules a batch within the token budget, says how long it would take, which tokens
// come out of it, and which KV events the engine would publish. Prompts are prefilled in chunks;
// running sequences go first; when the cache is full the youngest running one is preempted and
// computed again later. Blocks are cached when they are scheduled, so identical requests share them
// at once.
//
// Time         None here: a step that lasts `duration` is over that much later, and the caller
// decides
//              what that means. Requests submitted meanwhile join the next step.
// Determinism  The same options and calls give the same history.
// Threads      One.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "lab/mock/block_pool.h"
#include "lab/mock/kv_event.h"
#include "lab/mock/prefix_ledger.h"
#include "lab/mock/timing_profile.h"

namespace fathom {

struct EngineOptions {
  uint32_t block_size = 16;
  uint32_t num_blocks = 16384;  // one of them is reserved
  uint32_t max_num_seqs = 256;
  uint32_t max_num_batched_tokens = 8192;
  uint64_t seed = 1;  // of the tokens it makes up
  bool publish_events = true;
  bool prefix_caching = true;
  // Tells what is computed again though an engine had it; null: nobody wants to know.
  std::shared_ptr<PrefixLedger> ledger = nullptr;
};

using SequenceId = uint64_t;

struct EngineRequest {
  std::vector<TokenId> prompt;
  uint32_t max_tokens = 16;
  std::string lora;
  std::string salt;
  std::vector<TokenId> answer;  // what it shall say; made up where this ends
  // Takes nothing from the cache, as whoever wants the log-probabilities of the prompt. Its blocks
  // are stored all the same, once more where they were there.
  bool skip_cache = false;
};

struct EngineOutput {
  SequenceId sequence;
  TokenId token;
  bool finished;
  uint32_t cached_tokens;  // of its prompt, found in the cache when it was first scheduled
  bool preempted;          // since then
};

struct EngineStep {
  Duration duration{};
  StepLoad load;
  std::vector<EngineOutput> outputs;
  std::vector<KvEvent> events;
};

struct EngineCounters {
  uint64_t steps = 0;
  uint64_t preemptions = 0;
  uint64_t prompt_tokens = 0;  // of prompts that were started
  uint64_t cached_tokens = 0;  // of those, found in the cache
  // Of those, not found, though some engine of the ledger had computed them. That a preempted
  // sequence is computed again is not counted.
  uint64_t recomputed_tokens = 0;
  uint64_t generated_tokens = 0;
};

class EngineCore {
 public:
  EngineCore(const EngineOptions& options, const TimingProfile& profile);
  ~EngineCore();

  // An error if the sequence could never fit the cache, or is empty.
  Result<SequenceId> Submit(EngineRequest request);
  // The client has left. Unknown and finished sequences are ignored.
  void Cancel(SequenceId sequence);

  // False if there is nothing to do. `out` is overwritten.
  bool Step(EngineStep& out);

  // As the engine's own endpoint: false while anything is in use. The event comes with the next
  // step.
  bool ResetPrefixCache();

  // As a process that died and came back: everything waits again, the cache is empty, and no event
  // tells of it. Between steps. With a `block_size` other than 0 blocks have that many tokens from
  // now on, and there are as many as hold at least what the cache held.
  void Restart(uint32_t block_size = 0);

  // Between steps. What is switched off forgets the cache without a word; what is switched on again
  // says so first.
  void SetPrefixCaching(bool on);

  // Of this prompt, how many tokens a request without adapter and salt would find in the cache now.
  uint64_t CachedTokens(std::span<const TokenId> prompt) const;

  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
  double cache_usage() const;
  uint64_t capacity_tokens() const { return pool_.usable_blocks() * options_.block_size; }
  const EngineCounters& counters() const { return counters_; }
  const EngineOptions& options() const { return options_; }
  const BlockPool& pool() const { return pool_; }

 private:
  struct Sequence;

  void ScheduleRunning(uint64_t& budget);
  void ScheduleWaiting(uint64_t& budget);
  bool MakeRoom(Sequence& sequence, uint64_t new_tokens);
  bool Allocate(Sequence& sequence, uint64_t new_tokens, const std::vector<uint32_t>& found);
  void Plan(Sequence& sequence, uint64_t new_tokens);
  std::vector<uint32_t> FindCached(Sequence& sequence);
  uint64_t KnownTokens(Sequence& sequence) const;
  void CacheFullBlocks(Sequence& sequence, uint64_t computed);
  void AnnounceStored(const Sequence& sequence, size_t first, size_t full);
  void Preempt(Sequence& sequence);
  void Release(Sequence& sequence);
  void Account(const Sequence& sequence, uint64_t new_tokens);
  void Emit(EngineStep& out);
  TokenId NextToken(const Sequence& sequence) const;

  void Reshape(uint32_t block_size);

  EngineOptions options_;  // constant but for what a restart or a switch may change
  const TimingProfile& profile_;
  BlockPool pool_;
  SequenceId next_id_ = 1;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // oldest first
  std::vector<Sequence*> planned_;  // in this step
  bool preempted_ = false;          // in this step
  bool forgot_ = false;             // the cache, without a word
  StepLoad load_;
  std::vector<KvEvent> events_;  // since the last step
  std::vector<BlockHash> evicted_;
  EngineCounters counters_;
};

}  // namespace fathom
