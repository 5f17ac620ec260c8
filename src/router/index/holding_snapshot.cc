#include "router/index/holding_snapshot.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "router/index/prefix_index.h"

namespace fathom {
namespace {

constexpr std::string_view kMark = "fathom-holdings";
constexpr uint32_t kForm = 1;
constexpr size_t kDigestBytes = 16;
constexpr size_t kMostSeeds = 65536;
constexpr uint32_t kLargestBlock = 1u << 20;  // tokens
constexpr size_t kBytesPerName = 12;          // of an export, besides its result

// The first byte of a block.
constexpr uint8_t kParentBefore = 1;  // its parent is the block before it
constexpr uint8_t kParentBack = 2;    // the distance to its parent follows
constexpr uint8_t kOneCopy = 4;
constexpr uint8_t kManyCopies = 8;  // their number follows; neither: a ghost
constexpr uint8_t kNameSpace = 16;  // its namespace follows; otherwise that of the block before it
constexpr uint8_t kAllFlags = 31;

// Changes with every part of the computation of keys.
uint64_t KeyCheck() {
  constexpr std::array<TokenId, 8> kTokens = {1, 2, 3, 5, 8, 13, 21, 34};
  constexpr std::array<uint64_t, 2> kExtra = {11, 7};
  const uint64_t first = LocalHash(kTokens, kExtra, NamespaceSeed("lora", "salt"));
  return ChainKey(first, LocalHash(kTokens, NamespaceSeed("", "")));
}

template <class T>
void PutNumber(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::string DigestText(const XXH128_hash_t& hash) {
  std::string text;
  PutNumber(text, hash.low64);
  PutNumber(text, hash.high64);
  return text;
}

// Reads numbers; after the first that is not there, everything is 0 and failed() is true.
class SnapshotReader {
 public:
  explicit SnapshotReader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  void Refuse() { failed_ = true; }

  template <class T>
  T Number() {
    if (failed_ || left() < sizeof(T)) {
      failed_ = true;
      return 0;
    }
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(Byte(i)) << (8 * i)));
    }
    at_ += sizeof(T);
    return value;
  }
  // A number of elements with at least `each` bytes.
  size_t Count(size_t most, size_t each) {
    const auto count = Number<uint32_t>();
    if (count > most || count > left() / each) failed_ = true;
    return failed_ ? 0 : count;
  }
  bool Text(std::string_view expected) {
    if (bytes_.substr(at_, expected.size()) != expected) failed_ = true;
    if (!failed_) at_ += expected.size();
    return !failed_;
  }

 private:
  uint8_t Byte(size_t i) const { return static_cast<uint8_t>(bytes_[at_ + i]); }

