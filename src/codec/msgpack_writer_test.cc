#include "codec/msgpack_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fathom {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

template <class Write>
std::string WrittenHex(Write write) {
  MsgpackWriter w;
  write(w);
  return Hex(w.text());
}

std::string OfUnsigned(uint64_t n) {
  return WrittenHex([n](MsgpackWriter& w) { w.Unsigned(n); });
}
std::string OfSigned(int64_t n) {
  return WrittenHex([n](MsgpackWriter& w) { w.Signed(n); });
}

TEST(MsgpackWriter, WritesIntegersInTheFewestBytes) {
  EXPECT_EQ(OfUnsigned(0), "00");
  EXPECT_EQ(OfUnsigned(127), "7f");
  EXPECT_EQ(OfUnsigned(128), "cc80");
  EXPECT_EQ(OfUnsigned(255), "ccff");
  EXPECT_EQ(OfUnsigned(256), "cd0100");
  EXPECT_EQ(OfUnsigned(65535), "cdffff");
  EXPECT_EQ(OfUnsigned(65536), "ce00010000");
  EXPECT_EQ(OfUnsigned(0xffffffff), "ceffffffff");
  EXPECT_EQ(OfUnsigned(0x100000000), "cf0000000100000000");
  EXPECT_EQ(OfUnsigned(~uint64_t{0}), "cfffffffffffffffff");
}

TEST(MsgpackWriter, WritesNegativeIntegersInTheFewestBytes) {
  EXPECT_EQ(OfSigned(5), "05");
  EXPECT_EQ(OfSigned(5674439469042975057), "cf4ebfa8a1f3c34151");
  EXPECT_EQ(OfSigned(-1), "ff");
  EXPECT_EQ(OfSigned(-32), "e0");
  EXPECT_EQ(OfSigned(-33), "d0df");
  EXPECT_EQ(OfSigned(-128), "d080");
  EXPECT_EQ(OfSigned(-129), "d1ff7f");
  EXPECT_EQ(OfSigned(-32768), "d18000");
  EXPECT_EQ(OfSigned(-32769), "d2ffff7fff");
  EXPECT_EQ(OfSigned(std::numeric_limits<int32_t>::min()), "d280000000");
  EXPECT_EQ(OfSigned(-3488128144981237669), "d3cf97adeedb59e05b");
}

TEST(MsgpackWriter, WritesWordsAndNumbersThatAreNotWhole) {
  EXPECT_EQ(WrittenHex([](MsgpackWriter& w) { w.Nil().Bool(true).Bool(false); }), "c0c3c2");
  EXPECT_EQ(WrittenHex([](MsgpackWriter& w) { w.Double(1700000000.5); }), "cb41d954fc40200000");
}

TEST(MsgpackWriter, WritesLengthsInTheFewestBytes) {
  const auto head = [](auto write, size_t bytes) { return WrittenHex(write).substr(0, bytes * 2); };
  const auto text = [](size_t n) {
    return [n](MsgpackWriter& w) { w.String(std::string(n, 'x')); };
  };
  EXPECT_EQ(head(text(0), 1), "a0");
  EXPECT_EQ(head(text(31), 1), "bf");
  EXPECT_EQ(head(text(32), 2), "d920");
  EXPECT_EQ(head(text(255), 2), "d9ff");
  EXPECT_EQ(head(text(256), 3), "da0100");
  EXPECT_EQ(head(text(65536), 5), "db00010000");
  const auto bytes = [](size_t n) {
    return [n](MsgpackWriter& w) { w.Binary(std::string(n, 'x')); };
  };
  EXPECT_EQ(head(bytes(0), 2), "c400");
  EXPECT_EQ(head(bytes(32), 2), "c420");
  EXPECT_EQ(head(bytes(256), 3), "c50100");
  EXPECT_EQ(head(bytes(65536), 5), "c600010000");
  const auto array = [](uint32_t n) { return [n](MsgpackWriter& w) { w.Array(n); }; };
  EXPECT_EQ(WrittenHex(array(0)), "90");
  EXPECT_EQ(WrittenHex(array(15)), "9f");
  EXPECT_EQ(WrittenHex(array(16)), "dc0010");
  EXPECT_EQ(WrittenHex(array(65535)), "dcffff");
  EXPECT_EQ(WrittenHex(array(65536)), "dd00010000");
  const auto map = [](uint32_t n) { return [n](MsgpackWriter& w) { w.Map(n); }; };
  EXPECT_EQ(WrittenHex(map(15)), "8f");
  EXPECT_EQ(WrittenHex(map(16)), "de0010");
  EXPECT_EQ(WrittenHex(map(65536)), "df00010000");
}

TEST(MsgpackWriter, PutsValuesOneAfterAnother) {
  MsgpackWriter w;
  w.Map(1).String("a").Array(2).Unsigned(1).Nil();
  EXPECT_EQ(Hex(w.Take()), "81a1619201c0");
  EXPECT_TRUE(w.text().empty());
}

}  // namespace
}  // namespace fathom
