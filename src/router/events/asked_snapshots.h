// What do other routers know of a worker's ranks? Asks for all of them, and waits for the answers.
//
// Threads  The intake's loop.
#pragma once

#include <memory>
#include <vector>

#include "engine/rank_label.h"
#include "io/net/task.h"
#include "io/net/wakeable_wait.h"
#include "router/events/intake_context.h"
#include "router/index/holding_snapshot.h"

namespace fathom {

class AskedSnapshots {
 public:
  // Precondition: context.snapshots is not null.
  AskedSnapshots(IntakeContext& context, const std::vector<RankLabel>& ranks);

  // Ends when all have been answered, after IntakeOptions::snapshot_wait, or with Cancel(). Those
  // that there are; later ones are dropped. Once.
  using Snapshots = std::vector<std::shared_ptr<const HoldingSnapshot>>;
  Task<Snapshots> Await();
  void Cancel();

 private:
  // Lives as long as answers are wanted.
  struct Answers {
    size_t missing = 0;
    Snapshots snapshots;
    WakeableWait* wait = nullptr;
  };

  IntakeContext& context_;
  std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
};

}  // namespace fathom