  const std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

// --- opening ------------------------------------------------------------------------------------

size_t HoldingSnapshot::blocks() const {
  size_t blocks = 0;
  for (const Lane& lane : lanes_) blocks += lane.blocks;
  return blocks;
}

std::string HoldingSnapshot::DigestOf(std::string_view content) {
  return DigestText(XXH3_128bits(content.data(), content.size()));
}

Result<HoldingSnapshot> HoldingSnapshot::Open(std::string bytes) {
  if (bytes.size() < kMark.size() + kDigestBytes || bytes.size() > kMostBytes) {
    return Fail(Blame::kPeer, "a snapshot of {} bytes", bytes.size());
  }
  HoldingSnapshot snapshot;
  snapshot.bytes_ = std::move(bytes);
  snapshot.blocks_end_ = snapshot.bytes_.size() - kDigestBytes;
  const std::string_view content =
      std::string_view(snapshot.bytes_).substr(0, snapshot.blocks_end_);
  if (DigestOf(content) != std::string_view(snapshot.bytes_).substr(snapshot.blocks_end_)) {
    return Fail(Blame::kPeer, "the snapshot does not match its digest");
  }
  TRY_VOID(snapshot.ReadHead(content));
  return snapshot;
}

Result<void> HoldingSnapshot::ReadHead(std::string_view content) {
  SnapshotReader in(content);
  if (!in.Text(kMark)) return Fail(Blame::kPeer, "not a snapshot of holdings");
  const auto form = in.Number<uint32_t>();
  const auto check = in.Number<uint64_t>();
  if (form != kForm) return Fail(Blame::kCaller, "snapshot of form {}; this is {}", form, kForm);
  if (check != KeyCheck()) {
    return Fail(Blame::kCaller, "the snapshot's keys are computed in another way");
  }
  head_.rank.worker = in.Number<uint64_t>();
  head_.rank.dp_rank = in.Number<uint32_t>();
  head_.shape.size = in.Number<uint32_t>();
  const auto pairs = in.Number<uint8_t>();
  head_.shape.pairs = pairs == 1;
  head_.shape_group = in.Number<uint32_t>();
  head_.mark.sequence = in.Number<uint64_t>();
  if (head_.shape.size == 0 || head_.shape.size > kLargestBlock || pairs > 1) in.Refuse();
  const size_t marks = in.Count(StreamMark::kMostFingerprints, 8);
  if (marks == 0 || marks - 1 > head_.mark.sequence) in.Refuse();
  if (head_.mark.sequence == std::numeric_limits<uint64_t>::max()) in.Refuse();
  for (size_t i = 0; i < marks; ++i) head_.mark.fingerprints.push_back(in.Number<uint64_t>());
  const size_t seeds = in.Count(kMostSeeds, 8);
  for (size_t i = 0; i < seeds; ++i) seeds_.push_back(in.Number<uint64_t>());
  if (seeds_.empty() || seeds_[0] != kKeySeed) in.Refuse();
  const size_t unused = in.Count(seeds_.size(), 2);
  for (size_t i = 0; i < unused; ++i) {
    free_seeds_.push_back(in.Number<uint16_t>());
    if (free_seeds_.back() == 0 || free_seeds_.back() >= seeds_.size()) in.Refuse();
  }
  const size_t unsupported = in.Count(RankHoldings::kMostLanes, 4);
  for (size_t i = 0; i < unsupported; ++i) {
    unsupported_groups_.push_back(in.Number<uint32_t>());
  }
  const size_t lanes = in.Count(RankHoldings::kMostLanes, 19);
  uint64_t blocks = 0;
  for (size_t i = 0; i < lanes; ++i) {
    const auto tier = in.Number<uint8_t>();
    const auto group = in.Number<uint32_t>();
    const auto kind = in.Number<uint8_t>();
    Lane lane{.part = {static_cast<Tier>(tier), group}, .kind = static_cast<GroupKind>(kind)};
    lane.window = in.Number<uint32_t>();
    const auto irregular = in.Number<uint8_t>();
    lane.irregular = irregular == 1;
    lane.blocks = in.Number<uint64_t>();
    if (tier >= kTiers || kind >= static_cast<uint8_t>(GroupKind::kUnsupported) || irregular > 1) {
      in.Refuse();
    }
    for (const Lane& other : lanes_) {
      if (other.part == lane.part) in.Refuse();
    }
    if (lane.blocks > kMostBytes) in.Refuse();
    blocks += lane.blocks;
    lanes_.push_back(lane);
  }
  if (in.failed() || blocks > in.left() / kLeastBlock) {
    return Fail(Blame::kPeer, "the head of the snapshot is malformed");
  }
  blocks_at_ = in.at();
  return {};
}

// --- writing ------------------------------------------------------------------------------------

struct HoldingExport::Digest {
  alignas(64) XXH3_state_t state;
  size_t hashed = 0;

