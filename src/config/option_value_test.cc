#include "config/option_value.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::string_view kWords[] = {"vllm", "sglang"};

Option OfType(OptionType type, OptionRange range = {}) {
  Option option{.name = "x", .type = type, .fallback = ""};
  option.range = range;
  option.choices = kWords;
  return option;
}

template <class T>
T Parsed(const Option& option, std::string_view text) {
  const auto value = ParseValue(option, text);
  if (value.has_value()) return std::get<T>(*value);
  ADD_FAILURE() << text << ": " << value.error().what;
  return T();
}

std::string ValueProblem(const Option& option, std::string_view text) {
  const auto value = ParseValue(option, text);
  return value.has_value() ? "accepted" : value.error().what;
}

TEST(Duration, IsReadInEveryUnit) {
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("5s"), seconds(5));
  EXPECT_EQ(ParseDuration("2m"), minutes(2));
  EXPECT_EQ(ParseDuration("1h"), hours(1));
  EXPECT_EQ(ParseDuration("1d"), hours(24));
  EXPECT_EQ(ParseDuration("7ns"), nanoseconds(7));
  EXPECT_EQ(ParseDuration("1.5s"), milliseconds(1500));
}

TEST(Duration, CountsSecondsWithoutAUnit) {
  EXPECT_EQ(ParseDuration("0.25"), milliseconds(250));
  EXPECT_EQ(ParseDuration("30"), seconds(30));
  EXPECT_EQ(ParseDuration("0"), seconds(0));
}

