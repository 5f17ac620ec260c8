#include "router/events/msgpack_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "codec/json.h"
#include "router/events/extra_key.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// --- a tiny encoder
// ---------------------------------------------------------------------------------

std::string BigEndian(uint64_t value, int width) {
  std::string out;
  for (int i = width - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

std::string Int(uint64_t value) { return "\xcf" + BigEndian(value, 8); }
std::string Float(double value) { return "\xcb" + BigEndian(std::bit_cast<uint64_t>(value), 8); }
std::string Str(std::string_view text) { return "\xda" + BigEndian(text.size(), 2).append(text); }
std::string Bin(std::string_view bytes) {
  return "\xc5" + BigEndian(bytes.size(), 2).append(bytes);
}
const std::string kNil = "\xc0";

std::string Array(const std::vector<std::string>& items) {
  std::string out = "\xdd" + BigEndian(items.size(), 4);
  for (const std::string& item : items) out += item;
  return out;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string Map(const Pairs& pairs) {
  std::string out = "\xdf" + BigEndian(pairs.size(), 4);
  for (const auto& [key, value] : pairs) out += Str(key) + value;
  return out;
}

std::string Ints(std::initializer_list<uint64_t> values) {
  std::vector<std::string> items;
  for (const uint64_t value : values) items.push_back(Int(value));
  return Array(items);
}

std::string BatchOf(const std::vector<std::string>& events) {
  return Array({Float(1.5), Array(events), Int(0)});
}

// A stored event as a map, two blocks of two tokens, with `changes` added or replaced.
std::string StoredMap(const Pairs& changes) {
  Pairs pairs = {{"type", Str("BlockStored")}, {"block_hashes", Ints({11, 12})},
                 {"parent_block_hash", kNil},  {"token_ids", Ints({1, 2, 3, 4})},
                 {"block_size", Int(2)},       {"lora_id", kNil},
                 {"medium", Str("GPU")},       {"lora_name", kNil}};
  for (const auto& [key, value] : changes) {
    const auto same = std::ranges::find(pairs, key, &Pairs::value_type::first);
    if (same == pairs.end()) {
      pairs.emplace_back(key, value);
    } else {
      same->second = value;
    }
  }
  return Map(pairs);
}

std::string FromHex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

EventBatch DecodeBatch(std::string_view payload) {
  Result<EventBatch> batch = DecodeEventBatch(payload);
  EXPECT_TRUE(batch.has_value()) << (batch ? "" : batch.error().what);
  return batch ? *std::move(batch) : EventBatch{};
}

StoredEvent DecodeStored(const std::string& event) {
  const EventBatch batch = DecodeBatch(BatchOf({event}));
  EXPECT_EQ(batch.first_problem, "");
  if (batch.events.size() != 1) return {};
  return std::get<StoredEvent>(batch.events[0]);
}

std::string Problem(const std::string& event) {
  const EventBatch batch = DecodeBatch(BatchOf({event}));
  EXPECT_EQ(batch.malformed, 1u);
  EXPECT_THAT(batch.events, IsEmpty());
  return batch.first_problem;
}

// --- samples: tokens 1 to 8, blocks of 4, at 1700000000.5 on rank 0
// ---------------------------------

constexpr uint64_t kFirst = 9561501211280363793u;
constexpr uint64_t kSecond = 15292913576410714033u;

EventBatch DecodeSample(std::string_view hex) {
  EventBatch batch = DecodeBatch(FromHex(hex));
  EXPECT_EQ(batch.timestamp, 1700000000.5);
  EXPECT_EQ(batch.rank, 0u);
  EXPECT_EQ(batch.ignored, 0u);
  EXPECT_EQ(batch.malformed, 0u) << batch.first_problem;
  return batch;
}

StoredEvent TwoBlocks(std::vector<uint64_t> hashes) {
  StoredEvent event;
  event.hashes = std::move(hashes);
  event.tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  event.block_size = 4;
  return event;
}

StoredEvent OneBlock(uint64_t hash) {
  StoredEvent event;
  event.hashes = {hash};
  event.tokens = {1, 2, 3, 4};
  event.block_size = 4;
  return event;
}

TEST(MsgpackDialect, DecodesTwoBlocksOfTheMapForm) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc40200000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf84b1"
      "46b1"
      "51d55111cfd43b57df56b58fb1b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647398010203"
      "0405"
      "060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0"
      "aa65"
      "787472615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c"
      "6c5f"
      "617474656e74696f6e00");
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(TwoBlocks({kFirst, kSecond}))));
}

