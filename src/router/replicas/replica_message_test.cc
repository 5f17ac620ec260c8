#include "router/replicas/replica_message.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "codec/msgpack_writer.h"
#include "testing/replica_samples.h"

namespace fathom {
namespace {

ReplicaMessage WithContent(ReplicaMessage::Content content) {
  return {.group = "default",
          .origin = "fathom-0",
          .incarnation = 0xabcdef0123456789,
          .number = 4711,
          .content = std::move(content)};
}

// The head of a message as another version would write it; the content follows.
MsgpackWriter HeadOf(uint32_t major, uint32_t minor, uint64_t kind, uint32_t elements = 9) {
  MsgpackWriter out;
  out.Array(elements).String("fathom").Unsigned(major).Unsigned(minor);
  out.String("default").String("fathom-0").Unsigned(1).Unsigned(2).Unsigned(kind);
  return out;
}

constexpr uint64_t kPresenceKind = 1;
constexpr uint64_t kGaugesKind = 2;
constexpr uint64_t kBindingsKind = 4;

TEST(ReplicaMessage, EveryKindReadsAsItWasWritten) {
  std::set<size_t> kinds;
  for (const auto& content : SampleReplicaContents()) {
    const ReplicaMessage message = WithContent(content);
    const auto read = DecodeReplicaMessage(Encode(message));
    ASSERT_TRUE(read.has_value()) << content.index() << ": " << read.error().what;
    EXPECT_EQ(*read, message) << content.index();
    kinds.insert(content.index());
  }
  // Every kind but the unknown one has a sample.
  EXPECT_EQ(kinds.size(), std::variant_size_v<ReplicaMessage::Content> - 1);
}

TEST(ReplicaMessage, EmptyListsReadAsEmpty) {
  for (const ReplicaMessage::Content& content :
       {ReplicaMessage::Content(Gauges{}), ReplicaMessage::Content(SentPromptsTold{}),
        ReplicaMessage::Content(SessionBindings{}), ReplicaMessage::Content(ReplicaPresence{})}) {
    EXPECT_EQ(DecodeReplicaMessage(Encode(WithContent(content))), WithContent(content));
  }
}

TEST(ReplicaMessage, NoPartOfAMessageIsAMessage) {
  for (const auto& content : SampleReplicaContents()) {
    const std::string whole = Encode(WithContent(content));
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(DecodeReplicaMessage(std::string_view(whole).substr(0, size)).has_value())
          << content.index() << " at " << size;
    }
  }
}

TEST(ReplicaMessage, PassesOverWhatANewerMinorVersionAppends) {
  MsgpackWriter out = HeadOf(1, 7, kGaugesKind, 11);
  out.Array(4);  // Gauges
  out.Array(3);  // the range, with a note
  out.Array(3).Unsigned(1).Unsigned(0).String("label");
  out.Array(2).Unsigned(9).Unsigned(1);
  out.Bool(true);
  out.Array(1).Array(9);  // one gauge
  out.Array(3).Unsigned(5).Unsigned(2).Map(1).String("a").Array(2).Nil().Nil();
  out.Double(10).Double(4).Unsigned(20).Unsigned(300).Unsigned(2).Unsigned(1);
  out.Double(0.5).Binary("more");
  out.Signed(-1).Array(1).Array(0);         // of Gauges
  out.String("of the message").Signed(-7);  // of the message
  const auto read = DecodeReplicaMessage(out.text());
  ASSERT_TRUE(read.has_value()) << read.error().what;
  EXPECT_EQ(read->minor, 7u);
  const Gauges expected{.whole = Gauges::Range{.from = {.worker = 1, .dp_rank = 0},
                                               .to = {.worker = 9, .dp_rank = 1}},
                        .ranks = {{.rank = {.worker = 5, .dp_rank = 2},
                                   .queued = 10,
                                   .oldest = 4,
                                   .busy_ms = 20,
                                   .context = 300,
                                   .requests = 2,
                                   .waiting = 1}}};
  EXPECT_EQ(std::get<Gauges>(read->content), expected);
}

TEST(ReplicaMessage, AKindThatIsNotKnownIsNoOtherKind) {
  for (const uint64_t kind : {uint64_t{0}, uint64_t{11}, uint64_t{12}, ~uint64_t{0}}) {
    MsgpackWriter out = HeadOf(1, 1, kind);
    out.Array(4).Unsigned(1000).String("http://x").Array(0).Bool(true);  // reads as a presence
    const auto read = DecodeReplicaMessage(out.text());
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(std::holds_alternative<std::monostate>(read->content)) << kind;
    EXPECT_EQ(read->origin, "fathom-0");
    EXPECT_EQ(read->number, 2u);
  }
}

TEST(ReplicaMessage, RefusesAnotherMajorVersion) {
  for (const uint32_t major : {0u, 2u, 1000u}) {
    MsgpackWriter out;
    // Whatever the other version has behind its number.
    out.Array(3).String("fathom").Unsigned(major).Nil();
    const auto few = DecodeReplicaMessage(out.text());
    ASSERT_FALSE(few.has_value());
    EXPECT_EQ(few.error().blame, Blame::kPeer) << "too few elements for the head";
    MsgpackWriter same = HeadOf(major, 0, kPresenceKind);
    same.Array(4).Unsigned(1000).String("").Array(0).Bool(true);
    const auto read = DecodeReplicaMessage(same.text());
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().blame, Blame::kCaller);
    EXPECT_NE(read.error().what.find(std::to_string(major)), std::string::npos);
  }
}

