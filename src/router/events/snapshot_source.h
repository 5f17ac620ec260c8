// Where does a router learn at its start what the ranks hold, besides from the engines?
//
// From another router that has followed them for longer (router/replicas/index_exchange.h). The
// intake asks a SnapshotSource when it joins a rank's stream, and is itself the SnapshotTeller that
// other routers are answered from.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/rank_label.h"
#include "router/index/holding_snapshot.h"

namespace fathom {

class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  // Called once, on any thread. Null: there is none.
  using Answer = std::move_only_function<void(std::shared_ptr<const HoldingSnapshot>)>;
  // Called on the intake's loop; returns at once. While the answer is awaited, the rank's events
  // wait in their connection, so it must come within seconds. Once `asker` has expired, the answer
  // is not wanted any more, and need not be a snapshot. The snapshot must be taken after this call.
  virtual void Ask(const RankLabel& rank, std::weak_ptr<const void> asker, Answer answer) = 0;
};

class SnapshotTeller {
 public:
  virtual ~SnapshotTeller() = default;
  // Any thread; returns at once. Answers come on the intake's loop, and not after its end.
  using Told = std::move_only_function<void(Result<std::string>)>;
  // A snapshot of a rank. Errors: kPeer, this router does not follow the rank, or not well enough;
  // kOverload, later perhaps. One is made at a time. `most` bounds the memory for it.
  virtual void Export(const RankLabel& rank, size_t most, Told told) = 0;
  // The ranks of which a snapshot could be made now.
  using Listed = std::move_only_function<void(std::vector<RankLabel>)>;
  virtual void ListRanks(Listed listed) = 0;
};

// Since the start. Written by the intake, read by any thread: plain counts that order nothing else.
struct SnapshotCounts {
  std::atomic<uint64_t> adopted{0};  // the rank went on from it
  // It did not fit the events, could not be used, or came too late.
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> blocks{0};   // of those that were adopted
  std::atomic<uint64_t> told{0};     // exports for other routers
  std::atomic<uint64_t> refused{0};  // exports that were not possible
};

}  // namespace fathom