TEST(MsgpackDialect, DecodesARemovalAndAClearOfTheMapForm) {
  const EventBatch removed = DecodeSample(
      "93cb41d954fc402000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cfd4"
      "3b57"
      "df56b58fb1a66d656469756da3475055a967726f75705f6964780000");
  EXPECT_THAT(removed.events, ElementsAre(CacheEvent(RemovedEvent{.hashes = {kSecond}})));
  const EventBatch cleared =
      DecodeSample("93cb41d954fc402000009181a474797065b0416c6c426c6f636b73436c656172656400");
  EXPECT_THAT(cleared.events, ElementsAre(CacheEvent(ClearedEvent{})));
}

TEST(MsgpackDialect, DecodesAPositionalBatchInItsOrder) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc40200000939cab426c6f636b53746f72656492cf84b146b151d55111cfd43b57df56b58fb1c09801"
      "0203"
      "040506070804c0a3475055c092c0c000ae66756c6c5f617474656e74696f6ec094ac426c6f636b52656d6f766564"
      "91cf"
      "d43b57df56b58fb1a34750550091b0416c6c426c6f636b73436c656172656400");
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(TwoBlocks({kFirst, kSecond})),
                                        CacheEvent(RemovedEvent{.hashes = {kSecond}}),
                                        CacheEvent(ClearedEvent{})));
}

TEST(MsgpackDialect, DecodesAnOlderPositionalEvent) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc402000009197ab426c6f636b53746f72656491cf84b146b151d55111c0940102030404c0a3475055"
      "00");
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(OneBlock(kFirst))));
}

TEST(MsgpackDialect, TakesTheLastEightBytesOfAByteHash) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc402000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c420"
      "e1bc"
      "29393a2da9fd798f35ff04d215f846aee6df4b803ce3d43b57df56b58fb1a66d656469756da3475055a967726f75"
      "705f"
      "6964780000");
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(RemovedEvent{.hashes = {kSecond}})));
}

constexpr auto kNegative = static_cast<uint64_t>(int64_t{-3488128144981237669});

TEST(MsgpackDialect, DecodesSglangWithANegativeHash) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc402000009297ab426c6f636b53746f72656492d3cf97adeedb59e05bcf4ebfa8a1f3c34151c09801"
      "0203"
      "040506070804c0a347505593ac426c6f636b52656d6f76656491cf4ebfa8a1f3c34151a347505500");
  EXPECT_THAT(batch.events,
              ElementsAre(CacheEvent(TwoBlocks({kNegative, 5674439469042975057u})),
                          CacheEvent(RemovedEvent{.hashes = {5674439469042975057u}})));
}

TEST(MsgpackDialect, DecodesASaltOfSglang) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc402000009198ab426c6f636b53746f72656491d3cf97adeedb59e05bc0940102030404c0a3475055"
      "81aa"
      "63616368655f73616c74a2743100");
  StoredEvent wanted = OneBlock(kNegative);
  wanted.salt = "t1";
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(wanted)));
}

TEST(MsgpackDialect, DecodesPairsOfTokens) {
  const EventBatch batch = DecodeSample(
      "93cb41d954fc402000009197ab426c6f636b53746f72656491d3f721fe42aac11dcbc09492010292020392030492"
      "0405"
      "04c0a347505500");
  StoredEvent wanted = OneBlock(0xf721fe42aac11dcb);
  wanted.tokens = {1, 2, 3, 4, 5};
  wanted.pairs = true;
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(wanted)));
}

// --- every release
// ----------------------------------------------------------------------------------

// The fields of a stored event in the order in which vLLM added them.
const std::vector<std::string> kGrowing = {Str("BlockStored"),
                                           Ints({11, 12}),
                                           Int(7),
                                           Ints({1, 2, 3, 4}),
                                           Int(2),
                                           Int(3),                              // lora_id
                                           Str("CPU"),                          // medium, 0.10.2
                                           Str("ada"),                          // lora_name, 0.14
                                           Array({Array({Str("ada")}), kNil}),  // extra_keys, 0.17
                                           Int(5),                              // group_idx, 0.20
                                           Str("sliding_window"),
                                           Int(64),  // kv_cache_spec_*, 0.22
                                           Str("LOCAL"),
                                           Int(1),
                                           Array({Int(1)})};  // what may come

