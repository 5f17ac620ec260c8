// A rank of which another router can be told what it holds, so that it need not learn it itself.
//
// Threads  The intake's loop.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "io/net/task.h"
#include "router/events/intake_context.h"
#include "router/events/rank_feed.h"
#include "router/index/holding_snapshot.h"

namespace fathom {

class TellableRank {
 public:
  // A snapshot of the rank, for which at most `most` bytes of memory are taken. The caller keeps
  // the rank until it ends.
  virtual Task<Result<std::string>> Export(size_t most) = 0;

 protected:
  ~TellableRank() = default;
};

// How often those who may not change the rank meanwhile look whether its export has ended.
constexpr Duration kWhileExporting = std::chrono::milliseconds(1);
// How long an export waits for a moment in which nothing of the rank is being applied.
constexpr Duration kPatienceToTell = std::chrono::seconds(1);
// Blocks that are told or taken over at a time, between two looks at what else waits.
constexpr size_t kSnapshotSlice = 4096;

// The holdings of a feed as they are after `mark`. Nothing may be applied to it meanwhile; what
// clears it ends the export. Precondition: feed.ExportBytes() > 0. Keep both until it ends.
Task<Result<std::string>> ExportFeed(IntakeContext& context, RankFeed& feed, StreamMark mark,
                                     size_t most);

}  // namespace fathom
