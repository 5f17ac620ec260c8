#include "codec/msgpack.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using Type = MsgpackReader::Type;

std::string Bytes(std::initializer_list<int> bytes) {
  std::string out;
  for (const int byte : bytes) out.push_back(static_cast<char>(byte));
  return out;
}

TEST(MsgpackReader, ReadsIntegersOfEveryWidthAndSign) {
  const struct {
    std::string bytes;
    MsgpackInteger value;
  } cases[] = {
      {Bytes({0x00}), {0, false}},
      {Bytes({0x7f}), {127, false}},
      {Bytes({0xe0}), {static_cast<uint64_t>(-32), true}},
      {Bytes({0xff}), {static_cast<uint64_t>(-1), true}},
      {Bytes({0xcc, 0xff}), {255, false}},
      {Bytes({0xcd, 0x12, 0x34}), {0x1234, false}},
      {Bytes({0xce, 0xff, 0, 0, 1}), {0xff000001, false}},
      {Bytes({0xcf, 0xff, 0, 0, 0, 0, 0, 0, 1}), {0xff00000000000001, false}},
      {Bytes({0xd0, 0x80}), {static_cast<uint64_t>(-128), true}},
      {Bytes({0xd0, 0x7f}), {127, false}},
      {Bytes({0xd1, 0xff, 0xfe}), {static_cast<uint64_t>(-2), true}},
      {Bytes({0xd2, 0x80, 0, 0, 0}), {static_cast<uint64_t>(INT32_MIN), true}},
      {Bytes({0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0}), {uint64_t{1} << 63, true}},
      {Bytes({0xd3, 0x7f, 0, 0, 0, 0, 0, 0, 5}), {0x7f00000000000005, false}},
  };
  for (const auto& c : cases) {
    MsgpackReader in(c.bytes);
    EXPECT_EQ(in.Peek(), Type::kInteger);
    EXPECT_EQ(in.TakeInteger(), c.value);
    EXPECT_EQ(in.left(), 0u);
    MsgpackReader again(c.bytes);
    EXPECT_EQ(again.TakeUnsigned().has_value(), !c.value.negative);
  }
}

TEST(MsgpackReader, ReadsEveryOtherType) {
  const std::string bytes =
      Bytes({0xc0, 0xc2, 0xc3}) + Bytes({0xca, 0x3f, 0xc0, 0, 0}) +
      Bytes({0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}) + Bytes({0xa2}) + "ab" + Bytes({0xd9, 1}) + "c" +
      Bytes({0xc4, 2, 1, 2}) + Bytes({0xd4, 0xff, 9}) + Bytes({0xc7, 2, 5, 7, 8}) +
      Bytes({0x92, 1, 2}) + Bytes({0x81, 3, 4}) + Bytes({0xdc, 0, 1, 6}) + Bytes({0xde, 0, 0});
  MsgpackReader in(bytes);
  EXPECT_TRUE(in.TakeNil());
  EXPECT_EQ(in.TakeBool(), false);
  EXPECT_EQ(in.TakeBool(), true);
  EXPECT_EQ(in.TakeFloat(), 1.5);
  EXPECT_EQ(in.TakeFloat(), 1.5);
  EXPECT_EQ(in.TakeString(), "ab");
  EXPECT_EQ(in.TakeString(), "c");
  EXPECT_EQ(in.TakeBinary(), Bytes({1, 2}));
  const std::string nine = Bytes({9});
  EXPECT_EQ(in.TakeExtension(), (MsgpackExtension{-1, nine}));
  const std::string seven_eight = Bytes({7, 8});
  EXPECT_EQ(in.TakeExtension(), (MsgpackExtension{5, seven_eight}));
  EXPECT_EQ(in.TakeArray(), 2u);
  EXPECT_EQ(in.TakeUnsigned(), 1u);
  EXPECT_EQ(in.TakeUnsigned(), 2u);
  EXPECT_EQ(in.TakeMap(), 1u);
  EXPECT_TRUE(in.Skip() && in.Skip());
  EXPECT_EQ(in.TakeArray(), 1u);
  EXPECT_EQ(in.TakeUnsigned(), 6u);
  EXPECT_EQ(in.TakeMap(), 0u);
  EXPECT_EQ(in.left(), 0u);
  EXPECT_FALSE(in.failed());
}

