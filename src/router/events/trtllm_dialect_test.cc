#include "router/events/trtllm_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "router/events/extra_key.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Join(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
  return out;
}

struct EventText {
  uint64_t id = 0;
  std::string data;
  uint64_t window = 1024;
  std::string more = "";  // "," and members of the event

  std::string text() const {
    return fmt::format(R"({{"event_id":{},"window_size":{}{},"data":{}}})", id, window, more, data);
  }
};

std::string Body(const std::vector<EventText>& events) {
  std::vector<std::string> texts;
  for (const EventText& event : events) texts.push_back(event.text());
  return "[" + Join(texts) + "]";
}

std::string Tokens(TokenId first, size_t count) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(
        fmt::format(R"({{"type":"unique_token","token_id":{},"token_extra_id":0}})", first + i));
  return "[" + Join(tokens) + "]";
}

std::string Block(const std::string& hash, TokenId first, size_t count, int level = 0,
                  const std::string& more = "") {
  return fmt::format(
      R"({{"type":"stored_block","block_hash":{},"cache_level":{},"priority":35,"tokens":{}{}}})",
      hash, level, Tokens(first, count), more);
}

std::string Stored(const std::string& parent, const std::vector<std::string>& blocks) {
  return fmt::format(R"({{"type":"stored","parent_hash":{},"blocks":[{}]}})", parent, Join(blocks));
}

std::string Removed(const std::string& hashes) {
  return fmt::format(R"({{"type":"removed","block_hashes":[{}]}})", hashes);
}

std::string Moved(const std::string& hash, int from, int to) {
  return fmt::format(
      R"({{"type":"updated","block_hash":{},"cache_level":{{"type":"event_diff","new_value":{},)"
      R"("old_value":{}}},"priority":null}})",
      hash, to, from);
}

const std::string kCreated = R"({"type":"created","num_blocks_per_cache_level":[15389,0]})";

std::vector<PolledEvent> Decode(TrtllmDecoder& decoder, const std::vector<EventText>& events) {
  auto decoded = decoder.Decode(Body(events));
  EXPECT_TRUE(decoded.has_value()) << (decoded ? "" : decoded.error().what);
  return decoded ? *std::move(decoded) : std::vector<PolledEvent>{};
}

// Blocks of two tokens that count up from `first`.
StoredEvent Blocks(std::optional<uint64_t> parent, std::vector<uint64_t> hashes, TokenId first,
                   Tier tier = Tier::kDevice) {
  StoredEvent event;
  event.parent = parent;
  event.hashes = std::move(hashes);
  event.block_size = 2;
  event.tier = tier;
  for (size_t i = 0; i < event.hashes.size() * 2; ++i)
    event.tokens.push_back(first + static_cast<TokenId>(i));
  return event;
}

PolledEvent Said(uint64_t id, std::vector<CacheEvent> events) { return {id, 0, std::move(events)}; }

// A decoder that has learned from events 0 and 1 that blocks have two tokens.
TrtllmDecoder Taught() {
  TrtllmDecoder decoder;
  Decode(decoder, {{0, kCreated}, {1, Stored("null", {Block("101", 1, 2), Block("102", 3, 2)})}});
  EXPECT_EQ(decoder.block_size(0), 2u);
  return decoder;
}

TEST(TrtllmDialect, StoresAndRemovesBlocks) {
  TrtllmDecoder decoder;
  const auto out = Decode(
      decoder,
      {{0, kCreated},
       {1, Stored("null", {Block("924206229973855", 1, 2), Block("18446744073709551615", 3, 2)})},
       {2, Stored("18446744073709551615", {Block("9007199254740993", 5, 2)})},
       {3, Removed("9007199254740993, 924206229973855")}});
  EXPECT_THAT(out,
              ElementsAre(Said(0, {}), Said(1, {Blocks({}, {924206229973855u, UINT64_MAX}, 1)}),
                          Said(2, {Blocks(UINT64_MAX, {9007199254740993u}, 5)}),
                          Said(3, {RemovedEvent{{9007199254740993u, 924206229973855u}}})));
  EXPECT_EQ(decoder.counters().malformed, 0u) << decoder.counters().first_problem;
}

TEST(TrtllmDialect, AnswersNothingToAnEmptyPoll) {
  TrtllmDecoder decoder;
  EXPECT_THAT(Decode(decoder, {}), IsEmpty());
}

TEST(TrtllmDialect, NeitherStoresNorRemovesPartialBlocks) {
  TrtllmDecoder decoder = Taught();
  const auto out = Decode(decoder, {{2, Stored("102", {Block("103", 5, 2), Block("104", 7, 1)})},
                                    {3, Stored("103", {Block("105", 7, 1)})},
                                    {4, Removed("104")},
                                    {5, Removed("105, 103")}});
  EXPECT_THAT(out, ElementsAre(Said(2, {Blocks(102, {103}, 5)}), Said(3, {}), Said(4, {}),
                               Said(5, {RemovedEvent{{103}}})));
  EXPECT_EQ(decoder.counters().partial, 2u);
}

