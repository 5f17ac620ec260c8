#include "codec/sse.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Events = std::vector<std::string>;

void Drain(SseReader& reader, Events& out) {
  while (const auto data = reader.Next()) out.emplace_back(*data);
}

// Fed as two pieces.
Events Read(std::string_view in, size_t cut = 0) {
  SseReader reader;
  Events out;
  reader.Feed(in.substr(0, cut));
  Drain(reader, out);
  reader.Feed(in.substr(cut));
  Drain(reader, out);
  return out;
}

TEST(WholeEvents, EndWithTheLastBlankLine) {
  EXPECT_EQ(WholeEvents(""), 0u);
  EXPECT_EQ(WholeEvents("data: a"), 0u);
  EXPECT_EQ(WholeEvents("data: a\n"), 0u);
  EXPECT_EQ(WholeEvents("data: a\n\n"), 9u);
  EXPECT_EQ(WholeEvents("data: a\n\ndata: b\n"), 9u);
  EXPECT_EQ(WholeEvents("data: a\n\ndata: b\n\n"), 18u);
}

TEST(WholeEvents, KnowAllLineEnds) {
  EXPECT_EQ(WholeEvents("a\r\n"), 0u);
  EXPECT_EQ(WholeEvents("a\r\n\r\nb"), 5u);
  EXPECT_EQ(WholeEvents("a\r\rb"), 3u);
  EXPECT_EQ(WholeEvents("a\n\r\nb"), 4u);
  EXPECT_EQ(WholeEvents("a\r\n\nb"), 4u);
  EXPECT_EQ(WholeEvents("a\r\n\r"), 4u);
  EXPECT_EQ(WholeEvents("\nb"), 1u);
}

TEST(SseReader, YieldsTheDataOfEachEvent) {
  EXPECT_THAT(Read("data: {\"a\":1}\n\ndata: [DONE]\n\n"), ElementsAre("{\"a\":1}", "[DONE]"));
}

TEST(SseReader, JoinsSeveralDataLines) {
  EXPECT_THAT(Read("data: a\ndata:b\ndata\ndata:  c\n\n"), ElementsAre("a\nb\n\n c"));
}

TEST(SseReader, PassesOverCommentsAndOtherFields) {
  EXPECT_THAT(Read(": ping\n\nevent: x\nid: 1\ndata: a\nretry: 5\ndatabase: b\n Data: c\n\n"),
              ElementsAre("a"));
}

TEST(SseReader, TakesAnEventWithoutDataForNone) {
  EXPECT_THAT(Read("event: ping\n\n\n\n"), IsEmpty());
  EXPECT_THAT(Read("data:\n\n"), ElementsAre(""));
}

TEST(SseReader, WaitsForTheEndOfAnEvent) {
  EXPECT_THAT(Read("data: a\n\ndata: b\n"), ElementsAre("a"));
}

TEST(SseReader, SaysTheSameHoweverTheStreamIsCut) {
  for (const std::string_view in :
       {"data: one\n\n: c\ndata: two\ndata: three\n\ndata: four\n",
        "data: one\r\n\r\ndata: two\r\ndata: three\r\n\r\n", "data: one\r\rdata: two\rdata: 3\r\r",
        "data: one\n\r\n\rdata: two\r\n\ndata: three\r\r\n\n"}) {
    const Events whole = Read(in);
    EXPECT_GE(whole.size(), 2u);
    for (size_t cut = 1; cut <= in.size(); ++cut) {
      EXPECT_EQ(Read(in, cut), whole) << in << " cut at " << cut;
    }
  }
}

TEST(SseReader, SkipsAndCountsAnEventThatIsTooLongHoweverItIsCut) {
  const std::string in =
      "data: a\n\ndata: " + std::string(SseReader::kMaxEvent, 'x') + "\ndata: y\n\ndata: b\n\n";
  for (const size_t piece : {size_t{1000}, size_t{65536}, in.size()}) {
    SseReader reader;
    Events out;
    for (size_t at = 0; at < in.size(); at += piece) {
      reader.Feed(std::string_view(in).substr(at, piece));
      Drain(reader, out);
    }
    EXPECT_THAT(out, ElementsAre("a", "b")) << piece;
    EXPECT_EQ(reader.oversized(), 1u) << piece;
  }
}

TEST(SseReader, CountsTheLinesOfAnEventTogether) {
  SseReader reader;
  Events out;
  const std::string line = "data: " + std::string(SseReader::kMaxEvent / 4, 'x') + "\n";
  for (int i = 0; i < 3; ++i) reader.Feed(line);
  reader.Feed("\n");
  Drain(reader, out);
  EXPECT_EQ(out.size(), 1u);
  for (int i = 0; i < 5; ++i) reader.Feed(line);
  reader.Feed("\ndata: b\n\n");
  Drain(reader, out);
  EXPECT_EQ(out.size(), 2u);
  EXPECT_EQ(out.back(), "b");
  EXPECT_EQ(reader.oversized(), 1u);
}

}  // namespace
}  // namespace fathom
