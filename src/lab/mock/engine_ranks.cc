#include "lab/mock/engine_ranks.h"

#include <algorithm>

namespace fathom {

Result<std::unique_ptr<EngineRanks>> EngineRanks::Create(Loop& loop, const MockOptions& options) {
  if (options.num_blocks == 1) return Fail(Blame::kCaller, "num-blocks must be at least 2");
  std::unique_ptr<EngineRanks> ranks(new EngineRanks);
  TRY(ranks->profile_, TimingProfile::Named(options.profile));
  EngineOptions each{.block_size = BlockSizeOf(options),
                     .num_blocks = NumBlocksOf(options),
                     .max_num_seqs = options.max_num_seqs,
                     .max_num_batched_tokens = options.max_num_batched_tokens,
                     .seed = options.seed,
                     .publish_events = options.on_kv_events || options.kv_events.on,
                     .prefix_caching = options.prefix_caching,
                     .ledger = options.ledger};
  ranks->on_kv_events_ = options.on_kv_events;
  for (uint32_t rank = 0; rank < std::max(options.dp_size, 1u); ++rank) {
    ranks->drivers_.push_back(
        std::make_unique<EngineDriver>(loop, each, *ranks->profile_, options.speedup));
    if (!each.publish_events) continue;
    ranks->drivers_.back()->SetListener(
        [rank, all = ranks.get()](const std::vector<KvEvent>& events) { all->Hear(rank, events); });
  }
  if (!options.kv_events.on) return ranks;
  TRY(ranks->feed_, EventFeed::Create(loop, options));
  // Meanwhile it may have been stopped.
  loop.Post([all = ranks.get()] {
    if (all->feed_) all->feed_->Start();
  });
  return ranks;
}

void EngineRanks::Hear(size_t rank, const std::vector<KvEvent>& events) {
  if (on_kv_events_) on_kv_events_(rank, events);
  if (feed_ && feed_->Publish(rank, events)) {
    drivers_[rank]->Restart(feed_->options().restart_block_size);
  }
}

void EngineRanks::Adopt(const MockOptions& options) {
  for (const auto& driver : drivers_) driver->SetPrefixCaching(options.prefix_caching);
  if (feed_) feed_->Adopt(options);
}

size_t EngineRanks::LeastLoaded() const {
  const auto least =
      std::ranges::min_element(drivers_, {}, [](const auto& driver) { return driver->load(); });
  return static_cast<size_t>(least - drivers_.begin());
}

bool EngineRanks::ResetPrefixCache() {
  bool all = true;
  for (const auto& driver : drivers_) all = driver->ResetPrefixCache() && all;
  return all;
}

void EngineRanks::Freeze() {
  for (const auto& driver : drivers_) driver->Freeze();
  StopFeed();
}

EngineStatistics EngineRanks::Statistics() const {
  EngineStatistics sum;
  for (const auto& driver : drivers_) {
    const EngineStatistics one = driver->statistics();
    sum.running += one.running;
    sum.waiting += one.waiting;
    sum.cache_usage += one.cache_usage / static_cast<double>(drivers_.size());
    sum.counters.steps += one.counters.steps;
    sum.counters.preemptions += one.counters.preemptions;
    sum.counters.prompt_tokens += one.counters.prompt_tokens;
    sum.counters.cached_tokens += one.counters.cached_tokens;
    sum.counters.recomputed_tokens += one.counters.recomputed_tokens;
    sum.counters.generated_tokens += one.counters.generated_tokens;
  }
  return sum;
}

}  // namespace fathom
