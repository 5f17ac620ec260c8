#include "router/events/msgpack_event.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "router/events/msgpack_dialect.h"
#include "router/events/msgpack_fields.h"

namespace fathom {
namespace {

enum class Field : uint8_t {
  kHashes,
  kParent,
  kTokens,
  kBlockSize,
  kLoraId,
  kMedium,
  kLoraName,
  kExtraKeys,
  kGroup,
  kSpecKind,
  kWindow,
  kCacheSalt,
  kMmKeys,
  kUnknown,
};

constexpr std::array<std::string_view, 14> kFieldNames = {
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
    "kv_cache_spec_kind",
    "kv_cache_spec_sliding_window",
    "cache_salt",
    "mm_keys",
    "",
};
static_assert(kFieldNames.size() == static_cast<size_t>(Field::kUnknown) + 1);

std::string_view Name(Field field) { return kFieldNames[static_cast<size_t>(field)]; }

Field FieldOf(std::string_view name) {
  const auto found = std::ranges::find(kFieldNames, name);
  return found == kFieldNames.end() ? Field::kUnknown
                                    : static_cast<Field>(found - kFieldNames.begin());
}

// The fields by position, after the tag.
constexpr std::array kStoredFields = {
    Field::kHashes, Field::kParent,   Field::kTokens,   Field::kBlockSize,
    Field::kLoraId, Field::kMedium,   Field::kLoraName, Field::kExtraKeys,
    Field::kGroup,  Field::kSpecKind, Field::kWindow,
};
constexpr std::array kRemovedFields = {Field::kHashes, Field::kMedium, Field::kGroup};

constexpr uint32_t kAnyNumber = std::numeric_limits<uint32_t>::max();

// An engine that renames a field would else look like one whose events have no blocks.
template <size_t N>
Result<> Demand(const std::array<bool, N>& present, std::initializer_list<Field> needed) {
  for (const Field field : needed) {
    if (!present[static_cast<size_t>(field)]) return Fail(Blame::kPeer, "has no {}", Name(field));
  }
  return {};
}

template <class T>
Result<> Put(T& where, Result<T> value) {
  TRY(where, std::move(value));
  return {};
}

GroupKind KindOf(std::string_view spec, uint32_t window) {
  if (spec.empty() || spec == "full_attention" || spec == "mla_attention" ||
      spec == "sink_full_attention")
    return GroupKind::kFull;
  const bool windowed = spec == "sliding_window" || spec == "sliding_window_mla";
  return windowed && window > 0 ? GroupKind::kWindow : GroupKind::kUnsupported;
}

// Collects the fields of one stored event in any order. Finish() interprets those that depend on
// each other.
class StoredDraft {
 public:
  Result<> Take(Field field, MsgpackReader& in);
  // nullopt: an event without blocks.
  Result<std::optional<StoredEvent>> Finish();

 private:
  Result<> TakeLoraNameOrMetadata(MsgpackReader& in);
  Result<> Remember(std::optional<MsgpackReader>& where, MsgpackReader& in);
  Result<size_t> CountBlocks() const;
  Result<> AddKeys(Field field, std::optional<MsgpackReader> keys, size_t blocks);
  Result<> AddKeysOfBlock(Field field, MsgpackReader& in, uint32_t block);
  void SortKeys();

