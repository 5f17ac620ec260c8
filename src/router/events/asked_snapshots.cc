#include "router/events/asked_snapshots.h"

#include <utility>

namespace fathom {

AskedSnapshots::AskedSnapshots(IntakeContext& context, const std::vector<RankLabel>& ranks)
    : context_(context) {
  answers_->missing = ranks.size();
  for (const RankLabel& rank : ranks) {
    auto take = [asker = std::weak_ptr(answers_), &counts = context.snapshot_counts](
                    const std::shared_ptr<const HoldingSnapshot>& snapshot) {
      const auto answers = asker.lock();
      if (!answers) {
        if (snapshot) counts.dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      if (snapshot) answers->snapshots.push_back(snapshot);
      if (--answers->missing == 0 && answers->wait != nullptr) answers->wait->WakeNow();
    };
    auto answer = [take, &loop = context.loop](std::shared_ptr<const HoldingSnapshot> snapshot) {
      loop.Post([take, snapshot = std::move(snapshot)] { take(snapshot); });
    };
    context.snapshots->Ask(rank, answers_, std::move(answer));
  }
}

Task<AskedSnapshots::Snapshots> AskedSnapshots::Await() {
  const std::shared_ptr<Answers> answers = answers_;
  if (answers->missing > 0) {
    WakeableWait wait(context_.loop, context_.loop.now() + context_.options.snapshot_wait);
    answers->wait = &wait;
    co_await wait;
    answers->wait = nullptr;
  }
  answers_.reset();
  co_return std::exchange(answers->snapshots, {});
}

void AskedSnapshots::Cancel() {
  if (answers_->wait != nullptr) answers_->wait->WakeNow();
}

}  // namespace fathom
