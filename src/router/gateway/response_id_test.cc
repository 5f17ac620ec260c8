#include "router/gateway/response_id.h"

#include <gtest/gtest.h>

#include <string>

#include "router/routing/response_pins.h"

namespace fathom {
namespace {

std::optional<std::string> IdOfWhole(const std::string& body, size_t piece) {
  ResponseIdReader reader;
  for (size_t at = 0; at < body.size(); at += piece) reader.Feed(body.substr(at, piece));
  return reader.OfWhole();
}

std::string EventOf(const std::string& data) { return "event: x\ndata: " + data + "\n\n"; }

TEST(ResponseId, OfAWholeAnswerIsAtItsTop) {
  const std::string body =
      R"({"output":[{"id":"msg_1","text":"\"id\":\"resp_9\""}],"id":"resp_1","usage":{"id":"x"}})";
  for (size_t piece = 1; piece <= body.size(); ++piece) EXPECT_EQ(IdOfWhole(body, piece), "resp_1");
  EXPECT_EQ(IdOfWhole(R"({"id":"resp\u005f2"})", 3), "resp_2");
}

TEST(ResponseId, WhatIsNoIdIsNotTakenForOne) {
  for (const char* body : {"", "{}", R"({"id":5})", R"({"id":null})", R"({"id":""})", "[1]",
                           R"({"id":"resp_1")", R"({"response":{"id":"resp_1"}})"}) {
    EXPECT_FALSE(IdOfWhole(body, 4)) << body;
  }
  const std::string longest(ResponsePins::kLongestId, 'a');
  EXPECT_EQ(IdOfWhole(R"({"id":")" + longest + R"("})", 100), longest);
  EXPECT_FALSE(IdOfWhole(R"({"id":")" + longest + R"(a"})", 100));
  EXPECT_FALSE(IdOfWhole(R"({"id":")" + std::string(1 << 20, 'a') + R"("})", 1000));
}

TEST(ResponseId, OfAStreamIsInItsFirstEvents) {
  ResponseIdReader reader;
  EXPECT_TRUE(reader.seeks());
  reader.Read(": comment\n\n");
  EXPECT_FALSE(reader.of_stream());
  reader.Read(EventOf(R"({"type":"response.created","response":{"output":[],"id":"resp_1"}})") +
              EventOf(R"({"type":"response.in_progress","response":{"id":"resp_2"}})"));
  EXPECT_EQ(reader.of_stream(), "resp_1");
  EXPECT_FALSE(reader.seeks());
}

TEST(ResponseId, IsNotSoughtInAllOfAStream) {
  ResponseIdReader reader;
  const std::string delta = EventOf(R"({"type":"response.output_text.delta","delta":"x"})");
  for (uint32_t i = 0; i < ResponseIdReader::kMostEvents; ++i) {
    EXPECT_TRUE(reader.seeks());
    reader.Read(delta);
  }
  EXPECT_FALSE(reader.seeks());
  reader.Read(EventOf(R"({"response":{"id":"resp_1"}})"));
  EXPECT_FALSE(reader.of_stream());
}

TEST(ResponseId, InvalidEventsHaveNone) {
  ResponseIdReader reader;
  reader.Read(EventOf("[DONE]") + EventOf("{\"response\":") + EventOf(R"({"response":"id"})") +
              EventOf(R"({"response":{"id":[1]}})"));
  EXPECT_FALSE(reader.of_stream());
}

}  // namespace
}  // namespace fathom