StoredEvent WantedOfLength(size_t elements) {
  StoredEvent event;
  event.hashes = {11, 12};
  event.parent = 7;
  event.tokens = {1, 2, 3, 4};
  event.block_size = 2;
  event.lora = elements >= 8 ? "ada" : elements >= 6 ? "lora-id:3" : "";
  if (elements >= 7) event.tier = Tier::kHost;
  if (elements >= 10) event.group = 5;
  if (elements >= 11) event.kind = GroupKind::kUnsupported;  // a window of unknown size
  if (elements >= 12) {
    event.kind = GroupKind::kWindow;
    event.window = 64;
  }
  return event;
}

TEST(MsgpackDialect, DecodesThePositionalFormOfEveryRelease) {
  for (size_t elements = 5; elements <= kGrowing.size(); ++elements) {
    const std::string event = Array({kGrowing.begin(), kGrowing.begin() + elements});
    EXPECT_EQ(DecodeStored(event), WantedOfLength(elements)) << elements;
  }
}

TEST(MsgpackDialect, DecodesTheMapFormOfEveryRelease) {
  const std::string names[] = {"type",      "block_hashes",       "parent_block_hash",
                               "token_ids", "block_size",         "lora_id",
                               "medium",    "lora_name",          "extra_keys",
                               "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window",
                               "locality",  "session_id",         "ownership"};
  for (size_t keys = 5; keys <= std::size(names); ++keys) {
    Pairs pairs;
    for (size_t i = 0; i < keys; ++i) pairs.emplace_back(names[i], kGrowing[i]);
    EXPECT_EQ(DecodeStored(Map(pairs)), WantedOfLength(keys)) << keys;
    std::ranges::reverse(pairs);  // the order of a map means nothing
    EXPECT_EQ(DecodeStored(Map(pairs)), WantedOfLength(keys)) << keys;
  }
}

TEST(MsgpackDialect, DecodesRemovalsOfEveryLength) {
  const std::vector<std::string> all = {Str("BlockRemoved"), Ints({1, 2}), Str("STORAGE"), Int(4),
                                        Str("LOCAL")};
  for (size_t elements = 2; elements <= all.size(); ++elements) {
    const EventBatch batch = DecodeBatch(BatchOf({Array({all.begin(), all.begin() + elements})}));
    const RemovedEvent wanted{.hashes = {1, 2},
                              .tier = elements >= 3 ? Tier::kDisk : Tier::kDevice,
                              .group = elements >= 4 ? 4u : 0u};
    EXPECT_THAT(batch.events, ElementsAre(CacheEvent(wanted))) << elements;
  }
}

TEST(MsgpackDialect, AcceptsEnvelopesOfEveryLength) {
  const std::string events = Array({Array({Str("AllBlocksCleared")})});
  EXPECT_EQ(DecodeBatch(Array({Float(2.5), events})).rank, std::nullopt);
  EXPECT_EQ(DecodeBatch(Array({Int(2), events, kNil})).rank, std::nullopt);
  EXPECT_EQ(DecodeBatch(Array({Int(2), events, Int(3)})).rank, 3u);
  const EventBatch longer = DecodeBatch(Array({Int(2), events, Int(3), Str("more"), Ints({1})}));
  EXPECT_EQ(longer.timestamp, 2.0);
  EXPECT_EQ(longer.events.size(), 1u);
}

// --- single fields
// ----------------------------------------------------------------------------------

TEST(MsgpackDialect, NamesTiersByMedium) {
  const std::map<std::string, Tier> tiers = {
      {"GPU", Tier::kDevice},   {"CPU", Tier::kHost},          {"CPU_PINNED", Tier::kHost},
      {"DISK", Tier::kDisk},    {"STORAGE", Tier::kDisk},      {"FS", Tier::kDisk},
      {"OBJ", Tier::kExternal}, {"EXTERNAL", Tier::kExternal}, {"tape", Tier::kExternal}};
  for (const auto& [medium, tier] : tiers)
    EXPECT_EQ(DecodeStored(StoredMap({{"medium", Str(medium)}})).tier, tier) << medium;
  EXPECT_EQ(DecodeStored(StoredMap({{"medium", kNil}})).tier, Tier::kDevice);
}