// A presence with this interval and `fields` of its fields.
std::string PresenceWith(const std::function<void(MsgpackWriter&)>& interval, uint32_t fields = 7) {
  MsgpackWriter out = HeadOf(1, 0, kPresenceKind);
  out.Array(fields);
  interval(out);
  out.String("").Array(0).Bool(true);
  if (fields > 4) out.String("1.0").Unsigned(3).Array(0);
  if (fields > 7) out.Unsigned(77);
  return out.Take();
}

TEST(ReplicaMessage, RefusesFieldsThatAreMissingOrOfAnotherType) {
  const auto second = [](MsgpackWriter& out) { out.Unsigned(1000); };
  EXPECT_TRUE(DecodeReplicaMessage(PresenceWith(second)).has_value());
  EXPECT_FALSE(DecodeReplicaMessage(PresenceWith(second, 4)).has_value());
  const auto text = [](MsgpackWriter& out) { out.String("1000"); };
  EXPECT_FALSE(DecodeReplicaMessage(PresenceWith(text)).has_value());
  const auto wide = [](MsgpackWriter& out) { out.Unsigned(uint64_t{1} << 32); };
  EXPECT_FALSE(DecodeReplicaMessage(PresenceWith(wide)).has_value());
  const auto negative = [](MsgpackWriter& out) { out.Signed(-1); };
  EXPECT_FALSE(DecodeReplicaMessage(PresenceWith(negative)).has_value());
}

TEST(ReplicaMessage, WhatALaterVersionAppendsMayBeAbsent) {
  const auto second = [](MsgpackWriter& out) { out.Unsigned(1000); };
  const auto read = [&](uint32_t fields) {
    return std::get<ReplicaPresence>(DecodeReplicaMessage(PresenceWith(second, fields))->content);
  };
  EXPECT_EQ(read(7).worker_set, std::nullopt);
  EXPECT_EQ(read(8).worker_set, 77u);
  EXPECT_EQ(read(8).workers, 3u);
}

TEST(ReplicaMessage, RefusesAmountsThatWouldSpoilASum) {
  for (const double amount : {-1.0, 1e13, std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()}) {
    const Gauges gauges{.whole = std::nullopt,
                        .ranks = {{.rank = {}, .queued = amount, .requests = 1}}};
    EXPECT_FALSE(DecodeReplicaMessage(Encode(WithContent(gauges))).has_value()) << amount;
  }
}

TEST(ReplicaMessage, RefusesLengthsThatAreNotThere) {
  for (const uint32_t length : {2u, 1000u, 1u << 20, ~uint32_t{0}}) {
    MsgpackWriter list = HeadOf(1, 0, kBindingsKind);
    list.Array(1).Array(length);
    list.Array(4).Unsigned(1).Unsigned(2).Unsigned(3).Unsigned(4);
    EXPECT_FALSE(DecodeReplicaMessage(list.text()).has_value()) << length;
  }
  for (const std::string_view text : {"\xdb\xff\xff\xff\xff", "\xda\xff\xff", "\xd9\xff"}) {
    std::string bytes = HeadOf(1, 0, kPresenceKind).Take();
    bytes += "\x94\x01";
    bytes += text;
    EXPECT_FALSE(DecodeReplicaMessage(bytes).has_value());
  }
}

TEST(ReplicaMessage, RefusesAMessageThatIsTooLong) {
  Piece piece{.to = "b", .question = 1, .piece = 0, .pieces = 1, .bytes = {}};
  const size_t rest = Encode(WithContent(piece)).size() + 3;  // a longer length
  piece.bytes.assign(ReplicaMessage::kMostBytes - rest, 'x');
  const std::string longest = Encode(WithContent(piece));
  ASSERT_EQ(longest.size(), ReplicaMessage::kMostBytes);
  EXPECT_TRUE(DecodeReplicaMessage(longest).has_value());
  piece.bytes += 'x';
  EXPECT_FALSE(DecodeReplicaMessage(Encode(WithContent(piece))).has_value());
}

TEST(ReplicaMessage, RefusesAPresenceThatWouldBeKeptAndIsTooLong) {
  ReplicaPresence presence{.interval_ms = 1000, .url = {}, .models = {}, .informed = false};
  presence.models.assign(ReplicaPresence::kMostModels, "m");
  EXPECT_TRUE(DecodeReplicaMessage(Encode(WithContent(presence))).has_value());
  presence.models.emplace_back("m");
  EXPECT_FALSE(DecodeReplicaMessage(Encode(WithContent(presence))).has_value());
  presence.models = {std::string(ReplicaPresence::kLongestText + 1, 'm')};
  EXPECT_FALSE(DecodeReplicaMessage(Encode(WithContent(presence))).has_value());
  presence.models.clear();
  presence.url.assign(ReplicaPresence::kLongestText + 1, 'u');
  EXPECT_FALSE(DecodeReplicaMessage(Encode(WithContent(presence))).has_value());
}

TEST(ReplicaMessage, RefusesNamesThatAreNone) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a>"),
                                  std::string("*"), std::string(65, 'a'), std::string("\0", 1)}) {
    EXPECT_FALSE(IsReplicaName(name));
    ReplicaMessage message = WithContent(Proof{.to = "b", .nonce = 1});
    message.origin = name;
    EXPECT_FALSE(DecodeReplicaMessage(Encode(message)).has_value());
    message = WithContent(Proof{.to = "b", .nonce = 1});
    message.group = name;
    EXPECT_FALSE(DecodeReplicaMessage(Encode(message)).has_value());
  }
  EXPECT_TRUE(IsReplicaName("fathom-0.fathom_peers.Default"));
  EXPECT_TRUE(IsReplicaName(std::string(64, 'a')));
}

}  // namespace
}  // namespace fathom
