#include "router/gateway/usage_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/usage_stream.h"

namespace fathom {
namespace {

using Action = UsageWish::Action;

// The streams of one engine: with a usage question, and without.
struct UsageShape {
  std::string name;
  std::string asked;
  std::string unasked;
  bool null_unasked = false;
  std::optional<EngineUsage> usage = EngineUsage{40, 32, 2};
};

const std::string kTold = R"({"prompt_tokens":40,"total_tokens":42,"completion_tokens":2,)"
                          R"("prompt_tokens_details":{"cached_tokens":32}})";

std::string UsageEvent(const std::string& json, const std::string& end = "\n\n") {
  return "data: " + json + end;
}

std::string UsageChunk(const std::string& choices, const std::string& more = "",
                       const std::string& end = "\n\n") {
  return UsageEvent(
      R"({"id":"x","object":"chat.completion.chunk","choices":[)" + choices + "]" + more + "}",
      end);
}

const std::string kText = R"({"index":0,"delta":{"content":"hi"},"finish_reason":null})";
const std::string kStop = R"({"index":0,"delta":{},"finish_reason":"stop"})";
const std::string kDone = "data: [DONE]\n\n";
const std::string kUsage = R"(,"usage":)" + kTold;
const std::string kNull = R"(,"usage":null)";

std::vector<UsageShape> Shapes() {
  const std::string body = UsageChunk(kText) + UsageChunk(kStop);
  const std::string nulls = UsageChunk(kText, kNull) + UsageChunk(kStop, kNull);
  const std::string crlf = "\r\n\r\n";
  std::vector<UsageShape> shapes = {
      {"an event of its own", body + UsageChunk("", kUsage) + kDone, body + kDone},
      {"no choices at all", body + UsageEvent(R"({"usage":)" + kTold + "}") + kDone, body + kDone},
      {"null choices", body + UsageEvent(R"({"choices":null,"usage":)" + kTold + "}") + kDone,
       body + kDone},
      {"beside choices", UsageChunk(kText) + UsageChunk(kStop, kUsage) + kDone, body + kDone},
      {"in front of choices",
       UsageEvent(R"({ "usage" : )" + kTold + R"( , "choices":[)" + kStop + "]}") + kDone,
       UsageEvent(R"({ "choices":[)" + kStop + "]}") + kDone},
      {"among other members", UsageChunk(kStop, R"(, "usage": )" + kTold + R"(, "z": 1 )") + kDone,
       UsageChunk(kStop, R"(, "z": 1 )") + kDone},
      {"nulls in any case", nulls + UsageChunk("", kUsage) + kDone, nulls + kDone, true},
      {"nulls in any case, beside choices",
       UsageChunk(kText, kNull) + UsageChunk(kStop, kUsage) + kDone, nulls + kDone, true},
      {"nulls only when asked", nulls + UsageChunk("", kUsage) + kDone, body + kDone},
      {"CR LF", UsageChunk(kText, "", crlf) + UsageChunk("", kUsage, crlf) + "data: [DONE]\r\n\r\n",
       UsageChunk(kText, "", crlf) + "data: [DONE]\r\n\r\n"},
      {"CR", UsageChunk(kText, "", "\r\r") + UsageChunk("", kUsage, "\r\r") + "data: [DONE]\r\r",
       UsageChunk(kText, "", "\r\r") + "data: [DONE]\r\r"},
      {"no space, other fields, pings",
       ": ping\n\nid: 1\ndata:{\"choices\":[{}]}\n\nevent: x\ndata:{\"choices\":[],\"usage\":" +
           kTold + "}\nid: 2\n\n: ping - 2025\r\n\r\ndata:[DONE]\n\n",
       ": ping\n\nid: 1\ndata:{\"choices\":[{}]}\n\n: ping - 2025\r\n\r\ndata:[DONE]\n\n"},
      {"several lines of data",
       "data: {\"choices\":[{}]\ndata: ,\"usage\"\ndata: :{\"prompt_tokens\":40,\ndata: "
       "\"prompt_tokens_details\":{\"cached_tokens\":32}}\ndata: ,\"z\":1}\n\n",
       "data: {\"choices\":[{}]\ndata: ,\"z\":1}\n\n", false, EngineUsage{40, 32}},
      {"broken off in it", body + UsageChunk("", kUsage, ""), body},
      {"broken off before it", body + "data: {\"choices\":[", body + "data: {\"choices\":[", false,
       std::nullopt},
  };
  const std::vector<std::string> untouched = {
      UsageChunk(R"({"index":0,"delta":{"content":"{\"choices\":[],\"usage\":{\"a\":1}}"}})"),
      UsageChunk(R"({"index":0,"delta":{"content":"usage"},"usage":{"prompt_tokens":1}})"),
      UsageChunk(
          R"({"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"usage\":{}"}}]}})"),
      UsageChunk(kText + R"(,{"index":1,"delta":{"content":"two"}})"),
      UsageEvent(R"({"error":{"message":"it broke","usage":{"prompt_tokens":1}}})"),
      "data: {\"usage\":{\"prompt_tokens\":1},\n\n",  // no JSON
      "data: \"usage\":{\n\n\n\n\nretry: 3\n\n",
      "event: \"usage\":{}\n\n",
  };
  for (const std::string& text : untouched) {
    shapes.push_back(
        {"around " + text, text + kDone + UsageChunk("", kUsage) + text, text + kDone + text});
  }
  shapes.push_back({"an error that tells usage",
                    UsageEvent(R"({"error":{"message":"x"})" + kUsage + "}"),
                    UsageEvent(R"({"error":{"message":"x"}})")});
  return shapes;
}