TEST(MsgpackDialect, NamesGroupsBySpec) {
  const auto kind = [](std::string_view spec, uint64_t window) {
    return DecodeStored(
               StoredMap({{"kv_cache_spec_kind", Str(spec)},
                          {"kv_cache_spec_sliding_window", window == 0 ? kNil : Int(window)}}))
        .kind;
  };
  for (const auto* full : {"full_attention", "mla_attention", "sink_full_attention"})
    EXPECT_EQ(kind(full, 0), GroupKind::kFull) << full;
  EXPECT_EQ(kind("sliding_window", 64), GroupKind::kWindow);
  EXPECT_EQ(kind("sliding_window_mla", 64), GroupKind::kWindow);
  EXPECT_EQ(kind("sliding_window", 0), GroupKind::kUnsupported);
  for (const auto* other :
       {"mamba", "chunked_local_attention", "cross_attention", "unknown", "new"})
    EXPECT_EQ(kind(other, 64), GroupKind::kUnsupported) << other;
}

TEST(MsgpackDialect, TellsSaltLoraAndIdentifiersApart) {
  const StoredEvent event = DecodeStored(
      StoredMap({{"lora_name", Str("ada")},
                 {"extra_keys",
                  Array({Array({Str("ada"), Str("salt-1")}),
                         Array({Str("ada"), Array({Str("image"), Int(3)}), Array({Int(77), Int(0)}),
                                Bin("embedding"), Str("12345")})})}}));
  EXPECT_EQ(event.lora, "ada");
  EXPECT_EQ(event.salt, "salt-1");
  EXPECT_THAT(event.extra, testing::UnorderedElementsAre(
                               ExtraKey{1, ExtraKeyOf("image")}, ExtraKey{1, 77},
                               ExtraKey{1, ExtraKeyOf("embedding")}, ExtraKey{1, 12345}));
}

TEST(MsgpackDialect, TakesNoSaltFromABlockThatFollowsAnother) {
  const StoredEvent event = DecodeStored(StoredMap(
      {{"parent_block_hash", Int(9)}, {"extra_keys", Array({Array({Str("image")}), kNil})}}));
  EXPECT_EQ(event.salt, "");
  EXPECT_THAT(event.extra, ElementsAre(ExtraKey{0, ExtraKeyOf("image")}));
}

TEST(MsgpackDialect, KeepsBlocksApartByKeysOfUnknownShape) {
  const auto key = [](const std::string& element) {
    return DecodeStored(StoredMap({{"extra_keys", Array({kNil, Array({element})})}})).extra.at(0);
  };
  EXPECT_EQ(key(Map({{"a", Int(1)}})).block, 1u);
  EXPECT_NE(key(Map({{"a", Int(1)}})).key, key(Map({{"a", Int(2)}})).key);
  EXPECT_NE(key(kNil).key, key(Float(1.5)).key);
}

TEST(MsgpackDialect, AlignsExtraKeysWithTheLastBlocksLikeHashes) {
  const StoredEvent event =
      DecodeStored(StoredMap({{"block_hashes", Ints({12})},
                              {"extra_keys", Array({Array({Array({Str("image"), Int(0)})})})}}));
  EXPECT_THAT(event.extra, ElementsAre(ExtraKey{1, ExtraKeyOf("image")}));
}

TEST(MsgpackDialect, ReadsTheKeysOfTensorrtLlm) {
  const StoredEvent event = DecodeStored(StoredMap(
      {{"mm_keys", Array({kNil, Array({Map({{"start_offset", Int(3)}, {"hash", Str("00ff")}}),
                                       Array({Str("a1"), Int(0)})})})}}));
  EXPECT_THAT(event.extra, testing::UnorderedElementsAre(ExtraKey{1, ExtraKeyOf("00ff")},
                                                         ExtraKey{1, ExtraKeyOf("a1")}));
}

