#include "diagnose/doctor/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/peer_text.h"
#include "diagnose/doctor/engine_counts.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Shown, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(Shown("plain \xc3\xbc"), "plain \xc3\xbc");
  EXPECT_EQ(Shown("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
  EXPECT_EQ(Shown("\xc2\x9b[2J"), "??[2J");  // CSI in one character
}

TEST(Shown, CutsBetweenCharacters) {
  EXPECT_EQ(Shown("abcdef", 3), "abc...");
  EXPECT_EQ(Shown("ab\xc3\xbc\xc3\xbc", 3), "ab...");
}

TEST(MetricsPage, AddsUpOverLabels) {
  const MetricsPage page(
      "# HELP a x\n"
      "a{rank=\"0\",why=\"x\"} 1\n"
      "b 7\n"
      "a{rank=\"1\",why=\"y\"} 2.5\n"
      "a{rank=\"2\",why=\"x\"} 4\n");
  EXPECT_EQ(page.Sum("a"), 7.5);
  EXPECT_EQ(page.Sum("a", "why", "x"), 5);
  EXPECT_EQ(page.Sum("c"), std::nullopt);
  EXPECT_EQ(page.Largest("a"), 4);
  EXPECT_THAT(page.SumBy("a", "why"), ElementsAre(Pair("x", 5), Pair("y", 2.5)));
  EXPECT_EQ(page.Label("a", "rank"), "0");
  EXPECT_TRUE(page.HasPrefix("b"));
  EXPECT_FALSE(page.HasPrefix("bb"));
}

TEST(MetricsPage, ReadsWhatAHistogramSaw) {
  const MetricsPage page(
      "t_bucket{le=\"1\"} 3\nt_sum{m=\"a\"} 1.5\nt_count{m=\"a\"} 3\n"
      "t_sum{m=\"b\"} 10\nt_count{m=\"b\"} 1\n");
  EXPECT_EQ(page.Histogram("t"), (Observations{.sum = 11.5, .count = 4}));
  EXPECT_EQ(page.Histogram("t", "m", "a").Mean(), 0.5);
  EXPECT_EQ(page.Histogram("u").Mean(), 0);
}

TEST(MetricsPage, MakesNothingOfGarbage) {
  for (const char* text : {"", "\n\n", "{}", "<html>", "a{", "a{x=\"} 1", "a NaN", "a +Inf"}) {
    const MetricsPage page{std::string(text)};
    EXPECT_TRUE(page.empty()) << text;
    EXPECT_EQ(page.Sum("a"), std::nullopt);
    EXPECT_THAT(page.SumBy("a", "x"), IsEmpty());
  }
}

TEST(MetricsPage, BoundsHowManyLabelsItTellsApart) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "a{x=\"" + std::to_string(i) + "\"} 1\n";
  const MetricsPage page(std::move(text));
  EXPECT_EQ(page.SumBy("a", "x").size(), MetricsPage::kMaxLabels);
  EXPECT_EQ(page.Sum("a"), 2000);
}

TEST(EngineCounts, ReadsVllm) {
  const MetricsPage page(
      "vllm:prefix_cache_queries_total{engine=\"0\"} 100\n"
      "vllm:prefix_cache_queries_total{engine=\"1\"} 300\n"
      "vllm:prefix_cache_hits_total{engine=\"0\"} 100\n"
      "vllm:num_preemptions_total{engine=\"0\"} 3\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
      "vllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n"
      "vllm:time_to_first_token_seconds_sum 5\nvllm:time_to_first_token_seconds_count 10\n"
      "vllm:cache_config_info{gpu_memory_utilization=\"0.92\",cache_dtype=\"fp8\"} 1\n");
  const EngineCounts counts = ReadCounts(page);
  EXPECT_EQ(counts.HitRate(), 0.25);
  EXPECT_EQ(counts.preemptions, 3);
  EXPECT_EQ(counts.first_token.Mean(), 0.5);
  EXPECT_EQ(counts.evicted_tokens, std::nullopt);
  const EngineLevels levels = ReadLevels(page);
  EXPECT_EQ(levels.cache_usage, 0.75);
  EXPECT_EQ(levels.memory_fraction, "0.92");
  EXPECT_EQ(levels.cache_dtype, "fp8");
}

TEST(EngineCounts, ReadsSglangAndTensorRt) {
  const EngineCounts sglang = ReadCounts(
      MetricsPage("sglang:prompt_tokens_total 200\nsglang:cached_tokens_total 50\n"
                  "sglang:evicted_tokens_total 7\nsglang:num_retracted_requests_total 2\n"));
  EXPECT_EQ(sglang.HitRate(), 0.25);
  EXPECT_EQ(sglang.evicted_tokens, 7);
  EXPECT_EQ(sglang.preemptions, 2);
  const EngineCounts trtllm = ReadCounts(MetricsPage(
      "trtllm_kv_cache_reused_blocks_total 30\ntrtllm_kv_cache_missed_blocks_total 10\n"));
  EXPECT_EQ(trtllm.HitRate(), 0.75);
}

TEST(EngineCounts, CountsWhatCameSince) {
  EngineCounts before;
  before.preemptions = 10;
  before.first_token = {.sum = 1, .count = 10};
  EngineCounts now = before;
  now.preemptions = 12;
  now.generated_tokens = 5;  // it was not there before
  now.first_token = {.sum = 4, .count = 11};
  const EngineCounts since = now.Since(before);
  EXPECT_EQ(since.preemptions, 2);
  EXPECT_EQ(since.generated_tokens, 5);
  EXPECT_EQ(since.prefix_hits, std::nullopt);
  EXPECT_EQ(since.first_token, (Observations{.sum = 3, .count = 1}));
}

TEST(EngineCounts, CountsFromZeroWhereTheEngineHasRestarted) {
  EngineCounts before;
  before.preemptions = 10;
  EngineCounts now;
  now.preemptions = 4;
  EXPECT_EQ(now.Since(before).preemptions, 4);
}

}  // namespace
}  // namespace fathom
