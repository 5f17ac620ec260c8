#include "codec/prometheus_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fathom {
namespace {

using ::testing::Optional;

std::vector<PrometheusSample> ReadAll(std::string_view page, uint64_t skipped = 0) {
  PrometheusReader reader(page);
  std::vector<PrometheusSample> samples;
  while (const auto sample = reader.Next()) samples.push_back(*sample);
  EXPECT_EQ(reader.skipped(), skipped) << page;
  return samples;
}

std::optional<std::string> LabelOf(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto value = sample.Label(name, scratch);
  return value ? std::optional(std::string(*value)) : std::nullopt;
}

TEST(PrometheusReader, ReadsNamesLabelsAndValuesInTheOrderOfThePage) {
  const auto samples = ReadAll(
      "# HELP vllm:num_requests_running Number of requests\n"
      "# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"tiny\"} 3.0\n"
      "\n"
      "process_max_fds 20000\n");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].name(), "vllm:num_requests_running");
  EXPECT_EQ(samples[0].value(), 3);
  EXPECT_EQ(samples[0].labels(), R"(engine="1",model_name="tiny")");
  EXPECT_THAT(LabelOf(samples[0], "engine"), Optional(std::string("1")));
  EXPECT_THAT(LabelOf(samples[0], "model_name"), Optional(std::string("tiny")));
  EXPECT_EQ(LabelOf(samples[0], "model"), std::nullopt);
  EXPECT_EQ(samples[1].name(), "process_max_fds");
  EXPECT_EQ(samples[1].labels(), "");
  EXPECT_EQ(LabelOf(samples[1], "engine"), std::nullopt);
}

TEST(PrometheusReader, ReadsALastLineWithoutNewlineAndLinesThatEndAsInWindows) {
  const auto samples = ReadAll("a 1\r\nb 2\r\nc 3");
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1].value(), 2);
  EXPECT_EQ(samples[2].value(), 3);
}

TEST(PrometheusReader, ReadsEveryKindOfNumber) {
  const auto samples = ReadAll("a -1.5e3\nb +2\nc +Inf\nd -Inf\ne NaN\nf 1e-9\ng 1.7947075e+09\n");
  ASSERT_EQ(samples.size(), 7u);
  EXPECT_EQ(samples[0].value(), -1500);
  EXPECT_EQ(samples[1].value(), 2);
  EXPECT_EQ(samples[2].value(), INFINITY);
  EXPECT_EQ(samples[3].value(), -INFINITY);
  EXPECT_TRUE(std::isnan(samples[4].value()));
  EXPECT_EQ(samples[5].value(), 1e-9);
  EXPECT_EQ(samples[6].value(), 1794707500);
}

TEST(PrometheusReader, PassesOverTimestampsAndExemplars) {
  const auto samples = ReadAll(
      "a 1 1395066363000\n"
      "b{x=\"y\"} 2 -5\n"
      "c_bucket{le=\"1\"} 3 # {trace_id=\"abc\"} 0.67 1520879607.789\n"
      "d 4 1520879607.789 # {} 1\n"
      "# EOF\n");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].value(), 1);
  EXPECT_EQ(samples[1].value(), 2);
  EXPECT_EQ(samples[2].value(), 3);
  EXPECT_EQ(samples[3].value(), 4);
}

TEST(PrometheusReader, TakesBlanksWhereverTheyAreHarmless) {
  const auto samples = ReadAll(
      "  a  1  \n"
      "b { x = \"1\" , y=\"2\" , }\t2\n"
      "c{}3\n"
      "d {} 4\n");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_THAT(LabelOf(samples[1], "x"), Optional(std::string("1")));
  EXPECT_THAT(LabelOf(samples[1], "y"), Optional(std::string("2")));
  EXPECT_EQ(samples[2].value(), 3);
}

TEST(PrometheusReader, SkipsAndCountsLinesThatMakeNoSenseAndReadsThoseAroundThem) {
  const char* const bad[] = {
      "a",        "a one",    "a{",       "a{x} 1",        "a{x=} 1",     "a{x=1} 1",
      "a{x=\"1}", "a{x=\"1",  "a{=\"\"}", "a{x=\"1\"}",    "a{x=\"1\"} ", "1a 1",
      "{} 1",     "a 1 2 3",  "a 1x",     "a 1 yesterday", "a{,} 1",      "a +-1",
      "a{x=\"\\", "<html> 1", "a-b 1",    "a{x=\"1\"}} 1", "a 0x",        "\x80 1"};
  for (const char* const line : bad) {
    const std::string page = std::string("before 1\n") + line + "\nafter 2\n";
    const auto samples = ReadAll(page, 1);
    ASSERT_EQ(samples.size(), 2u) << line;
    EXPECT_EQ(samples[1].name(), "after") << line;
  }
}

TEST(PrometheusReader, FindsNothingInAnEmptyPage) {
  EXPECT_TRUE(ReadAll("").empty());
  EXPECT_TRUE(ReadAll("\n\n# nothing\n").empty());
}

TEST(PrometheusSample, UndoesTheEscapesOfTheFormatAndNoOthers) {
  const auto samples = ReadAll(R"(a{path="C:\\dir",quote="say \"hi\"",line="1\n2",odd="\t"} 1)");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_THAT(LabelOf(samples[0], "path"), Optional(std::string(R"(C:\dir)")));
  EXPECT_THAT(LabelOf(samples[0], "quote"), Optional(std::string(R"(say "hi")")));
  EXPECT_THAT(LabelOf(samples[0], "line"), Optional(std::string("1\n2")));
  EXPECT_THAT(LabelOf(samples[0], "odd"), Optional(std::string(R"(\t)")));
}

TEST(PrometheusSample, IsNotFooledByLabelsInsideLabels) {
  const auto samples = ReadAll(R"(a{x="engine=\"7\",}",engine="1",engine="2"} 1)");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_THAT(LabelOf(samples[0], "engine"), Optional(std::string("1")));
}

TEST(PrometheusSample, CopiesOnlyValuesWithEscapes) {
  const std::string page = R"(a{plain="text",escaped="a\\b"} 1)";
  const auto samples = ReadAll(page);
  ASSERT_EQ(samples.size(), 1u);
  std::string scratch;
  const auto plain = samples[0].Label("plain", scratch);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->data(), page.data() + page.find("text"));
  EXPECT_EQ(scratch, "");
  const auto escaped = samples[0].Label("escaped", scratch);
  ASSERT_TRUE(escaped);
  EXPECT_EQ(escaped->data(), scratch.data());
}

}  // namespace
}  // namespace fathom
