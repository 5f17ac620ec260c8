// What does one rank hold, in a form from which another process rebuilds the same?
//
//   HoldingExport exporting(holdings, head);             // here
//   while (!exporting.Advance(10'000)) {}
//   auto snapshot = HoldingSnapshot::Open(exporting.Take());   // there
//   HoldingImport importing(other_holdings, *snapshot);
//   while (importing.Advance(10'000) == HoldingImport::Step::kMore) {}
//
// Content    Every lane with its blocks (engine hash, key, parent, copies, ghosts) and the seeds of
//            the namespaces. Runs whose place is not known yet are left out: the copy has fewer
//            blocks than the original then, never more.
// Keys       A block's key is computed from its tokens, the extra keys and the seed of its
//            namespace, without any secret of the process. Secrets only choose places in tables, so
//            two processes may have different ones. What must agree is the way keys are computed:
//            a check value of it is in the head, and a snapshot with another one is refused.
// Form       A head, the lanes, the blocks lane by lane with each parent before its children, and a
//            digest (XXH3-128) of all that. Numbers are little-endian; 17 bytes for most blocks.
// Hostile    Open() and HoldingImport take any bytes. What they allocate is bounded by a small
//            multiple of the snapshot's length.
// Slices     Advance() handles about as many blocks as it is asked for, so that a loop is not held
//            up. The holdings must not change between the first and the last call.
// Threads    HoldingSnapshot: any. The others: the writer thread of the holdings.
// Memory     HoldingExport takes 12 bytes per block besides the result.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/rank_label.h"
#include "router/index/rank_holdings.h"
#include "router/index/stored_run.h"
#include "text/tokens/block_hash.h"

namespace fathom {

// How far a rank's stream of numbered batches has come: everything up to and with `sequence`.
struct StreamMark {
  static constexpr size_t kMostFingerprints = 256;
  uint64_t sequence = 0;
  // Of the batches up to and with it, the last one last. At least one.
  std::vector<uint64_t> fingerprints;
  friend bool operator==(const StreamMark&, const StreamMark&) = default;
};

// Whose holdings these are, and which batch they reflect.
struct SnapshotHead {
  RankLabel rank;
  BlockShape shape;
  uint32_t shape_group = 0;  // the cache group whose events have that shape
  StreamMark mark;
  friend bool operator==(const SnapshotHead&, const SnapshotHead&) = default;
};

class HoldingSnapshot {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 30;
  static constexpr size_t kLeastBlock = 17;  // bytes

  // Checks the digest, the head and the lanes. Errors: kPeer, not such a snapshot, or damaged;
  // kCaller, of a version that computes keys in another way.
  static Result<HoldingSnapshot> Open(std::string bytes);
  // For tests: the digest of a content, as it follows it.
  static std::string DigestOf(std::string_view content);

  struct Lane {
    CachePart part;
    GroupKind kind = GroupKind::kFull;
    uint32_t window = 0;
    bool irregular = false;
    uint64_t blocks = 0;  // with ghosts
  };

  const SnapshotHead& head() const { return head_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  size_t blocks() const;
  size_t bytes() const { return bytes_.size(); }

 private:
  friend class HoldingImport;
  HoldingSnapshot() = default;
  Result<void> ReadHead(std::string_view content);

  std::string bytes_;
  SnapshotHead head_;
  std::vector<uint64_t> seeds_;       // by namespace
  std::vector<uint16_t> free_seeds_;  // namespaces that have no blocks
  std::vector<uint32_t> unsupported_groups_;
  std::vector<Lane> lanes_;
  size_t blocks_at_ = 0;   // where the blocks begin
  size_t blocks_end_ = 0;  // and end
};

class HoldingExport {
 public:
  // Rough upper bound of the memory that an export of these holdings takes, with its result.
  static size_t BytesFor(const RankHoldings& holdings);

  HoldingExport(const RankHoldings& holdings, const SnapshotHead& head);
  ~HoldingExport();
  HoldingExport(const HoldingExport&) = delete;
  HoldingExport& operator=(const HoldingExport&) = delete;

  // True: done.
  bool Advance(size_t blocks);
  // Once, after that.
  std::string Take() { return std::move(out_); }

 private:
  struct Digest;

  void WriteHead(const SnapshotHead& head);
  size_t NameSome(const BlockLedger& ledger, size_t blocks);
  size_t WriteSome(const BlockLedger& ledger, size_t blocks);
  size_t WriteWithParents(const BlockLedger& ledger, BlockLedger::Node node);
  void WriteBlock(const BlockLedger& ledger, BlockLedger::Node node);
  void NextLane();

  const RankHoldings& holdings_;
  std::string out_;
  std::unique_ptr<Digest> digest_;
  size_t lane_ = 0;
  // Of the current lane.
  size_t bucket_ = 0;              // the next one whose hashes are read
  BlockLedger::Node node_ = 0;     // the next one that is written
  std::vector<uint64_t> hashes_;   // by node; 0: a free record
  std::vector<uint32_t> numbers_;  // by node, in the order of writing
  std::vector<BlockLedger::Node> path_;
  uint32_t written_ = 0;
  uint16_t last_name_space_ = 0;
};

class HoldingImport {
 public:
  // Blocks that are not on the device, and where they are.
  using Elsewhere = std::vector<std::pair<uint64_t, Tier>>;
  // The holdings must be empty and of the snapshot's shape. Both must outlive it, and so must
  // `elsewhere`, to which such blocks are added; null: not.
  HoldingImport(RankHoldings& holdings, const HoldingSnapshot& snapshot,
                Elsewhere* elsewhere = nullptr);

  // kInvalid: the blocks are malformed. What was entered is a part of them: clear the holdings.
  // At the memory limit the rest is left out, which is kDone.
  enum class Step : uint8_t { kMore, kDone, kInvalid };
  Step Advance(size_t blocks);

 private:
  static constexpr size_t kBatch = 32;
  struct Block {
    uint64_t hash = 0;
    uint64_t key = 0;
    uint64_t back = 0;  // how many blocks before this one its parent is; 0: none
    uint16_t copies = 0;
    uint16_t name_space = 0;
  };

  void TakeNamespaces();
  void MakeLanes();
  bool BeginLane();
  void EndLane();
  bool Read(Block& block);
  bool Fits(const Block& block, uint64_t number) const;
  bool EnterSome(size_t count);
  bool EnterBlock(const Block& block);
  bool LeaveOutRest();
  std::optional<uint64_t> TakeVarint();
  Step Finish();

  RankHoldings& holdings_;
  const HoldingSnapshot& snapshot_;
  Elsewhere* const elsewhere_;
  size_t at_;  // in the bytes
  size_t lane_number_ = 0;
  bool made_lanes_ = false;
  bool in_lane_ = false;
  RankHoldings::Lane* lane_ = nullptr;  // null: there is no room for this lane
  uint64_t done_ = 0;                   // blocks of the lane that were read
  uint16_t last_name_space_ = 0;
  bool full_ = false;  // the memory limit was reached
  bool failed_ = false;
  std::array<Block, kBatch> batch_;
};

}  // namespace fathom