TEST(MsgpackDialect, PutsAnIdentifierInPlaceOfATokenWhereItStands) {
  const StoredEvent event =
      DecodeStored(StoredMap({{"token_ids", Array({Int(1), Str("image"), Str("image"), Int(4)})}}));
  EXPECT_THAT(event.tokens, ElementsAre(1, 0, 0, 4));
  EXPECT_THAT(event.extra,
              ElementsAre(ExtraKey{0, ExtraKeyOf("image")}, ExtraKey{1, ExtraKeyOf("image")}));
  const StoredEvent once =
      DecodeStored(StoredMap({{"token_ids", Array({Str("image"), Str("image"), Int(3), Int(4)})}}));
  EXPECT_THAT(once.extra, ElementsAre(ExtraKey{0, ExtraKeyOf("image")}));
}

TEST(MsgpackDialect, AcceptsAnEmptyListOfHashes) {
  const StoredEvent event = DecodeStored(StoredMap({{"block_hashes", Array({})}}));
  EXPECT_THAT(event.hashes, IsEmpty());
  EXPECT_EQ(event.tokens.size(), 4u);
}

TEST(MsgpackDialect, TakesHashesOfSixteenBytesAndOfText) {
  const std::string sixteen = std::string(8, 'x') + BigEndian(0xabc, 8);
  const StoredEvent event = DecodeStored(StoredMap(
      {{"block_hashes", Array({Bin(sixteen), Int(2)})}, {"parent_block_hash", Str(sixteen)}}));
  EXPECT_THAT(event.hashes, ElementsAre(0xabcu, 2u));
  EXPECT_EQ(event.parent, 0xabcu);
}

TEST(MsgpackDialect, IgnoresWhatHasNothingInIt) {
  const EventBatch batch = DecodeBatch(
      BatchOf({StoredMap({{"block_size", Int(0)}, {"token_ids", Array({})}}),
               StoredMap({{"token_ids", kNil}}), Array({Str("BlockRemoved"), Array({})}),
               Array({Str("AllBlocksCleared"), Int(1)}), Array({Str("AllBlocksCleared")})}));
  EXPECT_EQ(batch.ignored, 3u);
  EXPECT_EQ(batch.malformed, 0u);
  EXPECT_THAT(batch.events, ElementsAre(CacheEvent(ClearedEvent{}), CacheEvent(ClearedEvent{})));
}

// --- newer engines
// ----------------------------------------------------------------------------

TEST(MsgpackDialect, ReportsATypeThatIsNotKnownAndKeepsTheEventsAroundIt) {
  const EventBatch batch = DecodeBatch(
      BatchOf({StoredMap({}), Array({Str("BlockMoved"), Int(1)}),
               Map({{"type", Str("Heartbeat")}, {"block_size", kNil}}), StoredMap({})}));
  EXPECT_EQ(batch.events.size(), 2u);
  EXPECT_EQ(batch.malformed, 2u);
  EXPECT_EQ(batch.ignored, 0u);
  EXPECT_EQ(batch.first_problem, "event 1: the type 'BlockMoved' is not known");
  const std::string endless(1000, 'x');
  EXPECT_LT(Problem(Map({{"type", Str(endless)}})).size(), 120u);
}

// One that is renamed in the engine.
TEST(MsgpackDialect, ReportsAFieldThatIsMissing) {
  const auto without = [](std::string_view name) {
    Pairs pairs = {{"type", Str("BlockStored")},
                   {"block_hashes", Ints({1})},
                   {"token_ids", Ints({5, 6})},
                   {"block_size", Int(2)}};
    std::erase_if(pairs, [&](const auto& pair) { return pair.first == name; });
    return Problem(Map(pairs));
  };
  EXPECT_EQ(without("token_ids"), "event 0: BlockStored: has no token_ids");
  EXPECT_EQ(without("block_size"), "event 0: BlockStored: has no block_size");
  EXPECT_EQ(without("block_hashes"), "event 0: BlockStored: has no block_hashes");
  EXPECT_EQ(Problem(Map({{"type", Str("BlockRemoved")}, {"hashes", Ints({1})}})),
            "event 0: BlockRemoved: has no block_hashes");
  EXPECT_EQ(Problem(Array({Str("BlockRemoved")})), "event 0: BlockRemoved: has no block_hashes");
}

// --- invalid input
// ----------------------------------------------------------------------------