TEST(TrtllmDialect, HoldsEventsUntilABlockIsAParent) {
  TrtllmDecoder decoder;
  EXPECT_THAT(Decode(decoder, {{0, kCreated}}), ElementsAre(Said(0, {})));
  EXPECT_THAT(Decode(decoder, {{1, Stored("null", {Block("11", 1, 2)})},
                               {2, Stored("null", {Block("21", 1, 1)})},
                               {3, Removed("21")}}),
              IsEmpty());
  EXPECT_EQ(decoder.held(0), 3u);
  const auto out = Decode(decoder, {{4, Stored("11", {Block("12", 3, 2)})}});
  EXPECT_THAT(out, ElementsAre(Said(1, {Blocks({}, {11}, 1)}), Said(2, {}), Said(3, {}),
                               Said(4, {Blocks(11, {12}, 3)})));
  EXPECT_EQ(decoder.held(0), 0u);
  EXPECT_EQ(decoder.block_size(0), 2u);
}

TEST(TrtllmDialect, LosesTheOldestWhenTooManyAreHeld) {
  TrtllmDecoder decoder;
  const size_t extra = 3;
  for (uint64_t id = 0; id < TrtllmDecoder::kMaxHeldEvents + extra; ++id)
    Decode(decoder, {{id, Stored("null", {Block(std::to_string(100 + id), 1, 1)})}});
  EXPECT_EQ(decoder.held(0), TrtllmDecoder::kMaxHeldEvents);
  EXPECT_EQ(decoder.counters().dropped, extra);
  const auto out = Decode(decoder, {{5000, Stored("null", {Block("1", 1, 2), Block("2", 3, 2)})}});
  ASSERT_THAT(out, SizeIs(TrtllmDecoder::kMaxHeldEvents + 1));
  EXPECT_EQ(out.front().id, extra);  // the caller sees that earlier ones are missing
}

TEST(TrtllmDialect, FollowsABlockFromLevelToLevel) {
  TrtllmDecoder decoder = Taught();
  const auto out =
      Decode(decoder, {{2, Moved("102", 0, 1)},
                       {3, Moved("102", 1, 0)},
                       {4, Removed("102, 101")},
                       {5, R"({"type":"updated","block_hash":1,"cache_level":null})"}});
  EXPECT_THAT(out, ElementsAre(Said(2, {MovedEvent{102, Tier::kDevice, Tier::kHost}}),
                               Said(3, {MovedEvent{102, Tier::kHost, Tier::kDevice}}),
                               Said(4, {RemovedEvent{{102, 101}}}), Said(5, {})));
  EXPECT_EQ(decoder.counters().moved, 2u);
}

TEST(TrtllmDialect, RemovesABlockFromTheLevelWhereItIs) {
  TrtllmDecoder decoder = Taught();
  const auto out =
      Decode(decoder, {{2, Stored("102", {Block("103", 5, 2, 1), Block("104", 7, 2, 2)})},
                       {3, Removed("104, 103, 102, 101")}});
  EXPECT_THAT(
      out,
      ElementsAre(Said(2, {Blocks(102, {103}, 5, Tier::kHost), Blocks(103, {104}, 7, Tier::kDisk)}),
                  Said(3, {RemovedEvent{{104}, Tier::kDisk}, RemovedEvent{{103}, Tier::kHost},
                           RemovedEvent{{102, 101}}})));
}

TEST(TrtllmDialect, StoresABlockAgainThatCameBackToTheDevice) {
  TrtllmDecoder decoder = Taught();
  const auto out = Decode(
      decoder,
      {{2, Moved("102", 0, 1)}, {3, Stored("101", {Block("102", 3, 2)})}, {4, Removed("102")}});
  EXPECT_THAT(out, ElementsAre(Said(2, {MovedEvent{102, Tier::kDevice, Tier::kHost}}),
                               Said(3, {RemovedEvent{{102}, Tier::kHost}, Blocks(101, {102}, 3)}),
                               Said(4, {RemovedEvent{{102}}})));
}

TEST(TrtllmDialect, ListensToTheLargestWindowOnly) {
  TrtllmDecoder decoder;
  const std::string data = Stored("null", {Block("1", 1, 2), Block("2", 3, 2)});
  const auto out =
      Decode(decoder, {{0, kCreated, 64}, {1, kCreated, 4096}, {2, data, 64}, {3, data, 4096}});
  EXPECT_THAT(out,
              ElementsAre(Said(0, {}), Said(1, {}), Said(2, {}), Said(3, {Blocks({}, {1, 2}, 1)})));
  EXPECT_EQ(decoder.counters().other_window, 1u);
  EXPECT_EQ(decoder.counters().restarts, 0u);
}