  std::array<bool, kFieldNames.size()> present_{};
  StoredEvent event_;
  EventTokens tokens_;
  std::string lora_id_;
  std::string spec_;
  std::optional<MsgpackReader> extra_keys_;  // positioned before the keys
  std::optional<MsgpackReader> mm_keys_;
};

Result<> StoredDraft::Take(Field field, MsgpackReader& in) {
  present_[static_cast<size_t>(field)] = true;
  switch (field) {
    case Field::kHashes:
      return Put(event_.hashes, TakeHashes(in));
    case Field::kParent:
      return Put(event_.parent, TakeHashOrNil(in));
    case Field::kTokens:
      return Put(tokens_, TakeTokens(in));
    case Field::kBlockSize:
      return Put(event_.block_size, TakeNumber(in, kMaxBlockSize));
    case Field::kLoraId:
      return Put(lora_id_, TakeLoraId(in));
    case Field::kMedium:
      return Put(event_.tier, TakeTier(in));
    case Field::kLoraName:
      return TakeLoraNameOrMetadata(in);
    case Field::kGroup:
      return Put(event_.group, TakeNumber(in, kAnyNumber));
    case Field::kSpecKind:
      return Put(spec_, TakeName(in));
    case Field::kWindow:
      return Put(event_.window, TakeNumber(in, kAnyNumber));
    case Field::kCacheSalt:
      return Put(event_.salt, TakeName(in));
    case Field::kExtraKeys:
      return Remember(extra_keys_, in);
    case Field::kMmKeys:
      return Remember(mm_keys_, in);
    case Field::kUnknown:
      break;
  }
  if (!in.Skip()) return Fail(Blame::kPeer, "{}", in.problem());
  return {};
}

// In the position of vLLM's LoRA name, SGLang has a map of metadata.
Result<> StoredDraft::TakeLoraNameOrMetadata(MsgpackReader& in) {
  if (in.Peek() != MsgpackReader::Type::kMap) return Put(event_.lora, TakeName(in));
  MsgpackReader inside = in;
  if (!in.Skip()) return Fail(Blame::kPeer, "{}", in.problem());
  if (Seek(inside, Name(Field::kCacheSalt))) return Put(event_.salt, TakeName(inside));
  return {};
}

Result<> StoredDraft::Remember(std::optional<MsgpackReader>& where, MsgpackReader& in) {
  const MsgpackReader before = in;
  if (in.TakeNil()) return {};
  where = before;
  if (!in.Skip()) return Fail(Blame::kPeer, "{}", in.problem());
  return {};
}

Result<size_t> StoredDraft::CountBlocks() const {
  const size_t blocks = tokens_.positions / event_.block_size;
  if (tokens_.positions % event_.block_size != 0)
    return Fail(Blame::kPeer, "token_ids: {} tokens are not a multiple of block_size {}",
                tokens_.positions, event_.block_size);
  if (event_.hashes.size() > blocks)
    return Fail(Blame::kPeer, "block_hashes: {} hashes for {} blocks", event_.hashes.size(),
                blocks);
  return blocks;
}

Result<std::optional<StoredEvent>> StoredDraft::Finish() {
  TRY_VOID(Demand(present_, {Field::kHashes, Field::kTokens, Field::kBlockSize}));
  // vLLM's CPU offload announces blocks without their tokens.
  if (event_.block_size == 0 || tokens_.positions == 0) return std::nullopt;
  TRY(const size_t blocks, CountBlocks());
  if (event_.lora.empty()) event_.lora = std::move(lora_id_);
  event_.kind = KindOf(spec_, event_.window);
  event_.pairs = tokens_.pairs;
  event_.tokens = std::move(tokens_.ids);
  event_.extra = std::move(tokens_.extra);
  for (ExtraKey& extra : event_.extra) extra.block /= event_.block_size;
  TRY_VOID(AddKeys(Field::kExtraKeys, extra_keys_, blocks));
  TRY_VOID(AddKeys(Field::kMmKeys, mm_keys_, blocks));
  SortKeys();
  return std::move(event_);
}

// One entry per hash. If there are fewer than blocks, the last blocks get them; the index does not
// use the keys of an event that names only some of its blocks.
Result<> StoredDraft::AddKeys(Field field, std::optional<MsgpackReader> keys, size_t blocks) {
  if (!keys) return {};
  const auto count = keys->TakeArray();
  if (!count) return Fail(Blame::kPeer, "{}: not a list", Name(field));
  if (*count > blocks)
    return Fail(Blame::kPeer, "{}: {} entries for {} blocks", Name(field), *count, blocks);
  for (size_t block = blocks - *count; block < blocks; ++block)
    TRY_VOID(AddKeysOfBlock(field, *keys, static_cast<uint32_t>(block)));
  return {};
}

// vLLM puts the LoRA's name first in every block, and the salt only into a prompt's first block.
// Any other string is an identifier.
Result<> StoredDraft::AddKeysOfBlock(Field field, MsgpackReader& in, uint32_t block) {
  if (in.TakeNil()) return {};
  const auto count = in.TakeArray();
  if (!count) return Fail(Blame::kPeer, "{}: block {}: not a list", Name(field), block);
  const bool named = field == Field::kExtraKeys;
  for (uint32_t i = 0; i < *count; ++i) {
    MsgpackReader ahead = in;
    const auto text = ahead.TakeString();
    const bool lora = named && text && i == 0 && *text == event_.lora && !event_.lora.empty();
    const bool salt = named && text && !lora && block == 0 && !event_.parent;
    if (salt) {
      TRY(event_.salt, TakeName(in));
    } else if (lora) {
      in = ahead;
    } else {
      TRY(const uint64_t key, TakeExtraKey(in));
      if (event_.extra.size() == kMaxKeysPerEvent)
        return Fail(Blame::kPeer, "more than {} keys", kMaxKeysPerEvent);
      event_.extra.push_back({block, key});
    }
  }
  return {};
}

// Sorted by block, in which their order has no meaning; an image that fills many positions is one
// key.
void StoredDraft::SortKeys() {
  std::vector<ExtraKey>& extra = event_.extra;
  std::ranges::sort(extra, {}, [](const ExtraKey& e) { return std::pair(e.block, e.key); });
  const auto repeated = std::ranges::unique(extra);
  extra.erase(repeated.begin(), repeated.end());
}

class RemovedDraft {
 public:
  Result<> Take(Field field, MsgpackReader& in) {
    present_[static_cast<size_t>(field)] = true;
    if (field == Field::kHashes) return Put(event_.hashes, TakeHashes(in));
    if (field == Field::kMedium) return Put(event_.tier, TakeTier(in));
    if (field == Field::kGroup) return Put(event_.group, TakeNumber(in, kAnyNumber));
    if (!in.Skip()) return Fail(Blame::kPeer, "{}", in.problem());
    return {};
  }

