#include "lab/mock/event_wire.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codec/msgpack.h"

namespace fathom {
namespace {

constexpr double kTime = 1700000000.5;
constexpr BlockHash kFirst = 9561501211280363793u;
constexpr BlockHash kSecond = 15292913576410714033u;
const auto kSglangFirst = static_cast<BlockHash>(int64_t{-3488128144981237669});
constexpr BlockHash kSglangSecond = 5674439469042975057u;

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

EventWire Wire(MockedEngine engine, std::string_view version, bool byte_hashes = false) {
  const auto wire = EventWire::Create(engine, version, byte_hashes);
  EXPECT_TRUE(wire) << wire.error().what;
  return *wire;
}

EventWire Vllm(std::string_view version) { return Wire(MockedEngine::kVllm, version); }
EventWire Sglang(std::string_view version) { return Wire(MockedEngine::kSglang, version); }

std::string Problem(MockedEngine engine, std::string_view version, bool byte_hashes = false) {
  const auto wire = EventWire::Create(engine, version, byte_hashes);
  return wire ? "" : wire.error().what;
}

BlocksStored TwoBlocks(BlockHash first = kFirst, BlockHash second = kSecond) {
  return {.hashes = {first, second},
          .parent = {},
          .tokens = {1, 2, 3, 4, 5, 6, 7, 8},
          .block_size = 4,
          .lora = "",
          .salt = ""};
}

BlocksStored OneBlock(BlockHash hash = kFirst) {
  return {.hashes = {hash},
          .parent = {},
          .tokens = {1, 2, 3, 4},
          .block_size = 4,
          .lora = "",
          .salt = ""};
}

std::string Batch(const EventWire& wire, const std::vector<KvEvent>& events) {
  return Hex(wire.Batch(events, kTime, 0, 0));
}

// How many fields the first event of a batch has, and whether it is a map.
std::pair<uint32_t, bool> Shape(const EventWire& wire, const KvEvent& event) {
  const std::string payload = wire.Batch({event}, kTime, 0, 0);
  MsgpackReader in(payload);
  in.TakeArray();
  in.TakeFloat();
  in.TakeArray();
  if (const auto fields = in.TakeArray()) return {*fields, false};
  return {in.TakeMap().value_or(0), true};
}

// The samples that a reference encoder made for the same events.

TEST(EventWire, WritesVllmsMapsByteForByte) {
  for (const std::string_view version : {"", "0.24", "0.24.0", "0.26.1", "0.32.0", "1.0"}) {
    const EventWire wire = Vllm(version);
    EXPECT_EQ(
        Batch(wire, {TwoBlocks()}),
        "93cb41d954fc40200000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf84"
        "b146b151d55111cfd43b57df56b58fb1b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473"
        "980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72"
        "615f6e616d65c0aa65787472615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065"
        "635f6b696e64ae66756c6c5f617474656e74696f6e00");
    EXPECT_EQ(Batch(wire, {BlockRemoved{kSecond}}),
              "93cb41d954fc402000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865"
              "7391cfd43b57df56b58fb1a66d656469756da3475055a967726f75705f6964780000");
    EXPECT_EQ(Batch(wire, {AllBlocksCleared{}}),
              "93cb41d954fc402000009181a474797065b0416c6c426c6f636b73436c656172656400");
  }
}

TEST(EventWire, WritesVllmsArraysByteForByte) {
  EXPECT_EQ(Batch(Vllm("0.22"), {TwoBlocks(), BlockRemoved{kSecond}, AllBlocksCleared{}}),
            "93cb41d954fc40200000939cab426c6f636b53746f72656492cf84b146b151d55111cfd43b57df56b58fb1"
            "c098010203040506070804c0a3475055c092c0c000ae66756c6c5f617474656e74696f6ec094ac426c6f63"
            "6b52656d6f76656491cfd43b57df56b58fb1a34750550091b0416c6c426c6f636b73436c656172656400");
  EXPECT_EQ(Batch(Vllm("0.10.2"), {OneBlock()}),
            "93cb41d954fc402000009197ab426c6f636b53746f72656491cf84b146b151d55111c0940102030404c0a3"
            "47505500");
}

TEST(EventWire, WritesSglangsArraysByteForByte) {
  EXPECT_EQ(Batch(Sglang("0.5.18"),
                  {TwoBlocks(kSglangFirst, kSglangSecond), BlockRemoved{kSglangSecond}}),
            "93cb41d954fc402000009297ab426c6f636b53746f72656492d3cf97adeedb59e05bcf4ebfa8a1f3c34151"
            "c098010203040506070804c0a347505593ac426c6f636b52656d6f76656491cf4ebfa8a1f3c34151a34750"
            "5500");
  BlocksStored salted = OneBlock(kSglangFirst);
  salted.salt = "t1";
  EXPECT_EQ(Batch(Sglang("0.5.18"), {salted}),
            "93cb41d954fc402000009198ab426c6f636b53746f72656491d3cf97adeedb59e05bc0940102030404c0a3"
            "47505581aa63616368655f73616c74a2743100");
}

// As a running SGLang 0.5.23 sent it.
TEST(EventWire, WritesSglangsMaps) {
  const EventWire wire = Sglang("0.5.23");
  EXPECT_EQ(Batch(wire, {AllBlocksCleared{}}),
            "93cb41d954fc402000009181a474797065b0416c6c426c6f636b73436c656172656400");
  EXPECT_EQ(Shape(wire, OneBlock()), std::pair(7u, true));
  BlocksStored salted = OneBlock();
  salted.salt = "s1";
  EXPECT_EQ(Shape(wire, salted), std::pair(8u, true));
  EXPECT_EQ(Shape(wire, BlockRemoved{1}), std::pair(3u, true));
}

TEST(EventWire, HasTheFieldsOfEachVllmRelease) {
  struct Release {
    std::string_view version;
    uint32_t stored;
    uint32_t removed;
    bool map;
  };
  for (const Release& r :
       {Release{"0.9.0", 6, 2, false}, Release{"0.10.1", 6, 2, false},
        Release{"0.10.2", 7, 3, false}, Release{"0.13.5", 7, 3, false},
        Release{"0.14", 8, 3, false}, Release{"0.16.9", 8, 3, false}, Release{"0.17", 9, 3, false},
        Release{"0.19", 9, 3, false}, Release{"0.20", 10, 4, false}, Release{"0.21", 10, 4, false},
        Release{"0.22", 12, 4, false}, Release{"0.23.1", 12, 4, false},
        Release{"0.24", 11, 4, true}, Release{"0.32", 11, 4, true}}) {
    EXPECT_EQ(Shape(Vllm(r.version), OneBlock()), std::pair(r.stored, r.map)) << r.version;
    EXPECT_EQ(Shape(Vllm(r.version), BlockRemoved{1}), std::pair(r.removed, r.map)) << r.version;
  }
}

TEST(EventWire, HasTheFieldsOfEachSglangRelease) {
  EXPECT_EQ(Shape(Sglang("0.5.6"), OneBlock()), std::pair(6u, false));
  EXPECT_EQ(Shape(Sglang("0.5.6"), BlockRemoved{1}), std::pair(2u, false));
  EXPECT_EQ(Shape(Sglang("0.5.9"), OneBlock()), std::pair(7u, false));
  EXPECT_EQ(Shape(Sglang("0.5.9"), BlockRemoved{1}), std::pair(3u, false));
  BlocksStored salted = OneBlock();
  salted.salt = "s";
  EXPECT_EQ(Shape(Sglang("0.5.17"), salted), std::pair(7u, false)) << "cannot say it yet";
  EXPECT_EQ(Shape(Sglang("0.5.18"), salted), std::pair(8u, false));
}

TEST(EventWire, SaysWhichRankSinceVllm091) {
  EXPECT_EQ(Hex(Vllm("0.9.0").Batch({}, kTime, 3, 0)), "92cb41d954fc4020000090");
  EXPECT_EQ(Hex(Vllm("0.9.1").Batch({}, kTime, 3, 0)), "93cb41d954fc402000009003");
}

TEST(EventWire, WritesAnEventPerPageAsOlderSglangs) {
  BlocksStored salted = TwoBlocks(1, 2);
  BlocksStored first = OneBlock(1);
  BlocksStored second = OneBlock(2);
  second.parent = 1;
  second.tokens = {5, 6, 7, 8};
  EXPECT_EQ(Batch(Sglang("0.5.9"), {salted}), Batch(Sglang("0.5.18"), {first, second}));
}

TEST(EventWire, PutsTheAdapterOnEveryBlockAndTheSaltOnTheFirst) {
  BlocksStored stored = TwoBlocks();
  stored.lora = "ada";
  stored.salt = "S";
  const std::string keys =
      "aa65787472615f6b65797392"
      "92a3616461a153"
      "91a3616461";
  EXPECT_NE(Batch(Vllm("0.32"), {stored}).find(keys), std::string::npos);
  stored.lora = "";
  EXPECT_NE(Batch(Vllm("0.32"), {stored})
                .find("aa65787472615f6b65797392"
                      "91a153"
                      "c0"),
            std::string::npos);
  stored.parent = 7;  // not the first of its prompt
  EXPECT_NE(Batch(Vllm("0.32"), {stored})
                .find("aa65787472615f6b65797392"
                      "c0c0"),
            std::string::npos);
}

TEST(EventWire, WritesHashesAsThirtyTwoBytesThatEndInTheInteger) {
  const std::string batch = Batch(Wire(MockedEngine::kVllm, "0.32", true), {BlockRemoved{kSecond}});
  // As the sample with raw bytes, but for the 24 bytes that only the engine knows.
  const std::string sample =
      "93cb41d954fc402000009184a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c420"
      "e1bc29393a2da9fd798f35ff04d215f846aee6df4b803ce3d43b57df56b58fb1a66d656469756da3475055a96772"
      "6f75705f6964780000";
  ASSERT_EQ(batch.size(), sample.size());
  const size_t begin = sample.find("c420") + 4;
  EXPECT_EQ(batch.substr(0, begin), sample.substr(0, begin));
  EXPECT_EQ(batch.substr(begin + 48), sample.substr(begin + 48));
}

TEST(EventWire, ClaimsAnotherBlockSizeButLeavesTheTokens) {
  const std::string truth = Vllm("0.32").Batch({OneBlock()}, kTime, 0, 0);
  const std::string claim = Vllm("0.32").Batch({OneBlock()}, kTime, 0, 64);
  const std::string key = "block_size";
  const size_t at = truth.find(key) + key.size();
  EXPECT_EQ(truth[at], 4);
  EXPECT_EQ(claim[at], 64);
  EXPECT_EQ(truth.substr(0, at), claim.substr(0, at));
  EXPECT_EQ(truth.substr(at + 1), claim.substr(at + 1));
}

TEST(EventWire, StreamsTensorRtLlmWithSignedHashes) {
  const EventWire wire = Wire(MockedEngine::kTrtllm, "stream");
  EXPECT_FALSE(wire.polled());
  EXPECT_NE(Batch(wire, {OneBlock(kSglangFirst)}).find("91d3cf97adeedb59e05b"), std::string::npos);
  EXPECT_TRUE(Wire(MockedEngine::kTrtllm, "").polled());
  EXPECT_TRUE(Wire(MockedEngine::kTrtllm, "poll").polled());
}

TEST(EventWire, WritesWhatTensorRtLlmIsPolledFor) {
  EXPECT_EQ(EventWire::PolledCreated(100),
            R"({"type":"created","num_blocks_per_cache_level":[100,0]})");
  BlocksStored stored = {.hashes = {kSecond},
                         .parent = kFirst,
                         .tokens = {5, 6},
                         .block_size = 2,
                         .lora = "",
                         .salt = ""};
  EXPECT_EQ(
      EventWire::Polled(stored),
      R"({"type":"stored","parent_hash":9561501211280363793,"blocks":[{"type":"stored_block",)"
      R"("block_hash":15292913576410714033,"cache_level":0,"priority":35,"tokens":[)"
      R"({"type":"unique_token","token_id":5,"token_extra_id":0},)"
      R"({"type":"unique_token","token_id":6,"token_extra_id":0}]}]})");
  EXPECT_EQ(EventWire::Polled(BlockRemoved{kSecond}),
            R"({"type":"removed","block_hashes":[15292913576410714033]})");
  EXPECT_EQ(EventWire::Polled(AllBlocksCleared{}), std::nullopt);
}

TEST(EventWire, ReplaysTheTopicSinceItDid) {
  EXPECT_FALSE(Vllm("0.25").replays_topic());
  EXPECT_TRUE(Vllm("0.26").replays_topic());
  EXPECT_FALSE(Sglang("0.5.18").replays_topic());
  EXPECT_TRUE(Sglang("").replays_topic());
  EXPECT_TRUE(Wire(MockedEngine::kTrtllm, "stream").replays_topic());
}

TEST(EventWire, RefusesWhatNoEngineWrites) {
  for (const std::string_view wrong : {"x", "0", "0.", "0.32.0.1", "0.32rc1", "-1.2", "poll"}) {
    EXPECT_EQ(Problem(MockedEngine::kVllm, wrong),
              fmt::format("wire '{}' is not a version of vllm; write one such as 0.32.0", wrong));
  }
  EXPECT_EQ(Problem(MockedEngine::kVllm, "0.8.5"),
            "wire '0.8.5': vllm publishes usable KV events only since 0.9.0");
  EXPECT_EQ(Problem(MockedEngine::kSglang, "0.5.5"),
            "wire '0.5.5': sglang publishes usable KV events only since 0.5.6");
  EXPECT_EQ(Problem(MockedEngine::kTrtllm, "1.0"), "wire '1.0': trtllm has poll and stream");
  EXPECT_EQ(Problem(MockedEngine::kVllm, "0.10.1", true),
            "wire-hashes bytes: only vllm 0.10.2 and later have them");
  EXPECT_EQ(Problem(MockedEngine::kSglang, "", true),
            "wire-hashes bytes: only vllm 0.10.2 and later have them");
}

}  // namespace
}  // namespace fathom