TEST(UsageFilter, ShowsWhatTheEngineWouldHaveSaidUnaskedHoweverTheStreamIsCut) {
  for (const UsageShape& shape : Shapes()) {
    const std::string_view in = shape.asked;
    for (size_t first = 0; first <= in.size(); ++first) {
      UsageStream stream({Action::kTakeOut, shape.null_unasked});
      stream.Feed(in.substr(0, first));
      stream.Feed(in.substr(first));
      stream.End();
      ASSERT_EQ(stream.shown(), shape.unasked) << shape.name << ", cut at " << first;
      ASSERT_EQ(stream.filter().usage(), shape.usage) << shape.name << ", cut at " << first;
    }
  }
}

TEST(UsageFilter, ShowsTheSameWhenTheStreamComesInSmallPieces) {
  for (const UsageShape& shape : Shapes()) {
    for (const size_t piece : {1, 2, 3, 7, 50}) {
      UsageStream stream({Action::kTakeOut, shape.null_unasked});
      for (std::string_view in = shape.asked; !in.empty();) {
        stream.Feed(in.substr(0, piece));
        in.remove_prefix(std::min(piece, in.size()));
      }
      stream.End();
      EXPECT_EQ(stream.shown(), shape.unasked) << shape.name << ", in pieces of " << piece;
    }
  }
}

TEST(UsageFilter, OnlyReadsWhereTheClientHasAsked) {
  for (const UsageShape& shape : Shapes()) {
    UsageStream stream({Action::kRead});
    stream.Feed(shape.asked);
    stream.End();
    EXPECT_EQ(stream.shown(), shape.asked) << shape.name;
    EXPECT_EQ(stream.filter().usage(), shape.usage) << shape.name;
  }
}

TEST(UsageFilter, LetsTheLastUsageCountAndKnowsTheOneAfterWhichNoneComes) {
  UsageStream stream({Action::kRead});
  stream.Feed(UsageChunk(kText, R"(,"usage":{"prompt_tokens":40})"));
  EXPECT_EQ(stream.filter().usage(), (EngineUsage{40, std::nullopt}));
  EXPECT_FALSE(stream.filter().final());
  stream.Feed(UsageChunk("", kUsage));
  EXPECT_EQ(stream.filter().usage(), (EngineUsage{40, 32, 2}));
  EXPECT_TRUE(stream.filter().final());
}

TEST(UsageFilter, SeesWhatAStreamIsLikeThatNobodyHasAskedIn) {
  const auto seen = [](const std::string& text) {
    UsageStream stream({Action::kRead});
    stream.Feed(text);
    stream.End();
    const UsageFilter& filter = stream.filter();
    return std::array{filter.saw_choices(), filter.saw_error(), filter.saw_null()};
  };
  EXPECT_EQ(seen(UsageChunk(kText) + kDone), (std::array{true, false, false}));
  EXPECT_EQ(seen(UsageChunk(kText, kNull) + kDone), (std::array{true, false, true}));
  EXPECT_EQ(seen(UsageEvent(R"({"error":{}})")), (std::array{false, true, false}));
  EXPECT_EQ(seen(UsageChunk(R"({"usage":null})")), (std::array{true, false, false}));
}

TEST(UsageFilter, LetsEventsPassUncopiedThatTellNoUsage) {
  UsageFilter filter({Action::kTakeOut, true});
  EXPECT_TRUE(filter.Passes(UsageChunk(kText)));
  EXPECT_TRUE(filter.Passes(UsageChunk(kText, kNull)));
  EXPECT_TRUE(filter.Passes(UsageChunk(R"({"delta":{"content":"\"usage\":{}"}})")));
  EXPECT_TRUE(filter.Passes(kDone));
  EXPECT_FALSE(filter.Passes(UsageChunk("", kUsage)));
  EXPECT_FALSE(UsageFilter({Action::kTakeOut, false}).Passes(UsageChunk(kText, kNull)));
}

}  // namespace
}  // namespace fathom
