#include "router/events/msgpack_fields.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "router/events/extra_key.h"
#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

std::unexpected<Error> WrongField(const MsgpackReader& in, std::string_view wanted) {
  if (in.failed()) return Fail(Blame::kPeer, "{}", in.problem());
  return Fail(Blame::kPeer, "not {}", wanted);
}

std::optional<std::string_view> TakeBytes(MsgpackReader& in) {
  if (const auto text = in.TakeString()) return text;
  return in.TakeBinary();
}

Result<TokenId> TakeToken(MsgpackReader& in) {
  const auto id = in.TakeUnsigned();
  if (!id) return WrongField(in, "a token id");
  if (*id > std::numeric_limits<TokenId>::max())
    return Fail(Blame::kPeer, "{} is too large for a token id", *id);
  return static_cast<TokenId>(*id);
}

// The second of a pair must be the first of the next one: the pairs are windows over one sequence.
Result<> TakePair(MsgpackReader& in, EventTokens& out) {
  const auto size = in.TakeArray();
  if (!size || *size != 2) return WrongField(in, "a pair of token ids");
  TRY(const TokenId first, TakeToken(in));
  TRY(const TokenId second, TakeToken(in));
  if (out.ids.empty()) {
    out.ids.push_back(first);
  } else if (out.ids.back() != first) {
    return Fail(Blame::kPeer, "pair {} begins with {}, the one before ends with {}", out.positions,
                first, out.ids.back());
  }
  out.ids.push_back(second);
  return {};
}

// Many consecutive positions stand for one image: it is recorded once per run.
void AddIdentifier(EventTokens& out, std::string_view identifier) {
  out.ids.push_back(0);
  out.extra.push_back({static_cast<uint32_t>(out.positions), ExtraKeyOf(identifier)});
}

Result<> TakePosition(MsgpackReader& in, EventTokens& out) {
  if (out.pairs) return TakePair(in, out);
  const bool identified = in.Peek() != MsgpackReader::Type::kInteger;
  if (const auto identifier = identified ? TakeBytes(in) : std::nullopt) {
    AddIdentifier(out, *identifier);
    return {};
  }
  TRY(const TokenId id, TakeToken(in));
  out.ids.push_back(id);
  return {};
}

}  // namespace

Result<uint64_t> TakeHash(MsgpackReader& in) {
  if (const auto number = in.TakeInteger()) return number->bits;
  const auto bytes = TakeBytes(in);
  if (!bytes) return WrongField(in, "a hash");
  if (bytes->size() < 8) return Fail(Blame::kPeer, "a hash of {} bytes", bytes->size());
  uint64_t hash = 0;
  for (const char byte : bytes->substr(bytes->size() - 8))
    hash = hash << 8 | static_cast<uint8_t>(byte);
  return hash;
}

Result<std::optional<uint64_t>> TakeHashOrNil(MsgpackReader& in) {
  if (in.TakeNil()) return std::nullopt;
  TRY(const uint64_t hash, TakeHash(in));
  return hash;
}

Result<std::vector<uint64_t>> TakeHashes(MsgpackReader& in) {
  const auto count = in.TakeArray();
  if (!count) return WrongField(in, "a list");
  if (*count > kMaxHashesPerEvent)
    return Fail(Blame::kPeer, "{} hashes, more than {}", *count, kMaxHashesPerEvent);
  std::vector<uint64_t> hashes;
  hashes.reserve(*count);
  for (uint32_t i = 0; i < *count; ++i) {
    TRY(const uint64_t hash, TakeHash(in));
    hashes.push_back(hash);
  }
  return hashes;
}

Result<EventTokens> TakeTokens(MsgpackReader& in) {
  EventTokens out;
  if (in.TakeNil()) return out;
  const auto count = in.TakeArray();
  if (!count) return WrongField(in, "a list");
  if (*count > kMaxTokensPerEvent)
    return Fail(Blame::kPeer, "{} tokens, more than {}", *count, kMaxTokensPerEvent);
  out.pairs = in.Peek() == MsgpackReader::Type::kArray && *count > 0;
  out.ids.reserve(size_t{*count} + 1);
  for (; out.positions < *count; ++out.positions) {
    TRY_VOID(TakePosition(in, out));
    if (out.extra.size() > kMaxKeysPerEvent)
      return Fail(Blame::kPeer, "more than {} identifiers", kMaxKeysPerEvent);
  }
  return out;
}

Result<uint32_t> TakeNumber(MsgpackReader& in, uint32_t most) {
  if (in.TakeNil()) return 0;
  const auto number = in.TakeUnsigned();
  if (!number) return WrongField(in, "a number from 0");
  if (*number > most) return Fail(Blame::kPeer, "{} is more than {}", *number, most);
  return static_cast<uint32_t>(*number);
}

Result<std::string> TakeName(MsgpackReader& in) {
  if (in.TakeNil()) return std::string();
  const auto name = in.TakeString();
  if (!name) return WrongField(in, "a string");
  if (name->size() > kMaxNamespaceBytes)
    return Fail(Blame::kPeer, "{} bytes, more than {}", name->size(), kMaxNamespaceBytes);
  return std::string(*name);
}

// An unknown tier counts as external: slower than all known tiers, but still a copy.
Result<Tier> TakeTier(MsgpackReader& in) {
  if (in.TakeNil()) return Tier::kDevice;
  const auto name = in.TakeString();
  if (!name) return WrongField(in, "a string");
  if (EqualsIgnoreCase(*name, "GPU")) return Tier::kDevice;
  if (EqualsIgnoreCase(name->substr(0, 3), "CPU")) return Tier::kHost;
  for (const std::string_view disk : {"DISK", "STORAGE", "FS"})
    if (EqualsIgnoreCase(*name, disk)) return Tier::kDisk;
  return Tier::kExternal;
}

// Requests use the LoRA's name, so they never match such blocks; but the blocks are not mistaken
// for the base model's either. vLLM numbers adapters from 1.
Result<std::string> TakeLoraId(MsgpackReader& in) {
  if (in.TakeNil()) return std::string();
  const auto id = in.TakeInteger();
  if (!id) return WrongField(in, "a number");
  if (id->bits == 0) return std::string();
  return fmt::format("lora-id:{}", static_cast<int64_t>(id->bits));
}

std::string_view TakeKey(MsgpackReader& in) {
  if (const auto key = in.TakeString()) return *key;
  in.Skip();
  return {};
}

bool Seek(MsgpackReader& in, std::string_view key) {
  const uint32_t count = in.TakeMap().value_or(0);
  for (uint32_t i = 0; i < count; ++i) {
    if (TakeKey(in) == key) return !in.failed();
    if (!in.Skip()) return false;
  }
  return false;
}

// vLLM sends [hash, offset], TensorRT-LLM {"hash": ..., "start_offset": ...}. The offset is left
// out: a request contains its images, and the tokens around an image determine its position. A key
// of another shape is hashed from its bytes, so that its block still differs from others.
Result<uint64_t> TakeExtraKey(MsgpackReader& in) {
  MsgpackReader inside = in;
  const size_t begin = in.position();
  if (!in.Skip()) return WrongField(in, "a key");
  if (inside.Peek() == MsgpackReader::Type::kMap) {
    Seek(inside, "hash");
  } else {
    inside.TakeArray();
  }
  if (inside.position() < in.position()) {
    if (const auto number = inside.TakeInteger()) return number->bits;
    if (const auto identifier = TakeBytes(inside)) return ExtraKeyOf(*identifier);
  }
  return ExtraKeyOf(in.Since(begin));
}

}  // namespace fathom
