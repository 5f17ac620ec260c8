#include "codec/chunked.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fathom {
namespace {

struct Decoded {
  std::string payload;
  size_t consumed = 0;
  bool done = false;
  std::string error;

  friend bool operator==(const Decoded&, const Decoded&) = default;
};

void Feed(ChunkedDecoder& decoder, std::string_view in, Decoded& out) {
  while (!in.empty() && !decoder.done() && out.error.empty()) {
    const Result<ChunkedDecoder::Step> step = decoder.Feed(in);
    if (!step) {
      EXPECT_EQ(step.error().blame, Blame::kPeer);
      out.error = step.error().what;
      return;
    }
    out.payload += step->payload;
    out.consumed += step->consumed;
    in.remove_prefix(step->consumed);
  }
  out.done = decoder.done();
}

// Fed as two pieces.
Decoded Decode(std::string_view in, size_t cut = 0) {
  ChunkedDecoder decoder;
  Decoded out;
  Feed(decoder, in.substr(0, cut), out);
  Feed(decoder, in.substr(cut), out);
  out.consumed = out.error.empty() ? out.consumed : 0;
  return out;
}

TEST(ChunkedDecoder, JoinsTheChunks) {
  const Decoded out = Decode("5\r\nhello\r\n00B\r\n, big world\r\n0\r\n\r\n");
  EXPECT_EQ(out.payload, "hello, big world");
  EXPECT_TRUE(out.done);
  EXPECT_EQ(out.error, "");
}

TEST(ChunkedDecoder, StopsAtTheEndOfTheBody) {
  const std::string_view body = "1\r\na\r\n0\r\n\r\n";
  const Decoded out = Decode(std::string(body) + "GET / HTTP/1.1\r\n");
  EXPECT_EQ(out.consumed, body.size());
  EXPECT_TRUE(out.done);
}

TEST(ChunkedDecoder, HandsOutPayloadWithoutCopyingIt) {
  const std::string_view in = "a\r\n0123456789\r\n";
  ChunkedDecoder decoder;
  const auto step = decoder.Feed(in);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->payload.data(), in.data() + 3);
  EXPECT_EQ(step->payload, "0123456789");
}

TEST(ChunkedDecoder, ReadsOverExtensionsAndTrailers) {
  const Decoded out = Decode("1;a=\"b c\";d\r\nx\r\n0;e\r\nX-Sum: 1\r\nEmpty:\r\n\r\n");
  EXPECT_EQ(out.payload, "x");
  EXPECT_TRUE(out.done) << out.error;
}

TEST(ChunkedDecoder, IsNotDoneBeforeTheLastByte) {
  const std::string_view in = "1\r\na\r\n0\r\nX: y\r\n\r\n";
  for (size_t length = 0; length < in.size(); ++length) {
    const Decoded out = Decode(in.substr(0, length));
    EXPECT_FALSE(out.done) << length;
    EXPECT_EQ(out.error, "") << length;
  }
}

TEST(ChunkedDecoder, SaysTheSameHoweverTheBodyIsCut) {
  const std::vector<std::string_view> samples = {
      "5;x=y\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nA: b\r\n\r\nrest",
      "5\r\nhello\r\nzz\r\n",
      "5\r\nhello!\r\n0\r\n\r\n",
      "3\r\nabc\r\n0\r\nX\r\n\r\n",
      "3\r\nabc\r\n0\n\n",
  };
  for (const std::string_view sample : samples) {
    const Decoded whole = Decode(sample);
    for (size_t cut = 1; cut <= sample.size(); ++cut) {
      EXPECT_EQ(Decode(sample, cut), whole) << sample << " cut at " << cut;
    }
  }
}

TEST(ChunkedDecoder, RefusesASizeThatOverflows) {
  EXPECT_EQ(Decode("7fffffffffffffff\r\n").error, "");
  EXPECT_EQ(Decode("8000000000000000\r\n").error, "chunk size is too large");
  EXPECT_EQ(Decode("10000000000000000\r\n").error, "chunk size is too large");
  EXPECT_EQ(Decode("00000000000000001\r\n").error, "chunk size is too large");
}

TEST(ChunkedDecoder, RefusesJunkAroundASize) {
  for (const std::string_view in : {"\r\n", " 1\r\n", "1 \r\n", "-1\r\n", "0x1\r\n", "1g\r\n",
                                    ";\r\n", "1\n", "1\r\r", "1_0\r\n", "1 ;a\r\n"}) {
    EXPECT_NE(Decode(in).error, "") << in;
  }
}

TEST(ChunkedDecoder, BoundsExtensionsThatCarryNothing) {
  EXPECT_NE(Decode("1;" + std::string(20'000, 'x')).error, "");
  std::string drip;
  for (int i = 0; i < 300; ++i) drip += "1;" + std::string(100, 'x') + "\r\na\r\n";
  EXPECT_NE(Decode(drip).error, "");
}

TEST(ChunkedDecoder, ForgivesExtensionsThatPayloadOutweighs) {
  std::string body;
  for (int i = 0; i < 1000; ++i) {
    body += "64;" + std::string(90, 'x') + "\r\n" + std::string(100, 'a') + "\r\n";
  }
  const Decoded out = Decode(body);
  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.payload.size(), 100'000u);
}

TEST(ChunkedDecoder, BoundsTrailers) {
  std::string body = "0\r\n";
  for (int i = 0; i < 200; ++i) body += "X: " + std::string(100, 'y') + "\r\n";
  EXPECT_NE(Decode(body).error, "");
}

TEST(HostileRequests, AreRefusedByTheirBodies) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/corpus/hostile_requests")) {
    if (!entry.path().filename().string().starts_with("body-")) continue;
    ++files;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const size_t body = bytes.find("\r\n\r\n") + 4;
    EXPECT_NE(Decode(std::string_view(bytes).substr(body)).error, "") << entry.path();
  }
  EXPECT_GT(files, 20u);
}

TEST(ChunkPrefix, IsTheSizeInHexAndALineEnd) {
  EXPECT_EQ(ChunkPrefix(0).text(), "0\r\n");
  EXPECT_EQ(ChunkPrefix(500).text(), "1f4\r\n");
  EXPECT_EQ(ChunkPrefix(std::numeric_limits<uint64_t>::max()).text(), "ffffffffffffffff\r\n");
}

TEST(ChunkPrefix, IsUnderstoodByTheDecoder) {
  for (const size_t size : {1, 15, 16, 255, 4096}) {
    const std::string data(size, 'd');
    std::string body(ChunkPrefix(size).text());
    body.append(data).append(kChunkSuffix).append(kLastChunk);
    const Decoded out = Decode(body);
    EXPECT_EQ(out.payload, data);
    EXPECT_TRUE(out.done);
  }
}

}  // namespace
}  // namespace fathom
