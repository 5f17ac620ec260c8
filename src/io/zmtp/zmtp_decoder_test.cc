#include "io/zmtp/zmtp_decoder.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom {
namespace {

using Step = ZmtpDecoder::Step;

std::string Head(uint8_t flags, uint64_t size) {
  std::string head(1, static_cast<char>(flags));
  const size_t bytes = (flags & kZmtpLong) != 0 ? 8 : 1;
  for (size_t i = bytes; i > 0; --i) head += static_cast<char>(size >> (8 * (i - 1)));
  return head;
}

std::string Encoded(const ZmqMessage& message) {
  std::string bytes;
  AppendZmtpMessage(message, bytes);
  return bytes;
}

std::vector<std::string> FramesOf(const ZmqMessage& message) {
  return {message.begin(), message.end()};
}

TEST(ZmtpDecoder, ReadsWhatWasWrittenHoweverItIsCut) {
  const ZmqMessage first = {"topic", std::string(8, '\1'), std::string(200'000, 'x')};
  const ZmqMessage second = {"", "y"};
  const std::string bytes = Encoded(first) + Encoded(second);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{255}, size_t{65'536}, bytes.size()}) {
    ZmtpDecoder decoder({});
    std::vector<std::vector<std::string>> heard;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      std::string_view in = std::string_view(bytes).substr(at, piece);
      while (decoder.Take(in) == Step::kMessage) heard.push_back(FramesOf(decoder.message()));
    }
    EXPECT_EQ(heard, (std::vector{FramesOf(first), FramesOf(second)})) << piece;
  }
}

TEST(ZmtpDecoder, TakesTheBytesOfALargeFrameWithoutACopy) {
  const ZmqMessage large = {"t", std::string(1 << 20, 'x')};
  const std::string bytes = Encoded(large);
  ZmtpDecoder decoder({});
  std::string_view in = std::string_view(bytes).substr(0, 100);
  EXPECT_EQ(decoder.Take(in), Step::kMore);
  size_t at = 100;
  Step step = Step::kMore;
  while (step == Step::kMore) {
    const auto room = decoder.Room();
    if (room.empty()) {
      in = std::string_view(bytes).substr(at);
      at = bytes.size();
    } else {
      const size_t some = std::min(room.size(), bytes.size() - at);
      std::copy_n(bytes.data() + at, some, room.data());
      decoder.Filled(some);
      at += some;
    }
    step = decoder.Take(in);
  }
  EXPECT_EQ(step, Step::kMessage);
  EXPECT_EQ(FramesOf(decoder.message()), FramesOf(large));
}

TEST(ZmtpDecoder, HandsOutCommandsBetweenTheFramesOfAMessage) {
  std::string bytes = Head(kZmtpMore, 1) + "a";
  AppendZmtpCommand("PING", "12context", bytes);
  bytes += Head(0, 1) + "b";
  ZmtpDecoder decoder({});
  std::string_view in = bytes;
  EXPECT_EQ(decoder.Take(in), Step::kCommand);
  EXPECT_EQ(ReadZmtpCommand(decoder.command())->name, "PING");
  EXPECT_EQ(decoder.Take(in), Step::kMessage);
  EXPECT_EQ(FramesOf(decoder.message()), (std::vector<std::string>{"a", "b"}));
}

TEST(ZmtpDecoder, DropsTheFramesThatAMessageCannotHold) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) bytes += Head(kZmtpMore, 1) + "f";
  bytes += Head(0, 1) + "l" + Encoded(ZmqMessage{"next"});
  ZmtpDecoder decoder({});
  std::string_view in = bytes;
  EXPECT_EQ(decoder.Take(in), Step::kMessage);
  EXPECT_EQ(decoder.message().size(), ZmqMessage::kMostFrames);
  EXPECT_TRUE(decoder.message().truncated());
  EXPECT_EQ(decoder.Take(in), Step::kMessage);
  EXPECT_EQ(FramesOf(decoder.message()), std::vector<std::string>{"next"});
  EXPECT_FALSE(decoder.message().truncated());
}

TEST(ZmtpDecoder, EndsAMessageThatNeverEnds) {
  ZmtpDecoder decoder({.frames = 16, .message = 1000});
  const std::string frame = Head(kZmtpMore, 0);
  size_t frames = 0;
  Step step = Step::kMore;
  while (step == Step::kMore) {
    std::string_view in = frame;
    step = decoder.Take(in);
    ++frames;
  }
  EXPECT_EQ(step, Step::kFault);
  EXPECT_EQ(decoder.fault(), ZmtpFault::kFrames);
  EXPECT_EQ(frames, 17u);
  EXPECT_TRUE(decoder.message().empty());
}