TEST(MsgpackReader, LeavesAValueOfAnotherTypeWhereItIs) {
  const std::string bytes = Bytes({0xff});
  MsgpackReader in(bytes);
  EXPECT_FALSE(in.TakeString());
  EXPECT_FALSE(in.TakeUnsigned());
  EXPECT_FALSE(in.TakeNil());
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.position(), 0u);
  EXPECT_TRUE(in.TakeInteger());
}

TEST(MsgpackReader, FailsOnEveryCutOfAValue) {
  const std::string values[] = {
      Bytes({0xcd, 1, 2}),
      Bytes({0xcb, 1, 2, 3, 4, 5, 6, 7, 8}),
      Bytes({0xa3}) + "abc",
      Bytes({0xc4, 1, 9}),
      Bytes({0xd8, 1}) + std::string(16, 'x'),
      Bytes({0xc7, 0, 5}),
      Bytes({0x92, 1, 0xc0}),
      Bytes({0x81, 0xa1}) + "k" + Bytes({0x91, 7}),
      Bytes({0xdd, 0, 0, 0, 1, 5}),
  };
  for (const std::string& value : values) {
    MsgpackReader whole(value);
    EXPECT_TRUE(whole.Skip());
    EXPECT_EQ(whole.left(), 0u);
    for (size_t cut = 0; cut < value.size(); ++cut) {
      MsgpackReader in(std::string_view(value).substr(0, cut));
      EXPECT_FALSE(in.Skip()) << cut;
      EXPECT_TRUE(in.failed());
      EXPECT_FALSE(in.problem().empty());
    }
  }
}

TEST(MsgpackReader, RefusesAHeadThatAnnouncesMoreElementsThanBytes) {
  const std::string array = Bytes({0xdd, 0xff, 0xff, 0xff, 0xff, 1, 2});
  MsgpackReader in(array);
  EXPECT_FALSE(in.TakeArray());
  EXPECT_TRUE(in.failed());
  const std::string map = Bytes({0x82, 1, 2, 3});  // two pairs need four bytes
  MsgpackReader pairs(map);
  EXPECT_FALSE(pairs.TakeMap());
  EXPECT_TRUE(pairs.failed());
  const std::string nested = Bytes({0x92, 0x92, 1, 2});  // each head alone would fit
  MsgpackReader both(nested);
  EXPECT_FALSE(both.Skip());
}

TEST(MsgpackReader, RefusesTheByteThatIsNeverUsed) {
  const std::string bytes = Bytes({0xc1});
  MsgpackReader in(bytes);
  EXPECT_EQ(in.Peek(), Type::kNone);
  EXPECT_FALSE(in.Skip());
  EXPECT_TRUE(in.failed());
}

TEST(MsgpackReader, StaysFailed) {
  const std::string bytes = Bytes({0xa5, 'a', 0xc0});
  MsgpackReader in(bytes);
  EXPECT_FALSE(in.TakeString());
  EXPECT_TRUE(in.failed());
  EXPECT_FALSE(in.Skip());
  EXPECT_FALSE(in.TakeInteger());
  EXPECT_EQ(in.Peek(), Type::kNone);
}

TEST(MsgpackReader, SkipsAMillionArraysInsideEachOther) {
  std::string bytes(1'000'000, static_cast<char>(0x91));
  bytes.push_back(static_cast<char>(0xc0));
  MsgpackReader in(bytes);
  EXPECT_TRUE(in.Skip());
  EXPECT_EQ(in.left(), 0u);
}

}  // namespace
}  // namespace fathom
