#include "router/events/asked_snapshots.h"

#include <utility>

namespace fathom {

AskedSnapshots::AskedSnapshots(IntakeContext& context, const std::vector<RankLabel>& ranks)
    : context_(context) {
  answers_->missing = ranks.size();
  for (const RankLabel& rank : ranks) {
    auto answer = [answers = answers_,
                   &loop = context.loop](std::shared_ptr<const HoldingSnapshot> snapshot) {
      loop.Post([answers, snapshot = std::move(snapshot)] {
        if (snapshot) answers->snapshots.push_back(snapshot);
        if (--answers->missing == 0 && answers->wait != nullptr) answers->wait->WakeNow();
      });
    };
    context.snapshots->Ask(rank, std::move(answer));
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
  co_return std::exchange(answers->snapshots, {});
}

void AskedSnapshots::Cancel() {
  if (answers_->wait != nullptr) answers_->wait->WakeNow();
}

}  // namespace fathom