TEST(MsgpackDialect, SaysWhichFieldMakesNoSense) {
  const struct {
    Pairs changes;
    std::string problem;
  } cases[] = {
      {{{"block_hashes", Int(1)}}, "block_hashes: not a list"},
      {{{"block_hashes", Array({Bin("short")})}}, "block_hashes: a hash of 5 bytes"},
      {{{"block_hashes", Ints({1, 2, 3})}}, "block_hashes: 3 hashes for 2 blocks"},
      {{{"parent_block_hash", Float(1)}}, "parent_block_hash: not a hash"},
      {{{"token_ids", Ints({1, 2, 3})}}, "token_ids: 3 tokens are not a multiple of block_size 2"},
      {{{"token_ids", Ints({1, 2, 3, uint64_t{1} << 32})}}, "token_ids: 4294967296 is too large"},
      {{{"token_ids", Array({Int(1), kNil})}}, "token_ids: not a token id"},
      {{{"token_ids", Array({Ints({1, 2}), Ints({3, 4})})}},
       "token_ids: pair 1 begins with 3, the one before ends with 2"},
      {{{"token_ids", Array({Ints({1, 2}), Int(2)})}}, "token_ids: not a pair"},
      {{{"block_size", Int((1u << 20) + 1)}}, "block_size: 1048577 is more than 1048576"},
      {{{"block_size", Str("2")}}, "block_size: not a number"},
      {{{"lora_name", Str(std::string(4097, 'a'))}}, "lora_name: 4097 bytes, more than 4096"},
      {{{"cache_salt", Str(std::string(4097, 'a'))}}, "cache_salt: 4097 bytes, more than 4096"},
      {{{"extra_keys", Array({kNil, kNil, kNil})}}, "extra_keys: 3 entries for 2 blocks"},
      {{{"extra_keys", Array({Int(1)})}}, "extra_keys: block 1: not a list"},
      {{{"medium", Int(1)}}, "medium: not a string"},
      {{{"group_idx", Int(uint64_t{1} << 32)}}, "group_idx: 4294967296 is more than"},
      {{{"type", Int(1)}}, "event 0: has no type"},
  };
  for (const auto& c : cases) EXPECT_THAT(Problem(StoredMap(c.changes)), HasSubstr(c.problem));
  EXPECT_EQ(Problem(StoredMap({{"medium", Int(1)}})), "event 0: BlockStored: medium: not a string");
  EXPECT_THAT(Problem(Int(1)), HasSubstr("neither a map nor an array"));
  EXPECT_THAT(Problem(Array({})), HasSubstr("neither a map nor an array"));
  EXPECT_THAT(Problem(Map({})), HasSubstr("has no type"));
}

TEST(MsgpackDialect, RefusesListsBeyondTheirLimits) {
  const std::string hashes =
      "\xdd" + BigEndian(kMaxHashesPerEvent + 1, 4) + std::string(kMaxHashesPerEvent + 1, '\1');
  EXPECT_THAT(Problem(StoredMap({{"block_hashes", hashes}})),
              HasSubstr("block_hashes: 1048577 hashes, more than 1048576"));
  const std::string tokens =
      "\xdd" + BigEndian(kMaxTokensPerEvent + 1, 4) + std::string(kMaxTokensPerEvent + 1, '\1');
  EXPECT_THAT(Problem(StoredMap({{"token_ids", tokens}})),
              HasSubstr("token_ids: 1048577 tokens, more than 1048576"));
  std::string identifiers = "\xdd" + BigEndian(kMaxKeysPerEvent + 1, 4);
  for (uint32_t i = 0; i <= kMaxKeysPerEvent; ++i) identifiers += "\xa1i";
  EXPECT_THAT(Problem(StoredMap({{"token_ids", identifiers}})),
              HasSubstr("token_ids: more than 262144 identifiers"));
  const std::string events = "\x92\1\xdd" + BigEndian(kMaxEventsPerBatch + 1, 4) +
                             std::string(kMaxEventsPerBatch + 1, '\1');
  const Result<EventBatch> batch = DecodeEventBatch(events);
  ASSERT_FALSE(batch);
  EXPECT_THAT(batch.error().what, HasSubstr("events: 1048577, more than 1048576"));
}

TEST(MsgpackDialect, KeepsTheEventsAroundOneThatMakesNoSense) {
  const EventBatch batch = DecodeBatch(
      BatchOf({StoredMap({}), StoredMap({{"block_size", Int(3)}}), Int(5), StoredMap({})}));
  EXPECT_EQ(batch.events.size(), 2u);
  EXPECT_EQ(batch.malformed, 2u);
  EXPECT_EQ(batch.first_problem,
            "event 1: BlockStored: token_ids: 4 tokens are not a multiple of block_size 3");
}

