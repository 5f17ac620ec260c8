#include "lab/mock/event_wire.h"

#include <xxhash.h>

#include <array>
#include <compare>

#include "base/random.h"
#include "base/text.h"
#include "codec/json.h"

namespace fathom {
namespace {

constexpr std::string_view kMedium = "GPU";
constexpr std::string_view kSpecKind = "full_attention";
constexpr int kPriority = 35;  // TensorRT-LLM's default

struct Version {
  uint64_t major = 0;
  uint64_t minor = 0;
  uint64_t patch = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// "0.14", "0.10.2".
std::optional<Version> ParseVersion(std::string_view text) {
  const auto parts = SplitAny(text, ".");
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  std::array<uint64_t, 3> numbers{};
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = ParseDecimal(parts[i]);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  return Version{numbers[0], numbers[1], numbers[2]};
}

Result<Version> VersionFrom(std::string_view engine, std::string_view text, Version oldest,
                            Version newest) {
  if (text.empty()) return newest;
  const auto version = ParseVersion(text);
  if (!version) {
    return Fail(Blame::kCaller, "wire '{}' is not a version of {}; write one such as {}.{}.{}",
                text, engine, newest.major, newest.minor, newest.patch);
  }
  if (*version < oldest) {
    return Fail(Blame::kCaller, "wire '{}': {} publishes usable KV events only since {}.{}.{}",
                text, engine, oldest.major, oldest.minor, oldest.patch);
  }
  return *version;
}

// The last eight bytes are the integer form.
std::string BytesOf(BlockHash hash) {
  Random rest(hash);
  std::string bytes;
  for (const uint64_t word : {rest.Next(), rest.Next(), rest.Next(), hash}) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(word >> shift));
  }
  return bytes;
}

}  // namespace

Result<EventWire> EventWire::Create(MockedEngine engine, std::string_view version,
                                    bool byte_hashes) {
  EventWire wire;
  wire.engine_ = engine;
  switch (engine) {
    case MockedEngine::kVllm:
      TRY_VOID(wire.BeVllm(version));
      break;
    case MockedEngine::kSglang:
      TRY_VOID(wire.BeSglang(version));
      break;
    case MockedEngine::kTrtllm:
      TRY_VOID(wire.BeTrtllm(version));
      break;
  }
  if (byte_hashes && (engine != MockedEngine::kVllm || !wire.columns_.medium)) {
    return Fail(Blame::kCaller, "wire-hashes bytes: only vllm 0.10.2 and later have them");
  }
  wire.byte_hashes_ = byte_hashes;
  return wire;
}

Result<void> EventWire::BeVllm(std::string_view text) {
  TRY(const Version version, VersionFrom("vllm", text, {0, 9, 0}, {0, 32, 0}));
  columns_.rank = version >= Version{0, 9, 1};
  columns_.medium = version >= Version{0, 10, 2};
  columns_.lora_name = version >= Version{0, 14, 0};
  columns_.extra_keys = version >= Version{0, 17, 0};
  columns_.group = version >= Version{0, 20, 0};
  columns_.spec = version >= Version{0, 22, 0};
  maps_ = version >= Version{0, 24, 0};
  replays_topic_ = version >= Version{0, 26, 0};
  return {};
}

Result<void> EventWire::BeSglang(std::string_view text) {
  TRY(const Version version, VersionFrom("sglang", text, {0, 5, 6}, {0, 5, 23}));
  signed_hashes_ = true;
  columns_.medium = version >= Version{0, 5, 9};
  page_by_page_ = version < Version{0, 5, 18};
  salt_field_ = version >= Version{0, 5, 18};
  maps_ = version >= Version{0, 5, 23};
  replays_topic_ = maps_;
  return {};
}

Result<void> EventWire::BeTrtllm(std::string_view text) {
  if (!text.empty() && text != "poll" && text != "stream") {
    return Fail(Blame::kCaller, "wire '{}': trtllm has poll and stream", text);
  }
  polled_ = text != "stream";
  signed_hashes_ = true;
  columns_.medium = true;
  columns_.lora_name = true;
  maps_ = true;
  replays_topic_ = true;
  return {};
}