  Digest() { XXH3_128bits_reset(&state); }
  void Update(const std::string& out) {
    XXH3_128bits_update(&state, out.data() + hashed, out.size() - hashed);
    hashed = out.size();
  }
};

size_t HoldingExport::BytesFor(const RankHoldings& holdings) {
  size_t blocks = 0;
  size_t largest = 0;
  for (const auto& lane : holdings.lanes_) {
    blocks += lane->ledger.known_blocks();
    largest = std::max<size_t>(largest, lane->ledger.records());
  }
  return blocks * (HoldingSnapshot::kLeastBlock + 1) + largest * kBytesPerName +
         holdings.seeds_.size() * 10 + 4096;
}

HoldingExport::HoldingExport(const RankHoldings& holdings, const SnapshotHead& head)
    : holdings_(holdings), digest_(std::make_unique<Digest>()) {
  WriteHead(head);
}

HoldingExport::~HoldingExport() = default;

void HoldingExport::WriteHead(const SnapshotHead& head) {
  out_ += kMark;
  PutNumber(out_, kForm);
  PutNumber(out_, KeyCheck());
  PutNumber(out_, head.rank.worker);
  PutNumber(out_, head.rank.dp_rank);
  PutNumber(out_, head.shape.size);
  PutNumber(out_, static_cast<uint8_t>(head.shape.pairs ? 1 : 0));
  PutNumber(out_, head.shape_group);
  PutNumber(out_, head.mark.sequence);
  PutNumber(out_, static_cast<uint32_t>(head.mark.fingerprints.size()));
  for (const uint64_t fingerprint : head.mark.fingerprints) PutNumber(out_, fingerprint);
  PutNumber(out_, static_cast<uint32_t>(holdings_.seeds_.size()));
  for (const uint64_t seed : holdings_.seeds_) PutNumber(out_, seed);
  PutNumber(out_, static_cast<uint32_t>(holdings_.free_name_spaces_.size()));
  for (const uint16_t id : holdings_.free_name_spaces_) PutNumber(out_, id);
  PutNumber(out_, static_cast<uint32_t>(holdings_.unsupported_groups_.size()));
  for (const uint32_t group : holdings_.unsupported_groups_) PutNumber(out_, group);
  PutNumber(out_, static_cast<uint32_t>(holdings_.lanes_.size()));
  size_t blocks = 0;
  for (const auto& lane : holdings_.lanes_) {
    PutNumber(out_, static_cast<uint8_t>(lane->part.tier));
    PutNumber(out_, lane->part.group);
    PutNumber(out_, static_cast<uint8_t>(lane->kind));
    PutNumber(out_, lane->window);
    PutNumber(out_, static_cast<uint8_t>(lane->irregular ? 1 : 0));
    PutNumber(out_, uint64_t{lane->ledger.known_blocks()});
    blocks += lane->ledger.known_blocks();
  }
  // Most blocks have the least length; the rest fits or the string grows once.
  out_.reserve(out_.size() + blocks * (HoldingSnapshot::kLeastBlock + 1) + kDigestBytes);
}

bool HoldingExport::Advance(size_t blocks) {
  size_t done = 0;
  while (lane_ < holdings_.lanes_.size()) {
    if (done >= blocks) return false;
    const BlockLedger& ledger = holdings_.lanes_[lane_]->ledger;
    if (bucket_ == 0 && hashes_.empty()) {
      hashes_.assign(ledger.records(), 0);
      numbers_.assign(ledger.records(), BlockLedger::kNone);
    }
    if (bucket_ < ledger.buckets()) {
      done += NameSome(ledger, blocks - done);
    } else if (node_ < ledger.records()) {
      done += WriteSome(ledger, blocks - done);
      digest_->Update(out_);
    } else {
      NextLane();
    }
  }
  if (digest_ == nullptr) return true;
  digest_->Update(out_);
  out_ += DigestText(XXH3_128bits_digest(&digest_->state));
  digest_.reset();
  return true;
}

void HoldingExport::NextLane() {
  ++lane_;
  bucket_ = 0;
  node_ = 0;
  written_ = 0;
  last_name_space_ = 0;
  hashes_.clear();
  numbers_.clear();
}

// Records do not contain the engine's hashes, which are only in the hash table.
size_t HoldingExport::NameSome(const BlockLedger& ledger, size_t blocks) {
  size_t done = 0;
  for (; bucket_ < ledger.buckets() && done < blocks; ++bucket_) {
    done += ledger.NameRecords(bucket_, hashes_) + 1;
  }
  return done;
}

size_t HoldingExport::WriteSome(const BlockLedger& ledger, size_t blocks) {
  size_t done = 0;
  for (; node_ < ledger.records() && done < blocks; ++node_) {
    ++done;
    if (hashes_[node_] == 0 || numbers_[node_] != BlockLedger::kNone) continue;
    done += WriteWithParents(ledger, node_);
  }
  return done;
}

// Writes the block after those of its parents that were not written yet.
size_t HoldingExport::WriteWithParents(const BlockLedger& ledger, BlockLedger::Node node) {
  path_.clear();
  for (; node != BlockLedger::kNone && numbers_[node] == BlockLedger::kNone;
       node = ledger.parent(node)) {
    path_.push_back(node);
  }
  for (size_t i = path_.size(); i > 0; --i) WriteBlock(ledger, path_[i - 1]);
  return path_.size();
}

void HoldingExport::WriteBlock(const BlockLedger& ledger, BlockLedger::Node node) {
  const BlockLedger::Node parent = ledger.parent(node);
  const uint32_t back = parent == BlockLedger::kNone ? 0 : written_ - numbers_[parent];
  const uint16_t copies = ledger.copies(node);
  const uint16_t name_space = ledger.name_space(node);
  uint8_t flags = 0;
  if (back == 1) flags |= kParentBefore;
  if (back > 1) flags |= kParentBack;
  if (copies == 1) flags |= kOneCopy;
  if (copies > 1) flags |= kManyCopies;
  if (name_space != last_name_space_) flags |= kNameSpace;
  const uint64_t hash = ledger.HashOf(hashes_[node]);
  const uint64_t key = ledger.key(node);
  char fixed[HoldingSnapshot::kLeastBlock];
  fixed[0] = static_cast<char>(flags);
  for (size_t i = 0; i < 8; ++i) {
    fixed[1 + i] = static_cast<char>(hash >> (8 * i));
    fixed[9 + i] = static_cast<char>(key >> (8 * i));
  }
  out_.append(fixed, sizeof(fixed));
  if (back > 1) PutVarint(out_, back);
  if (copies > 1) PutVarint(out_, copies);
  if (name_space != last_name_space_) PutVarint(out_, name_space);
  last_name_space_ = name_space;
  numbers_[node] = written_++;
}

// --- reading ------------------------------------------------------------------------------------

HoldingImport::HoldingImport(RankHoldings& holdings, const HoldingSnapshot& snapshot,
                             Elsewhere* elsewhere)
    : holdings_(holdings), snapshot_(snapshot), elsewhere_(elsewhere), at_(snapshot.blocks_at_) {
  TakeNamespaces();
}

void HoldingImport::TakeNamespaces() {
  holdings_.seeds_ = snapshot_.seeds_;
  holdings_.free_name_spaces_ = snapshot_.free_seeds_;
  holdings_.unsupported_groups_ = snapshot_.unsupported_groups_;
  std::vector<bool> unused(snapshot_.seeds_.size(), false);
  for (const uint16_t id : snapshot_.free_seeds_) {
    if (unused[id]) failed_ = true;  // twice in the list
    unused[id] = true;
  }
  holdings_.name_spaces_.clear();
  for (size_t id = 0; id < snapshot_.seeds_.size(); ++id) {
    if (unused[id]) continue;
    const bool fresh =
        holdings_.name_spaces_.emplace(snapshot_.seeds_[id], static_cast<uint16_t>(id)).second;
    if (!fresh) failed_ = true;
  }
}

HoldingImport::Step HoldingImport::Advance(size_t blocks) {
  if (failed_) return Step::kInvalid;
  const Epochs::Pin pin(holdings_.seat_);
  MakeLanes();
  size_t entered = 0;
  while (lane_number_ < snapshot_.lanes_.size()) {
    if (!in_lane_ && !BeginLane()) return Step::kInvalid;
    const uint64_t left = snapshot_.lanes_[lane_number_].blocks - done_;
    if (left == 0) {
      EndLane();
      continue;
    }
    if (entered >= blocks) {
      holdings_.UpdateCounts();
      return Step::kMore;
    }
    const auto count = static_cast<size_t>(std::min<uint64_t>(left, kBatch));
    if (!EnterSome(count)) {
      failed_ = true;
      return Step::kInvalid;
    }
    entered += count;
    if (entered % (8 * kBatch) == 0) holdings_.seat_.Renew();  // lets replaced arrays be freed
  }
  return Finish();
}

HoldingImport::Step HoldingImport::Finish() {
  holdings_.UpdateCounts();
  failed_ = at_ != snapshot_.blocks_end_;
  return failed_ ? Step::kInvalid : Step::kDone;
}

// Before the first block: a lookup that does not know of the other lanes would take the first one
// for the whole rank.
void HoldingImport::MakeLanes() {
  if (std::exchange(made_lanes_, true)) return;
  for (const HoldingSnapshot::Lane& lane : snapshot_.lanes_) {
    (void)holdings_.FindOrMake({.part = lane.part, .kind = lane.kind, .window = lane.window});
  }
}

bool HoldingImport::BeginLane() {
  const HoldingSnapshot::Lane& from = snapshot_.lanes_[lane_number_];
  lane_ = holdings_.FindOrMake({.part = from.part, .kind = from.kind, .window = from.window});
  in_lane_ = true;
  done_ = 0;
  last_name_space_ = 0;
  if (lane_ == nullptr) return true;
  if (lane_->ledger.records() != 0) return false;
  lane_->irregular = from.irregular;
  // Until the lane is complete, lookups check every block.
  if (lane_->tracked()) holdings_.Announce(*lane_, false);
  lane_->ledger.Reserve(from.blocks);
  return true;
}

void HoldingImport::EndLane() {
  in_lane_ = false;
  ++lane_number_;
  if (lane_ == nullptr) return;
  lane_->ledger.DropBareGhosts();
  holdings_.Settle(*lane_);
}

std::optional<uint64_t> HoldingImport::TakeVarint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (at_ == snapshot_.blocks_end_) return std::nullopt;
    const auto byte = static_cast<uint8_t>(snapshot_.bytes_[at_++]);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

bool HoldingImport::Read(Block& block) {
  if (snapshot_.blocks_end_ - at_ < HoldingSnapshot::kLeastBlock) return false;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(snapshot_.bytes_.data() + at_);
  const uint8_t flags = bytes[0];
  block = {};
  for (size_t i = 0; i < 8; ++i) {
    block.hash |= uint64_t{bytes[1 + i]} << (8 * i);
    block.key |= uint64_t{bytes[9 + i]} << (8 * i);
  }
  at_ += HoldingSnapshot::kLeastBlock;
  constexpr uint8_t kParents = kParentBefore | kParentBack;
  constexpr uint8_t kCopies = kOneCopy | kManyCopies;
  if (flags > kAllFlags || (flags & kParents) == kParents || (flags & kCopies) == kCopies) {
    return false;
  }
  if ((flags & kParentBefore) != 0) block.back = 1;
  if ((flags & kParentBack) != 0) {
    const auto back = TakeVarint();
    if (!back || *back < 2) return false;
    block.back = *back;
  }
  if ((flags & kOneCopy) != 0) block.copies = 1;
  if ((flags & kManyCopies) != 0) {
    const auto copies = TakeVarint();
    if (!copies || *copies < 2 || *copies > std::numeric_limits<uint16_t>::max()) return false;
    block.copies = static_cast<uint16_t>(*copies);
  }
  if ((flags & kNameSpace) != 0) {
    const auto name_space = TakeVarint();
    if (!name_space || *name_space >= snapshot_.seeds_.size()) return false;
    last_name_space_ = static_cast<uint16_t>(*name_space);
  }
  block.name_space = last_name_space_;
  return true;
}

// Only lanes that track gaps have parents and ghosts.
bool HoldingImport::Fits(const Block& block, uint64_t number) const {
  const HoldingSnapshot::Lane& from = snapshot_.lanes_[lane_number_];
  const bool tracked = from.kind == GroupKind::kFull && from.part.tier == Tier::kDevice;
  if (!tracked && (block.back != 0 || block.copies == 0)) return false;
  return block.back <= number;
}

// Each pass prefetches the memory that the next one needs.
bool HoldingImport::EnterSome(size_t count) {
  const bool enters = lane_ != nullptr && !full_;
  for (size_t i = 0; i < count; ++i) {
    if (!Read(batch_[i]) || !Fits(batch_[i], done_ + i)) return false;
    if (!enters) continue;
    lane_->ledger.Prefetch(batch_[i].hash);
    if (batch_[i].copies > 0) holdings_.bank_->table.Prefetch(batch_[i].key);
  }
  for (size_t i = 0; i < count; ++i, ++done_) {
    if (lane_ == nullptr || full_) {
      holdings_.counters_.refused.Add(1);
    } else if (!EnterBlock(batch_[i])) {
      return false;
    }
  }
  return true;
}

// False: the hash is there already. Blocks are numbered as in the snapshot, because the ledger was
// empty and nothing was left out before.
bool HoldingImport::EnterBlock(const Block& block) {
  BlockLedger& ledger = lane_->ledger;
  if (ledger.Find(block.hash) != BlockLedger::kNone) return false;
  const bool ghost = block.copies == 0;
  const auto number = static_cast<BlockLedger::Node>(done_);
  const BlockLedger::Node parent =
      block.back == 0 ? BlockLedger::kNone : static_cast<BlockLedger::Node>(number - block.back);
  LaneTable& table = holdings_.bank_->table;
  if (!ghost && !table.Set(block.key, lane_->bit)) return LeaveOutRest();
  const BlockLedger::Node made =
      ledger.Insert(block.hash, block.key, parent, block.name_space, ghost);
  if (made == BlockLedger::kNone) {
    if (!ghost) table.Clear(block.key, lane_->bit);
    return LeaveOutRest();
  }
  if (!ghost) ledger.SetCopies(made, block.copies);
  holdings_.counters_.stored.Add(block.copies);
  const Tier tier = lane_->part.tier;
  if (elsewhere_ != nullptr && tier != Tier::kDevice) elsewhere_->emplace_back(block.hash, tier);
  return true;
}

bool HoldingImport::LeaveOutRest() {
  full_ = true;
  holdings_.counters_.refused.Add(1);
  return true;
}

}  // namespace fathom