TEST(MsgpackDialect, RefusesABatchThatIsNotWhole) {
  const std::string whole = BatchOf({StoredMap({}), Array({Str("AllBlocksCleared")})});
  ASSERT_TRUE(DecodeEventBatch(whole));
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    const Result<EventBatch> batch = DecodeEventBatch(whole.substr(0, cut));
    ASSERT_FALSE(batch) << cut;
    EXPECT_EQ(batch.error().blame, Blame::kPeer);
  }
  EXPECT_FALSE(DecodeEventBatch(whole + "x"));
}

TEST(MsgpackDialect, RefusesAnEnvelopeThatIsNone) {
  const std::string none = Array({});
  for (const std::string& payload :
       {Int(1), none, Array({Float(1)}), Array({Str("now"), none}), Array({Float(1), Int(1)}),
        Array({Float(1), none, Str("0")}), Array({Float(1), none, Int(uint64_t{1} << 32)})})
    EXPECT_FALSE(DecodeEventBatch(payload));
}

// --- captures of running engines
// --------------------------------------------------------------------

struct Tally {
  size_t batches = 0, stored = 0, removed = 0, cleared = 0, without_hashes = 0, salted = 0;
  size_t window_groups = 0;
  friend bool operator==(const Tally&, const Tally&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Tally& t) {
    return out << t.batches << " batches, " << t.stored << " stored, " << t.removed << " removed, "
               << t.cleared << " cleared, " << t.without_hashes << " without hashes, " << t.salted
               << " salted, " << t.window_groups << " of window groups";
  }
};

void Count(const CacheEvent& event, uint32_t block_size, Tally& tally) {
  if (const auto* stored = std::get_if<StoredEvent>(&event)) {
    ++tally.stored;
    tally.without_hashes += stored->hashes.empty();
    tally.salted += !stored->salt.empty();
    tally.window_groups += stored->kind == GroupKind::kWindow && stored->window == 64;
    EXPECT_EQ(stored->block_size, block_size);
    EXPECT_NE(stored->kind, GroupKind::kUnsupported);
    EXPECT_THAT(stored->extra, IsEmpty());
    EXPECT_EQ(stored->tier, Tier::kDevice);
  }
  tally.removed += std::holds_alternative<RemovedEvent>(event);
  tally.cleared += std::holds_alternative<ClearedEvent>(event);
}

Tally DecodeCapture(const std::string& name, uint32_t block_size) {
  std::ifstream file(std::string("tests/captures/raw/") + name + ".events.jsonl");
  Tally tally;
  for (std::string line; std::getline(file, line);) {
    const Json json = *Json::Parse(line);
    const EventBatch batch = DecodeBatch(FromHex(*json.Find("payload_hex")->string()));
    ++tally.batches;
    EXPECT_EQ(batch.rank, json.Find("rank")->unsigned_integer());
    EXPECT_EQ(batch.timestamp, json.Find("ts")->number());
    EXPECT_EQ(batch.ignored, 0u);
    EXPECT_EQ(batch.malformed, 0u) << batch.first_problem;
    for (const CacheEvent& event : batch.events) Count(event, block_size, tally);
  }
  return tally;
}

TEST(MsgpackDialect, DecodesEveryMessageOfTheCapturedEngines) {
  EXPECT_EQ(DecodeCapture("vllm-0.32-bs32", 32), (Tally{106, 102, 118, 6, 0, 2, 0}));
  EXPECT_EQ(DecodeCapture("vllm-0.32-duplicates", 32), (Tally{11, 11, 5, 0, 0, 0, 0}));
  EXPECT_EQ(DecodeCapture("vllm-0.32-hybrid", 32), (Tally{13, 39, 69, 0, 4, 0, 26}));
  EXPECT_EQ(DecodeCapture("vllm-0.32-dp2", 32), (Tally{9, 9, 0, 2, 0, 0, 0}));
  EXPECT_EQ(DecodeCapture("sglang-0.5.23-ps16", 16), (Tally{15, 13, 3, 2, 0, 1, 0}));
}

}  // namespace
}  // namespace fathom