  Result<std::optional<RemovedEvent>> Finish() {
    TRY_VOID(Demand(present_, {Field::kHashes}));
    if (event_.hashes.empty()) return std::nullopt;
    return std::move(event_);
  }

 private:
  std::array<bool, kFieldNames.size()> present_{};
  RemovedEvent event_;
};

// The start of an event: its tag, and the number and form of its fields.
struct EventHead {
  std::string_view tag;
  uint32_t fields = 0;  // entries of a map; elements of an array, without the tag
  bool is_map = false;
};

Result<EventHead> TakeHead(MsgpackReader& in) {
  EventHead head;
  MsgpackReader ahead = in;
  if (const auto pairs = in.TakeMap()) {
    head.fields = *pairs;
    head.is_map = true;
    Seek(ahead, "type");
  } else if (const auto elements = in.TakeArray(); elements && *elements > 0) {
    head.fields = *elements - 1;
    ahead = in;
    in.Skip();
  } else {
    return Fail(Blame::kPeer, "neither a map nor an array with a tag");
  }
  const auto tag = ahead.TakeString();
  if (!tag) return Fail(Blame::kPeer, "has no type");
  head.tag = *tag;
  return head;
}

// Passes every field to the draft, by its name or by its position.
template <class Draft, size_t N>
Result<> TakeFields(const EventHead& head, const std::array<Field, N>& by_position,
                    MsgpackReader& in, Draft& draft) {
  for (uint32_t i = 0; i < head.fields; ++i) {
    const Field by_place = i < N ? by_position[i] : Field::kUnknown;
    const Field field = head.is_map ? FieldOf(TakeKey(in)) : by_place;
    if (auto taken = draft.Take(field, in); !taken)
      return std::unexpected(std::move(taken).error().In(Name(field)));
  }
  return {};
}

Result<std::optional<CacheEvent>> TakeStored(const EventHead& head, MsgpackReader& in) {
  StoredDraft draft;
  TRY_VOID(TakeFields(head, kStoredFields, in, draft));
  TRY(std::optional<StoredEvent> event, draft.Finish());
  if (!event) return std::nullopt;
  return CacheEvent(*std::move(event));
}

Result<std::optional<CacheEvent>> TakeRemoved(const EventHead& head, MsgpackReader& in) {
  RemovedDraft draft;
  TRY_VOID(TakeFields(head, kRemovedFields, in, draft));
  TRY(std::optional<RemovedEvent> event, draft.Finish());
  if (!event) return std::nullopt;
  return CacheEvent(*std::move(event));
}

// What a newer engine says in this way is not known, so it is reported and not just left out.
std::unexpected<Error> UnknownType(std::string_view tag) {
  constexpr size_t kShown = 64;
  return Fail(Blame::kPeer, "the type '{}' is not known", tag.substr(0, kShown));
}

}  // namespace

Result<std::optional<CacheEvent>> TakeEvent(MsgpackReader& in) {
  TRY(const EventHead head, TakeHead(in));
  if (head.tag == "AllBlocksCleared") return CacheEvent(ClearedEvent{});
  const bool stored = head.tag == "BlockStored";
  if (!stored && head.tag != "BlockRemoved") return UnknownType(head.tag);
  auto event = stored ? TakeStored(head, in) : TakeRemoved(head, in);
  if (!event) return std::unexpected(std::move(event).error().In(head.tag));
  return event;
}

}  // namespace fathom
