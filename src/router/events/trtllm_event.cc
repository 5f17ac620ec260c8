#include "router/events/trtllm_event.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "router/events/extra_key.h"
#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

const Json& MemberOrNull(const Json& json, std::string_view key) {
  static const Json kNull;
  const Json* found = json.Find(key);
  return found == nullptr ? kNull : *found;
}

// An integer's 64 bits. Doubles are refused: a rounded identifier would identify something else.
std::optional<uint64_t> Bits(const Json& json) {
  if (const auto* number = std::get_if<uint64_t>(&json.value())) return *number;
  if (const auto* number = std::get_if<int64_t>(&json.value()))
    return static_cast<uint64_t>(*number);
  return std::nullopt;
}

Result<uint64_t> ReadHex(std::string_view digits) {
  const std::string_view last = digits.substr(digits.size() - std::min<size_t>(digits.size(), 16));
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), hash, 16);
  if (last.empty() || error != std::errc() || end != last.data() + last.size())
    return Fail(Blame::kPeer, "a hash that is not hexadecimal");
  return hash;
}

// A number, or with hash_algo v2_sha256 the hexadecimal digest, of which the last 64 bits are used.
Result<uint64_t> ReadHash(const Json& json) {
  if (const auto bits = Bits(json)) return *bits;
  if (json.string() == nullptr) return Fail(Blame::kPeer, "a hash that is neither number nor text");
  return ReadHex(*json.string());
}

Result<uint32_t> ReadNumber(const Json& json, std::string_view name) {
  if (json.is_null()) return 0;
  const auto number = Bits(json);
  if (!number || *number > std::numeric_limits<uint32_t>::max())
    return Fail(Blame::kPeer, "{}: not a number of 32 bits", name);
  return static_cast<uint32_t>(*number);
}

Result<Tier> ReadLevel(const Json& json) {
  TRY(const uint32_t level, ReadNumber(json, "cache_level"));
  constexpr Tier kLevels[] = {Tier::kDevice, Tier::kHost, Tier::kDisk};
  return level < std::size(kLevels) ? kLevels[level] : Tier::kExternal;
}

// The keys of a block are a set; a run of equal keys is one image.
void AddKey(TrtllmBlock& block, uint64_t key) {
  if (block.keys.empty() || block.keys.back() != key) block.keys.push_back(key);
}

Result<> ReadToken(const Json& json, TrtllmBlock& block) {
  const Json& id = MemberOrNull(json, "token_id");
  if (id.string() != nullptr) {  // an identifier that a multimodal model has in place of a token
    AddKey(block, ExtraKeyOf(*id.string()));
    block.tokens.push_back(0);
  } else {
    const auto number = Bits(id);
    if (!number || *number > std::numeric_limits<TokenId>::max())
      return Fail(Blame::kPeer, "token_id: not a number of 32 bits");
    block.tokens.push_back(static_cast<TokenId>(*number));
  }
  const uint64_t extra = Bits(MemberOrNull(json, "token_extra_id")).value_or(0);
  if (extra != 0) AddKey(block, extra);
  return {};
}

// {"type": "mm_key", "hash": ..., "start_offset": ...}, or the hash alone. The offset is left out:
// the tokens around it determine the position.
Result<> ReadMmKey(const Json& json, TrtllmBlock& block) {
  const Json& hash = json.object() == nullptr ? json : MemberOrNull(json, "hash");
  if (const auto bits = Bits(hash)) {
    AddKey(block, *bits);
  } else if (hash.string() != nullptr) {
    AddKey(block, ExtraKeyOf(*hash.string()));
  } else {
    return Fail(Blame::kPeer, "mm_keys: a key without hash");
  }
  return {};
}

Result<TrtllmBlock> ReadBlock(const Json& json) {
  TrtllmBlock block;
  TRY(block.hash, ReadHash(MemberOrNull(json, "block_hash")));
  TRY(block.tier, ReadLevel(MemberOrNull(json, "cache_level")));
  const Json::Array* tokens = MemberOrNull(json, "tokens").array();
  if (tokens == nullptr) return Fail(Blame::kPeer, "tokens: not a list");
  if (tokens->size() > kMaxBlockSize)
    return Fail(Blame::kPeer, "tokens: {}, more than {}", tokens->size(), kMaxBlockSize);
  block.tokens.reserve(tokens->size());
  for (const Json& token : *tokens) TRY_VOID(ReadToken(token, block));
  if (const Json::Array* keys = MemberOrNull(json, "mm_keys").array())
    for (const Json& key : *keys) TRY_VOID(ReadMmKey(key, block));
  return block;
}

Result<TrtllmStored> ReadStored(const Json& data) {
  TrtllmStored stored;
  if (const Json& parent = MemberOrNull(data, "parent_hash"); !parent.is_null()) {
    TRY(stored.parent, ReadHash(parent));
  }
  const Json::Array* blocks = MemberOrNull(data, "blocks").array();
  if (blocks == nullptr) return Fail(Blame::kPeer, "blocks: not a list");
  for (const Json& json : *blocks) {
    TRY(TrtllmBlock block, ReadBlock(json));
    stored.blocks.push_back(std::move(block));
  }
  return stored;
}

Result<TrtllmRemoved> ReadRemoved(const Json& data) {
  const Json::Array* hashes = MemberOrNull(data, "block_hashes").array();
  if (hashes == nullptr) return Fail(Blame::kPeer, "block_hashes: not a list");
  TrtllmRemoved removed;
  for (const Json& json : *hashes) {
    TRY(const uint64_t hash, ReadHash(json));
    removed.hashes.push_back(hash);
  }
  return removed;
}

Result<> ReadUpdated(const Json& data, TrtllmEvent& event) {
  const Json& level = MemberOrNull(data, "cache_level");
  if (level.is_null()) return {};  // only the priority changed
  TrtllmMoved moved;
  TRY(moved.hash, ReadHash(MemberOrNull(data, "block_hash")));
  TRY(moved.from, ReadLevel(MemberOrNull(level, "old_value")));
  TRY(moved.to, ReadLevel(MemberOrNull(level, "new_value")));
  if (moved.from != moved.to) event.data = moved;
  return {};
}

}  // namespace

Result<TrtllmEvent> ReadTrtllmHead(const Json& json) {
  TrtllmEvent event;
  const Json& id = MemberOrNull(json, "event_id");
  if (!Bits(id)) return Fail(Blame::kPeer, "event_id: not a number");
  event.id = *Bits(id);
  TRY(event.rank, ReadNumber(MemberOrNull(json, "attention_dp_rank"), "attention_dp_rank"));
  return event;
}

Result<> ReadTrtllmData(const Json& json, TrtllmEvent& event) {
  event.window = Bits(MemberOrNull(json, "window_size")).value_or(0);
  TRY(event.group, ReadNumber(MemberOrNull(json, "layer_group_id"), "layer_group_id"));
  const Json& data = MemberOrNull(json, "data");
  const std::string* type = MemberOrNull(data, "type").string();
  if (type == nullptr) return Fail(Blame::kPeer, "data: has no type");
  if (*type == "stored") {
    TRY(event.data, ReadStored(data));
  } else if (*type == "removed") {
    TRY(event.data, ReadRemoved(data));
  } else if (*type == "updated") {
    return ReadUpdated(data, event);
  } else if (*type != "created") {
    constexpr size_t kShown = 64;
    return Fail(Blame::kPeer, "the type '{}' is not known", type->substr(0, kShown));
  }
  return {};
}

}  // namespace fathom