std::string EventWire::Batch(const std::vector<KvEvent>& events, double unix_seconds, size_t rank,
                             uint32_t block_size) const {
  const std::vector<KvEvent> split = page_by_page_ ? Split(events) : std::vector<KvEvent>();
  const std::vector<KvEvent>& said = page_by_page_ ? split : events;
  MsgpackWriter w;
  w.Array(columns_.rank ? 3 : 2).Double(unix_seconds).Array(static_cast<uint32_t>(said.size()));
  for (const KvEvent& event : said) {
    if (const auto* stored = std::get_if<BlocksStored>(&event)) {
      Stored(w, *stored, block_size == 0 ? stored->block_size : block_size);
    } else if (const auto* removed = std::get_if<BlockRemoved>(&event)) {
      Removed(w, *removed);
    } else {
      Cleared(w);
    }
  }
  if (columns_.rank) w.Unsigned(rank);
  return w.Take();
}

// One stored event per block.
std::vector<KvEvent> EventWire::Split(const std::vector<KvEvent>& events) const {
  std::vector<KvEvent> split;
  for (const KvEvent& event : events) {
    const auto* stored = std::get_if<BlocksStored>(&event);
    if (stored == nullptr) {
      split.push_back(event);
      continue;
    }
    auto tokens = stored->tokens.begin();
    for (size_t i = 0; i < stored->hashes.size(); ++i, tokens += stored->block_size) {
      BlocksStored page = {.hashes = {stored->hashes[i]},
                           .parent = stored->parent,
                           .tokens = {tokens, tokens + stored->block_size},
                           .block_size = stored->block_size,
                           .lora = stored->lora,
                           .salt = i == 0 ? stored->salt : ""};
      if (i > 0) page.parent = stored->hashes[i - 1];
      split.emplace_back(std::move(page));
    }
  }
  return split;
}

void EventWire::Key(MsgpackWriter& w, std::string_view name) const {
  if (maps_) w.String(name);
}

void EventWire::Hash(MsgpackWriter& w, BlockHash hash) const {
  if (byte_hashes_) {
    w.Binary(BytesOf(hash));
  } else if (signed_hashes_) {
    w.Signed(static_cast<int64_t>(hash));
  } else {
    w.Unsigned(hash);
  }
}

void EventWire::Hashes(MsgpackWriter& w, const std::vector<BlockHash>& hashes) const {
  w.Array(static_cast<uint32_t>(hashes.size()));
  for (const BlockHash hash : hashes) Hash(w, hash);
}

void EventWire::Parent(MsgpackWriter& w, const BlocksStored& stored) const {
  if (stored.parent) {
    Hash(w, *stored.parent);
  } else {
    w.Nil();
  }
}

// vLLM's number of an adapter, which is some number.
void EventWire::LoraId(MsgpackWriter& w, const BlocksStored& stored) const {
  if (engine_ == MockedEngine::kVllm && !stored.lora.empty()) {
    w.Unsigned(1 + XXH3_64bits(stored.lora.data(), stored.lora.size()) % 1000);
  } else {
    w.Nil();
  }
}

// Per block: the adapter, and the salt on the first block of a prompt.
void EventWire::ExtraKeys(MsgpackWriter& w, const BlocksStored& stored) const {
  w.Array(static_cast<uint32_t>(stored.hashes.size()));
  for (size_t i = 0; i < stored.hashes.size(); ++i) {
    const bool salted = i == 0 && !stored.parent && !stored.salt.empty();
    const uint32_t keys = (stored.lora.empty() ? 0u : 1u) + (salted ? 1u : 0u);
    if (keys == 0) {
      w.Nil();
      continue;
    }
    w.Array(keys);
    if (!stored.lora.empty()) w.String(stored.lora);
    if (salted) w.String(stored.salt);
  }
}

