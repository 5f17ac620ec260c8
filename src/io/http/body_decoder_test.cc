#include "io/http/body_decoder.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

struct Decoded {
  std::string body;
  std::string rest;
  bool done = false;
};

// Feeds `wire` in pieces of `step` bytes.
Decoded Decode(BodyDecoder decoder, std::string_view wire, size_t step) {
  Decoded out;
  std::string pending;
  while (!wire.empty() && !decoder.done()) {
    pending = wire.substr(0, step);
    wire.remove_prefix(pending.size());
    std::string_view left = pending;
    while (!left.empty() && !decoder.done()) {
      const auto fed = decoder.Feed(left);
      EXPECT_TRUE(fed);
      if (!fed || fed->consumed == 0) break;
      out.body += fed->payload;
      left.remove_prefix(fed->consumed);
    }
    out.rest = left;
  }
  out.rest += wire;
  out.done = decoder.done();
  return out;
}

TEST(BodyDecoder, TakesExactlyTheLengthHoweverItIsCut) {
  for (size_t step = 1; step < 20; ++step) {
    const Decoded d = Decode(BodyDecoder(BodyFraming::kLength, 5), "helloGET /", step);
    EXPECT_EQ(d.body, "hello");
    EXPECT_EQ(d.rest, "GET /");
    EXPECT_TRUE(d.done);
  }
}

TEST(BodyDecoder, TakesExactlyTheChunksHoweverTheyAreCut) {
  const std::string wire = "5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nt: 1\r\n\r\nGET /";
  for (size_t step = 1; step < wire.size() + 1; ++step) {
    const Decoded d = Decode(BodyDecoder(BodyFraming::kChunked, 0), wire, step);
    EXPECT_EQ(d.body, "hello!") << step;
    EXPECT_EQ(d.rest, "GET /") << step;
    EXPECT_TRUE(d.done) << step;
  }
}

TEST(BodyDecoder, TakesEverythingUntilTheEndAndNeverKnowsIt) {
  const Decoded d = Decode(BodyDecoder(BodyFraming::kUntilClose, 0), "all of it", 4);
  EXPECT_EQ(d.body, "all of it");
  EXPECT_FALSE(d.done);
}

TEST(BodyDecoder, IsDoneAtOnceWhereThereIsNoBody) {
  EXPECT_TRUE(BodyDecoder().done());
  EXPECT_TRUE(BodyDecoder(BodyFraming::kLength, 0).done());
  BodyDecoder none(BodyFraming::kNone, 0);
  const auto step = none.Feed("GET /");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->consumed, 0u);
}

TEST(BodyDecoder, IsNotDoneBeforeTheLastByte) {
  const Decoded length = Decode(BodyDecoder(BodyFraming::kLength, 6), "hello", 2);
  EXPECT_FALSE(length.done);
  const Decoded chunked = Decode(BodyDecoder(BodyFraming::kChunked, 0), "5\r\nhello\r\n0\r\n\r", 3);
  EXPECT_EQ(chunked.body, "hello");
  EXPECT_FALSE(chunked.done);
}

TEST(BodyDecoder, SurvivesLengthsThatReachTheEndOfTheNumbers) {
  const Decoded d = Decode(BodyDecoder(BodyFraming::kLength, ~uint64_t{0}), "abc", 2);
  EXPECT_EQ(d.body, "abc");
  EXPECT_FALSE(d.done);
}

}  // namespace
}  // namespace fathom