TEST(TrtllmDialect, BeginsAgainWhenALargerWindowAppears) {
  TrtllmDecoder decoder = Taught();
  const std::string data = Stored("null", {Block("1", 1, 2), Block("2", 3, 2)});
  const auto out = Decode(decoder, {{2, kCreated, 4096}, {3, data, 1024}, {4, data, 4096}});
  EXPECT_THAT(
      out, ElementsAre(Said(2, {ClearedEvent{}}), Said(3, {}), Said(4, {Blocks({}, {1, 2}, 1)})));
  EXPECT_EQ(decoder.counters().restarts, 1u);
}

TEST(TrtllmDialect, VoidsWhatIsHeldWhenALargerWindowAppears) {
  TrtllmDecoder decoder;
  Decode(decoder, {{0, Stored("null", {Block("9", 1, 2)}), 64}});
  const std::string data = Stored("null", {Block("1", 1, 2), Block("2", 3, 2)});
  EXPECT_THAT(Decode(decoder, {{1, data, 4096}}),
              ElementsAre(Said(0, {}), Said(1, {ClearedEvent{}, Blocks({}, {1, 2}, 1)})));
}

TEST(TrtllmDialect, BeginsAgainWhenTheNumbersDo) {
  TrtllmDecoder decoder = Taught();
  const auto out =
      Decode(decoder, {{0, kCreated, 64}, {1, Stored("null", {Block("1", 1, 3)}), 64}});
  EXPECT_THAT(out, ElementsAre(Said(0, {ClearedEvent{}})));
  EXPECT_EQ(decoder.block_size(0), 0u);
  EXPECT_EQ(decoder.held(0), 1u);
}

TEST(TrtllmDialect, BeginsAgainWhenABlockIsLargerThanBlocksAre) {
  TrtllmDecoder decoder = Taught();
  const auto out = Decode(decoder, {{2, Stored("null", {Block("1", 1, 4), Block("2", 5, 4)})}});
  ASSERT_THAT(out, SizeIs(1));
  ASSERT_THAT(out[0].events, SizeIs(2));
  EXPECT_EQ(out[0].events[0], CacheEvent(ClearedEvent{}));
  EXPECT_EQ(std::get<StoredEvent>(out[0].events[1]).block_size, 4u);
}

TEST(TrtllmDialect, KeepsRanksApartAndForgetsOne) {
  TrtllmDecoder decoder = Taught();
  const std::string rank = R"(,"attention_dp_rank":1)";
  const auto out = Decode(
      decoder,
      {{0, Stored("null", {Block("1", 1, 3), Block("2", 4, 3)}), 1024, rank}, {2, Removed("101")}});
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_EQ(out[0].rank, 1u);
  EXPECT_EQ(out[1], Said(2, {RemovedEvent{{101}}}));
  EXPECT_EQ(decoder.block_size(1), 3u);
  decoder.Forget(1);
  EXPECT_EQ(decoder.block_size(1), 0u);
  EXPECT_EQ(decoder.block_size(0), 2u);
}

TEST(TrtllmDialect, TakesTheLastSixteenDigitsOfAHexadecimalHash) {
  TrtllmDecoder decoder = Taught();
  const std::string first = "\"" + std::string(48, 'a') + "00000000000000ff\"";
  const std::string second = "\"" + std::string(48, 'b') + "f000000000000001\"";
  const auto out = Decode(
      decoder, {{2, Stored(first, {Block(second, 1, 2)}), 1024, R"(,"hash_algo":"v2_sha256")"},
                {3, Removed(second)}});
  EXPECT_THAT(out, ElementsAre(Said(2, {Blocks(0xff, {0xf000000000000001}, 1)}),
                               Said(3, {RemovedEvent{{0xf000000000000001}}})));
}

TEST(TrtllmDialect, ReadsNegativeHashesAsTheirBits) {
  TrtllmDecoder decoder = Taught();
  EXPECT_THAT(Decode(decoder, {{2, Removed("-1")}}),
              ElementsAre(Said(2, {RemovedEvent{{UINT64_MAX}}})));
}