void EventWire::Stored(MsgpackWriter& w, const BlocksStored& stored, uint32_t block_size) const {
  const bool salt = salt_field_ && !stored.salt.empty();
  const bool tail = columns_.spec && !maps_;  // a map leaves out what is nil
  const uint32_t fields = 6u + columns_.medium + columns_.lora_name + columns_.extra_keys +
                          columns_.group + columns_.spec + tail + salt;
  if (maps_) {
    w.Map(fields);
  } else {
    w.Array(fields);
  }
  Key(w, "type");
  w.String("BlockStored");
  Key(w, "block_hashes");
  Hashes(w, stored.hashes);
  Key(w, "parent_block_hash");
  Parent(w, stored);
  Key(w, "token_ids");
  w.Array(static_cast<uint32_t>(stored.tokens.size()));
  for (const TokenId token : stored.tokens) w.Unsigned(token);
  Key(w, "block_size");
  w.Unsigned(block_size);
  Key(w, "lora_id");
  LoraId(w, stored);
  StoredTail(w, stored, salt);
}

// What later releases have added, in their order.
void EventWire::StoredTail(MsgpackWriter& w, const BlocksStored& stored, bool salt) const {
  if (columns_.medium) {
    Key(w, "medium");
    w.String(kMedium);
  }
  if (columns_.lora_name) {
    Key(w, "lora_name");
    if (stored.lora.empty()) {
      w.Nil();
    } else {
      w.String(stored.lora);
    }
  }
  if (columns_.extra_keys) {
    Key(w, "extra_keys");
    ExtraKeys(w, stored);
  }
  if (columns_.group) {
    Key(w, "group_idx");
    w.Unsigned(0);
  }
  if (columns_.spec) {
    Key(w, "kv_cache_spec_kind");
    w.String(kSpecKind);
    if (!maps_) w.Nil();  // the sliding window
  }
  if (!salt) return;
  if (!maps_) w.Map(1);
  w.String("cache_salt").String(stored.salt);
}

void EventWire::Removed(MsgpackWriter& w, const BlockRemoved& removed) const {
  const uint32_t fields = 2u + columns_.medium + columns_.group;
  if (maps_) {
    w.Map(fields);
  } else {
    w.Array(fields);
  }
  Key(w, "type");
  w.String("BlockRemoved");
  Key(w, "block_hashes");
  Hashes(w, {removed.hash});
  if (columns_.medium) {
    Key(w, "medium");
    w.String(kMedium);
  }
  if (columns_.group) {
    Key(w, "group_idx");
    w.Unsigned(0);
  }
}

void EventWire::Cleared(MsgpackWriter& w) const {
  if (maps_) {
    w.Map(1);
  } else {
    w.Array(1);
  }
  Key(w, "type");
  w.String("AllBlocksCleared");
}

std::string EventWire::PolledCreated(uint64_t blocks) {
  JsonWriter w;
  w.BeginObject().Key("type").String("created").Key("num_blocks_per_cache_level").BeginArray();
  w.Unsigned(blocks).Unsigned(0).EndArray().EndObject();
  return w.Take();
}

std::string EventWire::PolledStored(const BlocksStored& stored) {
  JsonWriter w;
  w.BeginObject().Key("type").String("stored").Key("parent_hash");
  if (stored.parent) {
    w.Unsigned(*stored.parent);
  } else {
    w.Null();
  }
  w.Key("blocks").BeginArray();
  auto token = stored.tokens.begin();
  for (const BlockHash hash : stored.hashes) {
    w.BeginObject().Key("type").String("stored_block").Key("block_hash").Unsigned(hash);
    w.Key("cache_level").Int(0).Key("priority").Int(kPriority).Key("tokens").BeginArray();
    for (uint32_t i = 0; i < stored.block_size; ++i) {
      w.BeginObject().Key("type").String("unique_token").Key("token_id").Unsigned(*token++);
      w.Key("token_extra_id").Int(0).EndObject();
    }
    w.EndArray().EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

std::optional<std::string> EventWire::Polled(const KvEvent& event) {
  if (const auto* stored = std::get_if<BlocksStored>(&event)) return PolledStored(*stored);
  const auto* removed = std::get_if<BlockRemoved>(&event);
  if (removed == nullptr) return std::nullopt;
  return fmt::format(R"({{"type":"removed","block_hashes":[{}]}})", removed->hash);
}

}  // namespace fathom