TEST(Duration, RefusesWhatIsNoTime) {
  for (const auto* text : {"", "s", "5 s", "-5s", "5sec", "1h30m", "1e3", "nan", "inf", "1.2.3",
                           "99999999999999999999h"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Bytes, AreReadInEveryUnit) {
  EXPECT_EQ(ParseBytes("1024"), 1024u);
  EXPECT_EQ(ParseBytes("7B"), 7u);
  EXPECT_EQ(ParseBytes("64KiB"), 65536u);
  EXPECT_EQ(ParseBytes("64MiB"), 64u << 20);
  EXPECT_EQ(ParseBytes("64MB"), 64'000'000u);
  EXPECT_EQ(ParseBytes("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(ParseBytes("2gb"), 2'000'000'000u);
}

TEST(Bytes, RefuseWhatIsNoSize) {
  for (const auto* text : {"", "MiB", "-1", "1.5GiB", "64 MiB", "64M", "0x10",
                           "18446744073709551616", "99999999999TiB"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(OptionValue, ReadsIntegersWithinTheirBounds) {
  const Option port = OfType(OptionType::kInteger, {0, 65535});
  EXPECT_EQ(Parsed<int64_t>(port, "0"), 0);
  EXPECT_EQ(Parsed<int64_t>(port, "65535"), 65535);
  EXPECT_EQ(ValueProblem(port, "65536"), "must be between 0 and 65535");
  EXPECT_EQ(ValueProblem(port, "-1"), "must be between 0 and 65535");
  EXPECT_EQ(ValueProblem(port, "99999999999999999999"), "must be between 0 and 65535");
  for (const auto* text : {"", "http", "80.5", "80 ", "+80", "0x50"}) {
    EXPECT_EQ(ValueProblem(port, text), "must be a whole number") << text;
  }
}

TEST(OptionValue, SaysOrMoreWhereThereIsNoUpperBound) {
  EXPECT_EQ(ValueProblem(OfType(OptionType::kInteger, {.min = 1}), "0"), "must be 1 or more");
}

TEST(OptionValue, ReadsNumbersWithinTheirBounds) {
  const Option rate = OfType(OptionType::kNumber, {0, 1});
  EXPECT_DOUBLE_EQ(Parsed<double>(rate, "0.2"), 0.2);
  EXPECT_EQ(ValueProblem(rate, "1.01"), "must be between 0 and 1");
  EXPECT_EQ(ValueProblem(rate, "nan"), "must be a number");
  EXPECT_EQ(ValueProblem(rate, "some"), "must be a number");
}

TEST(OptionValue, BoundsDurationsAndSizesInTheirOwnUnits) {
  EXPECT_EQ(ValueProblem(OfType(OptionType::kDuration, {0.05, 3600}), "49ms"),
            "must be between 50ms and 1h");
  EXPECT_EQ(ValueProblem(OfType(OptionType::kDuration), "soon"),
            "must be a time such as 250ms, 5s, 2m or 1h");
  EXPECT_EQ(ValueProblem(OfType(OptionType::kBytes, {1024, 1048576}), "1023"),
            "must be between 1KiB and 1MiB");
  EXPECT_EQ(ValueProblem(OfType(OptionType::kBytes), "big"),
            "must be a size such as 1048576, 64MB or 64MiB");
}

TEST(OptionValue, ReadsTheWordsForYesAndNo) {
  const Option flag = OfType(OptionType::kFlag);
  for (const auto* text : {"true", "TRUE", "yes", "on", "1"}) EXPECT_TRUE(Parsed<bool>(flag, text));
  for (const auto* text : {"false", "no", "Off", "0"}) EXPECT_FALSE(Parsed<bool>(flag, text));
  EXPECT_EQ(ValueProblem(flag, "maybe"), "must be true or false");
  EXPECT_EQ(ValueProblem(flag, ""), "must be true or false");
}

TEST(OptionValue, TakesAChoiceInAnyCaseAndKeepsTheTablesSpelling) {
  const Option engine = OfType(OptionType::kChoice);
  EXPECT_EQ(Parsed<std::string>(engine, "VLLM"), "vllm");
  EXPECT_EQ(ValueProblem(engine, "vlm"), "is not one of vllm, sglang; did you mean vllm?");
  EXPECT_EQ(ValueProblem(engine, "llamacpp"), "is not one of vllm, sglang");
}

TEST(OptionValue, SplitsAListAtCommasAndSpaces) {
  EXPECT_EQ(Parsed<std::vector<std::string>>(OfType(OptionType::kList), "a,b c, d"),
            (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_TRUE(Parsed<std::vector<std::string>>(OfType(OptionType::kList), "").empty());
}

TEST(OptionValue, RefusesAnEmptySecretBecauseItWouldOpenTheDoor) {
  const auto problem = "is empty; leave it out if no key is wanted";
  EXPECT_EQ(ValueProblem(OfType(OptionType::kSecret), ""), problem);
  EXPECT_EQ(ValueProblem(OfType(OptionType::kSecretList), " , "), problem);
}

TEST(OptionValue, IsWrittenInTheLargestUnitThatFits) {
  const Option time = OfType(OptionType::kDuration);
  for (const auto* text : {"10m", "75s", "1h", "250ms", "1d", "0s", "3us", "5ns"}) {
    EXPECT_EQ(FormatValue(time, Parsed<Duration>(time, text)), text);
  }
  EXPECT_EQ(FormatValue(time, Parsed<Duration>(time, "600s")), "10m");
  const Option size = OfType(OptionType::kBytes);
  for (const auto* text : {"192MiB", "64MB", "1000001", "0", "64GiB"}) {
    EXPECT_EQ(FormatValue(size, Parsed<uint64_t>(size, text)), text);
  }
}

TEST(OptionValue, NeverShowsASecret) {
  EXPECT_EQ(FormatValue(OfType(OptionType::kSecret), std::string("hush")), "(set)");
  EXPECT_EQ(FormatValue(OfType(OptionType::kSecret), std::string()), "(unset)");
  EXPECT_EQ(FormatValue(OfType(OptionType::kSecretList), std::vector<std::string>{"hush"}),
            "(set)");
  EXPECT_EQ(FormatValue(OfType(OptionType::kSecretList), std::vector<std::string>{}), "(unset)");
}

TEST(OptionValue, DescribesWhatIsAllowed) {
  EXPECT_EQ(FormatRange(OfType(OptionType::kInteger, {0, 65535})), "0 to 65535");
  EXPECT_EQ(FormatRange(OfType(OptionType::kInteger, {.min = 1})), "1 or more");
  EXPECT_EQ(FormatRange(OfType(OptionType::kDuration, {0.05, 3600})), "50ms to 1h");
  EXPECT_EQ(FormatRange(OfType(OptionType::kChoice)), "vllm, sglang");
  EXPECT_EQ(FormatRange(OfType(OptionType::kText)), "");
}

}  // namespace
}  // namespace fathom
