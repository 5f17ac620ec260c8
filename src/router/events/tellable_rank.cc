#include "router/events/tellable_rank.h"

#include <optional>
#include <utility>

#include "io/net/yield.h"

namespace fathom {

Task<Result<std::string>> ExportFeed(IntakeContext& context, RankFeed& feed, StreamMark mark,
                                     size_t most) {
  ByteHolder held(context.budget);
  const size_t bytes = feed.ExportBytes();
  if (bytes > most || !held.Hold(bytes)) {
    co_return Fail(Blame::kOverload, "no memory for a snapshot of {} bytes", bytes);
  }
  feed.BeginExport(mark);
  LoopShare share(context.loop);
  std::optional<std::string> snapshot;
  while (!snapshot && feed.exporting()) {
    snapshot = feed.ExportSome(kSnapshotSlice);
    if (!snapshot && share.Spent(0)) co_await Yield(context.loop);
  }
  if (!snapshot) co_return Fail(Blame::kPeer, "the rank was cleared meanwhile");
  co_return *std::move(snapshot);
}

}  // namespace fathom