TEST(TrtllmDialect, NamesWhatStandsInPlaceOfTokens) {
  TrtllmDecoder decoder = Taught();
  const std::string images = R"(,"mm_keys":[{"type":"mm_key","hash":"00ff","start_offset":3},)"
                             R"({"type":"mm_key","hash":"00ff"}])";
  const std::string strange = R"({"block_hash":202,"cache_level":0,"tokens":[{"token_id":"image"},)"
                              R"({"token_id":4,"token_extra_id":18446744073709551615}]})";
  const auto out = Decode(decoder, {{2, Stored("null", {Block("201", 1, 2, 0, images), strange})}});
  ASSERT_THAT(out, SizeIs(1));
  const auto& stored = std::get<StoredEvent>(out[0].events.at(0));
  EXPECT_THAT(stored.tokens, ElementsAre(1, 2, 0, 4));
  EXPECT_THAT(stored.extra, testing::UnorderedElementsAre(ExtraKey{0, ExtraKeyOf("00ff")},
                                                          ExtraKey{1, ExtraKeyOf("image")},
                                                          ExtraKey{1, UINT64_MAX}));
}

TEST(TrtllmDialect, PassesLayerGroupsOn) {
  TrtllmDecoder decoder = Taught();
  const std::string group = R"(,"layer_group_id":3)";
  const auto out = Decode(decoder, {{2, Stored("102", {Block("103", 5, 2)}), 1024, group},
                                    {3, Removed("103"), 1024, group}});
  ASSERT_THAT(out, SizeIs(2));
  EXPECT_EQ(std::get<StoredEvent>(out[0].events.at(0)).group, 3u);
  EXPECT_EQ(std::get<RemovedEvent>(out[1].events.at(0)).group, 3u);
}

TEST(TrtllmDialect, CountsEventsThatMakeNoSenseAndKeepsTheirNumbers) {
  const struct {
    std::string data;
    std::string problem;
  } cases[] = {
      {"{}", "event 2: data: has no type"},
      {R"({"type":"stored","parent_hash":null})", "event 2: blocks: not a list"},
      {R"({"type":"stored","blocks":[{"block_hash":1}]})", "event 2: tokens: not a list"},
      {R"({"type":"stored","blocks":[{"block_hash":1.5}]})", "event 2: a hash that is neither"},
      {R"({"type":"removed","block_hashes":["xyz"]})", "event 2: a hash that is not hexadecimal"},
      {R"({"type":"removed","block_hashes":[""]})", "event 2: a hash that is not hexadecimal"},
      {R"({"type":"removed"})", "event 2: block_hashes: not a list"},
      {R"({"type":"stored","blocks":[{"block_hash":1,"tokens":[{"token_id":-1}]}]})",
       "event 2: token_id: not a number of 32 bits"},
      {Stored("null", {Block("1", 1, 1), Block("2", 2, 2)}),
       "event 2: a block that others follow is not full"},
  };
  for (const auto& c : cases) {
    TrtllmDecoder decoder = Taught();
    EXPECT_THAT(Decode(decoder, {{2, c.data}, {3, Removed("101")}}),
                ElementsAre(Said(2, {}), Said(3, {RemovedEvent{{101}}})));
    EXPECT_EQ(decoder.counters().malformed, 1u);
    EXPECT_THAT(decoder.counters().first_problem, HasSubstr(c.problem));
  }
}

TEST(TrtllmDialect, CountsKindsThatAreNotKnown) {
  TrtllmDecoder decoder = Taught();
  EXPECT_THAT(Decode(decoder, {{2, R"({"type":"defragmented"})"}}), ElementsAre(Said(2, {})));
  EXPECT_EQ(decoder.counters().malformed, 1u);
  EXPECT_EQ(decoder.counters().first_problem, "event 2: the type 'defragmented' is not known");
}

TEST(TrtllmDialect, LeavesOutAnEventWithoutNumber) {
  TrtllmDecoder decoder;
  const auto out = decoder.Decode(R"([{"data":{"type":"created"}}, 5, {"event_id":1.5}])");
  ASSERT_TRUE(out);
  EXPECT_THAT(*out, IsEmpty());
  EXPECT_EQ(decoder.counters().malformed, 3u);
}

TEST(TrtllmDialect, RefusesABodyThatIsNoArray) {
  TrtllmDecoder decoder;
  for (const auto* body : {"", "{}", "[", "null", "[1"}) {
    const auto out = decoder.Decode(body);
    ASSERT_FALSE(out) << body;
    EXPECT_EQ(out.error().blame, Blame::kPeer);
  }
}

TEST(TrtllmDialect, BoundsTheNumberOfRanks) {
  TrtllmDecoder decoder;
  for (size_t rank = 0; rank < TrtllmDecoder::kMaxRanks; ++rank)
    Decode(decoder, {{0, kCreated, 1, fmt::format(R"(,"attention_dp_rank":{})", rank)}});
  EXPECT_EQ(decoder.counters().malformed, 0u);
  EXPECT_THAT(Decode(decoder, {{0, kCreated, 1, R"(,"attention_dp_rank":5000)"}}), IsEmpty());
  EXPECT_EQ(decoder.counters().malformed, 1u);
}

}  // namespace
}  // namespace fathom
