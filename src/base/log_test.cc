#include "base/log.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <string>

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr std::string_view kTime = "2026-01-02T03:04:05.678Z";

std::string Text(std::string_view message, Log::Fields fields) {
  return FormatRecord(LogFormat::kText, kTime, LogLevel::kWarn, message, fields);
}

std::string JsonText(std::string_view message, Log::Fields fields) {
  return FormatRecord(LogFormat::kJson, kTime, LogLevel::kError, message, fields);
}

// The output of a log with these settings.
std::string Written(LogLevel level, LogFormat format, void (*use)(Log&)) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  Log log(ends[1], level, format);
  use(log);
  close(ends[1]);
  std::array<char, 4096> buffer{};
  const ssize_t n = read(ends[0], buffer.data(), buffer.size());
  close(ends[0]);
  return {buffer.data(), static_cast<size_t>(n)};
}

TEST(LogRecord, IsTimeLevelMessageAndFieldsInText) {
  EXPECT_EQ(Text("worker left", {{"worker_id", 7u}, {"ratio", 0.25}, {"ok", true}, {"delta", -3}}),
            "2026-01-02T03:04:05.678Z WARN  worker left worker_id=7 ratio=0.25 ok=true delta=-3");
}

TEST(LogRecord, QuotesTextValuesThatWouldNotReadBack) {
  EXPECT_THAT(Text("m", {{"url", "http://a:1/b"}}), EndsWith(" url=http://a:1/b"));
  EXPECT_THAT(Text("m", {{"why", "two words"}}), EndsWith(" why=\"two words\""));
  EXPECT_THAT(Text("m", {{"why", ""}}), EndsWith(" why=\"\""));
  EXPECT_THAT(Text("m", {{"why", "a=b"}}), EndsWith(" why=\"a=b\""));
  EXPECT_THAT(Text("m", {{"why", "say \"x\"\n"}}), EndsWith(" why=\"say \\\"x\\\"\\n\""));
}

TEST(LogRecord, KeepsTheLinesOfATextMessage) {
  EXPECT_EQ(Text("one\n  two\n  three", {}), "2026-01-02T03:04:05.678Z WARN  one\n  two\n  three");
}

TEST(LogRecord, IsOneObjectInJson) {
  EXPECT_EQ(JsonText("left", {{"worker_id", 7u}, {"ratio", 0.25}, {"ok", false}, {"why", "a b"}}),
            "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"ERROR\",\"msg\":\"left\","
            "\"worker_id\":7,\"ratio\":0.25,\"ok\":false,\"why\":\"a b\"}");
}

TEST(LogRecord, ShowsNothingThatATerminalObeys) {
  for (const char* value : {"a\xc2\x9b"
                            "31m",
                            "a\x9b"
                            "31m",
                            "a\x7f", "a\x1b[31m", "\xe2\x80\xae"}) {
    for (const std::string& record :
         {FormatRecord(LogFormat::kText, "t", LogLevel::kInfo, "m", {{"model", value}}),
          FormatRecord(LogFormat::kJson, "t", LogLevel::kInfo, "m", {{"model", value}})}) {
      EXPECT_THAT(record, Not(HasSubstr("\xc2\x9b")));
      EXPECT_THAT(record, Not(HasSubstr("\xe2\x80\xae")));
      for (const char* raw : {"\x9b", "\x7f", "\x1b"}) EXPECT_THAT(record, Not(HasSubstr(raw)));
    }
  }
  EXPECT_EQ(FormatRecord(LogFormat::kText, "t", LogLevel::kError, "a '\x1b'\n  b \xc2\x9b", {}),
            "t ERROR a '\\u001b'\n  b \\u009b")
      << "a message keeps its lines";
  EXPECT_EQ(FormatRecord(LogFormat::kText, "t", LogLevel::kInfo, "m",
                         {{"model",
                           "gr\xc3\xb6\xc3\x9f"
                           "e"}}),
            "t INFO  m model=\"gr\xc3\xb6\xc3\x9f"
            "e\"");
}

TEST(LogRecord, IsOneLineInJsonWhateverTheMessage) {
  EXPECT_THAT(
      JsonText("one\ntwo", {{"why", "three\nfour"}}),
      AllOf(HasSubstr("\"one\\ntwo\""), HasSubstr("\"three\\nfour\""), Not(HasSubstr("\n"))));
}

TEST(LogRecord, HasNoInfinityInJson) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(JsonText("m", {{"rate", infinity}}), EndsWith("\"rate\":null}"));
}

TEST(Log, WritesOneStampedLinePerRecord) {
  const std::string out = Written(LogLevel::kInfo, LogFormat::kText, [](Log& log) {
    log.Info("first", {{"n", 1}});
    log.Error("second");
  });
  EXPECT_THAT(out, MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9]+Z INFO  first n=1\n"
                                "[0-9-]+T[0-9:]+\\.[0-9]+Z ERROR second\n"));
}

TEST(Log, LeavesOutWhatIsBelowItsLevel) {
  const std::string out = Written(LogLevel::kWarn, LogFormat::kJson, [](Log& log) {
    log.Debug("debug");
    log.Info("info");
    log.Warn("warn");
  });
  EXPECT_THAT(out, AllOf(HasSubstr("warn"), Not(HasSubstr("info")), Not(HasSubstr("debug"))));
  EXPECT_EQ(Written(LogLevel::kOff, LogFormat::kText, [](Log& log) { log.Error("e"); }), "");
}

TEST(LogLevel, IsParsedFromItsName) {
  EXPECT_EQ(ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("off"), LogLevel::kOff);
  EXPECT_EQ(ParseLogLevel("INFO"), std::nullopt);
  EXPECT_EQ(ParseLogLevel(""), std::nullopt);
}

}  // namespace
}  // namespace fathom
