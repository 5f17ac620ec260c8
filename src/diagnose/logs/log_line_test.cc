#include "diagnose/logs/log_line.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

struct Reading {
  explicit Reading(std::string_view text) { line.Read(text); }
  std::string When() const { return line.time() ? ToText(*line.time()) : "never"; }
  LogLine line;
};

TEST(LogLine, FindsFieldsInText) {
  const Reading r(
      R"(2026-02-16T14:38:53Z  WARN x: Lost worker_id="77" dp_rank=3, free=Some(5) why)");
  EXPECT_EQ(r.line.Text("worker_id", 64), "77");
  EXPECT_EQ(r.line.Number("worker_id"), 77);
  EXPECT_EQ(r.line.Number("dp_rank"), 3);
  EXPECT_EQ(r.line.Text("free", 64), "Some(5");
  EXPECT_EQ(r.line.Text("rank", 64), "");
  EXPECT_FALSE(r.line.Number("free"));
  EXPECT_EQ(r.When(), "2026-02-16T14:38:53.000Z");
}

TEST(LogLine, TakesNoFieldOutOfAQuotedValue) {
  const Reading r(R"(doubted evidence="it says \"fix=none\" fix=this" fix="use = signs")");
  EXPECT_EQ(r.line.Text("fix", 64), "use = signs");
  EXPECT_EQ(r.line.Text("evidence", 64), R"(it says "fix=none" fix=this)");
}

TEST(LogLine, ReadsTheMembersOfAnObject) {
  const Reading r(
      R"({"time":"2026-08-30T09:12:04.118220Z","level":"INFO","message":"Selected worker","id":"a\"b","n":12.5})");
  EXPECT_EQ(r.line.message(), "Selected worker");
  EXPECT_EQ(r.line.Text("id", 64), "a\"b");
  EXPECT_EQ(r.line.Real("n"), 12.5);
  EXPECT_EQ(r.When(), "2026-08-30T09:12:04.118Z");
}

TEST(LogLine, ReadsAnObjectWhoseFieldsAreNested) {
  const Reading r(
      R"({"timestamp":"2026-08-30T09:12:04Z","fields":{"message":"hello","size":16},"target":"t"})");
  EXPECT_EQ(r.line.message(), "hello");
  EXPECT_EQ(r.line.Number("size"), 16);
}

TEST(LogLine, UnwrapsWhatDockerAndJournaldCarry) {
  const Reading docker(
      R"({"log":"A rank worker_id=5\n","stream":"stderr","time":"2026-08-30T09:12:09.5Z"})");
  EXPECT_EQ(docker.line.message(), "A rank worker_id=5");
  EXPECT_EQ(docker.line.Number("worker_id"), 5);
  EXPECT_EQ(docker.When(), "2026-08-30T09:12:09.500Z");

  const Reading nested(
      R"({"log":"{\"ts\":\"2026-08-30T09:00:00Z\",\"msg\":\"hi\",\"n\":7}\n","time":"2026-08-30T09:12:09Z"})");
  EXPECT_EQ(nested.line.message(), "hi");
  EXPECT_EQ(nested.line.Number("n"), 7);
  EXPECT_EQ(nested.When(), "2026-08-30T09:00:00.000Z");

  const Reading journal(R"({"MESSAGE":"2026-08-30T09:12:09Z INFO x","_PID":"7"})");
  EXPECT_EQ(journal.line.message(), "2026-08-30T09:12:09Z INFO x");
}

TEST(LogLine, UnwrapsOnce) {
  const Reading r(R"({"log":"{\"log\":\"{\\\"msg\\\":\\\"deep\\\"}\"}"})");
  EXPECT_EQ(r.line.message(), R"({"log":"{\"msg\":\"deep\"}"})");
}

TEST(LogLine, ReadsAnObjectBehindAPrefix) {
  const Reading r(R"([pod/frontend-0/main] {"ts":"2026-08-30T09:00:00Z","msg":"hi"})");
  EXPECT_EQ(r.line.message(), "hi");
  const Reading stamped(R"(2026-08-30T09:00:00Z frontend-1  | {"msg":"hi"})");
  EXPECT_EQ(stamped.line.message(), "hi");
  EXPECT_EQ(stamped.When(), "2026-08-30T09:00:00.000Z");
}

TEST(LogLine, IsTextWhereBracesHoldNoMessage) {
  for (const std::string_view text : {R"(config {"publisher":"zmq"})", "{", "{}", R"({"msg":7})",
                                      R"({"msg":"torn})", "a {b} c", R"({"msg":"\ud800"})"}) {
    EXPECT_EQ(Reading(text).line.message(), text);
  }
}

TEST(LogLine, ForgetsTheLineBefore) {
  LogLine line;
  line.Read(R"({"time":"2026-08-30T09:12:04Z","message":"one","n":1})");
  line.Read("two");
  EXPECT_EQ(line.message(), "two");
  EXPECT_FALSE(line.time());
  EXPECT_FALSE(line.Number("n"));
}

TEST(LogLine, TakesColoursOut) {
  const Reading text("\x1b[2m2026-08-30T09:12:04Z\x1b[0m \x1b[3mid\x1b[0m\x1b[2m=\x1b[0m5");
  EXPECT_EQ(text.line.message(), "2026-08-30T09:12:04Z id=5");
  EXPECT_EQ(Reading("{\"msg\":\"\\u001b[1;32mhi\\u001b[0m\"}").line.message(), "hi");
  EXPECT_EQ(Reading("broken \x1b[12").line.message(), "broken");
}

TEST(LogLine, CutsNoLetterInTwo) {
  EXPECT_EQ(Reading("fix=\"a\u00e9b\"").line.Text("fix", 2), "a");
  EXPECT_EQ(Reading("fix=\"a\u00e9b\"").line.Text("fix", 3), "a\u00e9");
}

TEST(LogLine, ReadsNumbersAsEnginesWriteThem) {
  EXPECT_EQ(NumberAfter("GPU KV cache size: 1,470,768 tokens", "size: "), 1470768);
  EXPECT_EQ(RealAfter("per request: 57.46x", "request: "), 57.46);
  EXPECT_EQ(NumberAfter("#new-token: 8192, #cached-token: 27", "#new-token: "), 8192);
  EXPECT_FALSE(NumberAfter("usage: nan", "usage: "));
  EXPECT_FALSE(NumberAfter("usage: -5", "usage: "));
  EXPECT_FALSE(NumberAfter("usage: 99999999999999999999999", "usage: "));
  EXPECT_FALSE(NumberAfter("usage 5", "usage: "));
  EXPECT_EQ(SizeAfter("size 5000000", "size "), 0U);
}

}  // namespace
}  // namespace fathom