TEST(ZmtpDecoder, RefusesASizeBeforeItTakesMemory) {
  const auto fault_of = [](const std::string& bytes) {
    ZmtpDecoder decoder({.frames = 16, .message = 1000});
    std::string_view in = bytes;
    EXPECT_EQ(decoder.Take(in), Step::kFault);
    return decoder.fault();
  };
  EXPECT_EQ(fault_of(Head(kZmtpLong, 1001)), ZmtpFault::kSize);
  EXPECT_EQ(fault_of(Head(kZmtpLong, ~uint64_t{0})), ZmtpFault::kSize);
  EXPECT_EQ(fault_of(Head(kZmtpMore, 1) + "x" + Head(kZmtpLong, 1000)), ZmtpFault::kSize)
      << "the limit is for all frames together";
  EXPECT_EQ(fault_of(Head(kZmtpCommand | kZmtpLong, 5000)), ZmtpFault::kSize);
}

TEST(ZmtpDecoder, RefusesFlagsThatDoNotExist) {
  for (const int flags : {8, 0x80, 5, 7, 0xff}) {
    ZmtpDecoder decoder({});
    const std::string bytes = Head(static_cast<uint8_t>(flags), 1) + "x";
    std::string_view in = bytes;
    EXPECT_EQ(decoder.Take(in), Step::kFault) << flags;
    EXPECT_EQ(decoder.fault(), ZmtpFault::kProtocol);
  }
}

TEST(ZmtpDecoder, TakesMemoryAsBytesArriveNotAsTheyAreAnnounced) {
  ByteBudget budget(1 << 20);
  ByteHolder holder(budget);
  ZmtpDecoder decoder({}, &holder);
  std::string bytes = Head(kZmtpLong, 60 << 20);
  std::string_view in = bytes;
  EXPECT_EQ(decoder.Take(in), Step::kMore);
  EXPECT_EQ(budget.used(), 0u);
  bytes.assign(100'000, 'x');
  in = bytes;
  EXPECT_EQ(decoder.Take(in), Step::kMore);
  EXPECT_GT(budget.used(), 100'000u);
  EXPECT_LE(budget.used(), 3u * 100'000u);
}

TEST(ZmtpDecoder, IsCutWhenTheBudgetIsUsedUpAndGivesItBack) {
  ByteBudget budget(1 << 20);
  ByteHolder holder(budget);
  ZmtpDecoder decoder({}, &holder);
  const std::string head = Head(kZmtpLong, 2 << 20);
  std::string_view in = head;
  decoder.Take(in);
  const std::string some(100'000, 'x');
  Step step = Step::kMore;
  for (int i = 0; i < 30 && step == Step::kMore; ++i) {
    in = some;
    step = decoder.Take(in);
  }
  EXPECT_EQ(step, Step::kFault);
  EXPECT_EQ(decoder.fault(), ZmtpFault::kMemory);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ZmtpDecoder, FreesALargeMessageWithTheNextCall) {
  ByteBudget budget(1 << 20);
  ByteHolder holder(budget);
  ZmtpDecoder decoder({}, &holder);
  const std::string bytes = Encoded(ZmqMessage{std::string(300'000, 'x')});
  std::string_view in = bytes;
  EXPECT_EQ(decoder.Take(in), Step::kMessage);
  EXPECT_EQ(budget.used(), 300'000u);
  EXPECT_EQ(decoder.Take(in), Step::kMore);
  EXPECT_EQ(budget.used(), 0u);
}

// --- budget

struct Receiver : ByteHolder {
  using ByteHolder::ByteHolder;
  bool GiveUp() override {
    if (!can) return false;
    Hold(0);
    gave_up = true;
    return true;
  }
  bool can = true;
  bool gave_up = false;
};

TEST(ByteBudget, MakesTheLargestGiveWay) {
  ByteBudget budget(10 << 20);
  Receiver large(budget);
  Receiver larger(budget);
  Receiver asking(budget);
  EXPECT_TRUE(large.Hold(4 << 20));
  EXPECT_TRUE(larger.Hold(5 << 20));
  EXPECT_TRUE(asking.Hold(2 << 20));
  EXPECT_TRUE(larger.gave_up);
  EXPECT_FALSE(large.gave_up);
  EXPECT_EQ(budget.used(), size_t{6} << 20);
}

TEST(ByteBudget, RefusesTheLargestItself) {
  ByteBudget budget(10 << 20);
  Receiver small(budget);
  Receiver asking(budget);
  EXPECT_TRUE(small.Hold(4 << 20));
  EXPECT_TRUE(asking.Hold(5 << 20));
  EXPECT_FALSE(asking.Hold(7 << 20));
  EXPECT_FALSE(small.gave_up);
  EXPECT_EQ(asking.held(), size_t{5} << 20);
}

TEST(ByteBudget, RefusesWhenNoLargerOneCanGiveWay) {
  ByteBudget budget(10 << 20);
  Receiver busy(budget);
  busy.can = false;
  Receiver asking(budget);
  EXPECT_TRUE(busy.Hold(9 << 20));
  EXPECT_FALSE(asking.Hold(2 << 20));
  EXPECT_TRUE(asking.Hold(ByteBudget::kFree)) << "small messages are free";
  EXPECT_EQ(budget.used(), size_t{9} << 20);
}

}  // namespace
}  // namespace fathom
