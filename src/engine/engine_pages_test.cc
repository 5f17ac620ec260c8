#include "engine/engine_pages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

// --- vLLM. The answer of vLLM 0.32 with two data-parallel ranks of 33 blocks, shortened.

constexpr std::string_view kVllmTwoRanks =
    R"(# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
vllm:num_requests_running{engine="1",model_name="tiny"} 0.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 5.0
vllm:num_requests_waiting{engine="1",model_name="tiny"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.75
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.0
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 12345.0
vllm:cache_config_info{_block_size_resolved="True",block_size="32",cache_dtype="auto",effective_attention_block_size="32",enable_prefix_caching="True",engine="0",hash_block_size="None",kv_cache_max_concurrency="1.03",kv_cache_size_tokens="1056",num_cpu_blocks="None",num_gpu_blocks="66",num_gpu_blocks_override="33",sliding_window="None",user_specified_block_size="True"} 1.0
vllm:cache_config_info{_block_size_resolved="True",block_size="32",cache_dtype="auto",effective_attention_block_size="32",enable_prefix_caching="True",engine="1",hash_block_size="None",kv_cache_max_concurrency="1.03",kv_cache_size_tokens="1056",num_cpu_blocks="None",num_gpu_blocks="66",num_gpu_blocks_override="33",sliding_window="None",user_specified_block_size="True"} 1.0
)";

TEST(ReadVllmMetrics, ReadsWhatARunningVllmSays) {
  const auto report = ReadVllmMetrics(kVllmTwoRanks);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->engine, EngineKind::kVllm);
  EXPECT_EQ(report->ranks, 2u);
  EXPECT_EQ(report->block_size, 32u);
  EXPECT_EQ(report->num_blocks, 33u) << "of one rank, though the label has those of both";
  EXPECT_EQ(report->kv_tokens, 1056u);
  EXPECT_THAT(report->prefix_caching, Optional(true));
  EXPECT_EQ(report->max_running, 0u) << "it says no limits";
  EXPECT_EQ(report->batch_tokens, 0u);
  EXPECT_THAT(
      report->loads,
      ElementsAre(RankLoadReport{.rank = 0, .running = 2, .waiting = 5, .cache_usage = 0.75},
                  RankLoadReport{.rank = 1}));
}

std::string CacheInfo(std::string_view labels) {
  return fmt::format("vllm:cache_config_info{{{}}} 1.0\n", labels);
}

// The number of blocks is the sum of all ranks, in every rank's label.
TEST(ReadVllmMetrics, SharesTheBlocksAmongTheRanksOfVersionsThatDoNotCountTokens) {
  const auto report =
      ReadVllmMetrics(CacheInfo(R"(block_size="16",num_gpu_blocks="4000",engine="0")") +
                      CacheInfo(R"(block_size="16",num_gpu_blocks="4000",engine="1")"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks, 2u);
  EXPECT_EQ(report->num_blocks, 2000u);
  EXPECT_EQ(report->kv_tokens, 2000u * 16);
}

TEST(ReadVllmMetrics, BelievesTheTokensOfAHybridModelRatherThanItsBlocks) {
  const auto report = ReadVllmMetrics(
      CacheInfo(R"(block_size="32",kv_cache_size_tokens="819",num_gpu_blocks="80",engine="0")"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kv_tokens, 819u);
  EXPECT_EQ(report->num_blocks, 80u);
}

TEST(ReadVllmMetrics, LeavesUnknownWhatPythonDoesNotKnow) {
  const auto report = ReadVllmMetrics(CacheInfo(
      R"(block_size="None",num_gpu_blocks="None",kv_cache_size_tokens="None",enable_prefix_caching="None")"));
  ASSERT_TRUE(report);
  EXPECT_EQ(*report, (EngineReport{.engine = EngineKind::kVllm, .ranks = 1}));
}

TEST(ReadVllmMetrics, DoesNotBelieveABlockSizeThatIsNotDecidedYet) {
  const auto report = ReadVllmMetrics(
      CacheInfo(R"(_block_size_resolved="False",block_size="16",num_gpu_blocks="10")"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 0u);
  EXPECT_EQ(report->kv_tokens, 0u);
}

TEST(ReadVllmMetrics, IsNotMisledByTheOneRankWhoseLabelsAreNone) {
  const auto report =
      ReadVllmMetrics(CacheInfo(R"(block_size="16",num_gpu_blocks="4000",engine="0")") +
                      CacheInfo(R"(block_size="None",num_gpu_blocks="None",engine="1")"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 16u);
  EXPECT_EQ(report->num_blocks, 2000u);
}

TEST(ReadVllmMetrics, LeavesUnknownWhatALabelDoesNotHave) {
  const auto report = ReadVllmMetrics(CacheInfo(R"(num_gpu_blocks="4000",engine="0")"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 0u);
  EXPECT_EQ(report->event_block_size(), 0u);
  EXPECT_EQ(report->num_blocks, 4000u);
  EXPECT_EQ(report->kv_tokens, 0u);
}

// As in the Rust front end.
TEST(ReadVllmMetrics, ReportsTheLoadOfAnEngineThatDoesNotDescribeItsCache) {
  const auto report = ReadVllmMetrics(
      "vllm:num_requests_running{model_name=\"m\"} 7\n"
      "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.5\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 0u);
  EXPECT_EQ(report->prefix_caching, std::nullopt);
  EXPECT_THAT(report->loads, ElementsAre(RankLoadReport{.running = 7, .cache_usage = 0.5}));
}

// A server per rank: the only rank it has is not number 0.
TEST(ReadVllmMetrics, CountsRanksByHowManyThereAreAndNotByTheirNumbers) {
  const auto report = ReadVllmMetrics("vllm:num_requests_running{engine=\"3\"} 1\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks, 1u);
  EXPECT_THAT(report->loads, ElementsAre(RankLoadReport{.rank = 3, .running = 1}));
}

// --disable-log-stats.
TEST(ReadVllmMetrics, SeesNoVllmInAPageWithoutItsLines) {
  EXPECT_EQ(ReadVllmMetrics("process_start_time_seconds 1.79e+09\n"), std::nullopt);
  EXPECT_EQ(ReadVllmMetrics(""), std::nullopt);
  EXPECT_EQ(ReadVllmMetrics("<html>vllm:</html>"), std::nullopt);
}

TEST(ReadVllmMetrics, SurvivesNumbersThatMakeNoSense) {
  const auto report = ReadVllmMetrics(
      "vllm:num_requests_running{engine=\"0\"} NaN\n"
      "vllm:num_requests_waiting{engine=\"0\"} -3\n"
      "vllm:num_requests_running{engine=\"1\"} 1e300\n"
      "vllm:num_requests_running{engine=\"2\"} +Inf\n"
      "vllm:kv_cache_usage_perc{engine=\"2\"} 7\n"
      "vllm:num_requests_running{engine=\"-1\"} 1\n"
      "vllm:num_requests_running{engine=\"1024\"} 1\n"
      "vllm:num_requests_running{engine=\"99999999999999999999\"} 1\n" +
      CacheInfo(R"(block_size="18446744073709551615",num_gpu_blocks="18446744073709551615")"));
  ASSERT_TRUE(report);
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(report->block_size, 0u);
  EXPECT_EQ(report->num_blocks, 0u);
  EXPECT_EQ(report->kv_tokens, 0u);
  EXPECT_THAT(report->loads,
              ElementsAre(RankLoadReport{.rank = 1, .running = kMost},
                          RankLoadReport{.rank = 2, .running = kMost, .cache_usage = 1}));
}

TEST(ReadVllmMetrics, KeepsAtMostSoManyRanks) {
  std::string page;
  for (int rank = 3000; rank >= 0; --rank) {
    page += fmt::format("vllm:num_requests_running{{engine=\"{}\"}} 1\n", rank);
  }
  const auto report = ReadVllmMetrics(page);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->loads, SizeIs(EngineReport::kMaxRanks));
  EXPECT_EQ(report->ranks, EngineReport::kMaxRanks);
  EXPECT_TRUE(std::ranges::is_sorted(report->loads, {}, &RankLoadReport::rank));
}

TEST(ReadVllmServerInfo, ReadsTheLimits) {
  const auto report = ReadVllmServerInfo(
      R"({"vllm_config":{"model_config":{"model":"m","max_model_len":4096},)"
      R"("cache_config":{"block_size":128},)"
      R"("scheduler_config":{"max_num_batched_tokens":2048,"max_num_scheduled_tokens":null,)"
      R"("max_num_seqs":128}},"vllm_env":{}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->engine, EngineKind::kVllm);
  EXPECT_EQ(report->max_running, 128u);
  EXPECT_EQ(report->batch_tokens, 2048u);
  EXPECT_EQ(report->context_length, 4096u);
}

std::string ParallelConfig(std::string_view factor) {
  return fmt::format(
      R"({{"vllm_config":{{"parallel_config":{{"decode_context_parallel_size":{}}}}}}})", factor);
}

// The cache's label has the block size of one rank; events have the sum of all ranks that share it.
TEST(ReadVllmServerInfo, ReadsHowManyRanksShareAContext) {
  const auto info = ReadVllmServerInfo(ParallelConfig("4"));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->context_parallel, 4u);
  const auto metrics = ReadVllmMetrics(CacheInfo(R"(block_size="16",engine="0")"));
  ASSERT_TRUE(metrics);
  EXPECT_EQ(Joined(*metrics, *info).event_block_size(), 64u);
}

TEST(ReadVllmServerInfo, BelievesNoContextParallelismThatCannotBe) {
  for (const char* factor : {"null", "-2", "\"2\"", "5000", "18446744073709551615"}) {
    EXPECT_EQ(ReadVllmServerInfo(ParallelConfig(factor))->context_parallel, 0u) << factor;
  }
}

// With --disable-log-stats, no other page shows that it is vLLM.
TEST(ReadVllmEventSources, KnowsTheEngineByTheRanksThatItNames) {
  EXPECT_THAT(
      ReadVllmEventSources(R"({"0":{"enable_kv_cache_events":true,"endpoint":"tcp://*:5801"},)"
                           R"("1":{"enable_kv_cache_events":true,"endpoint":"tcp://*:5802"}})"),
      Optional(EngineReport{.engine = EngineKind::kVllm, .ranks = 2}));
}

TEST(ReadVllmEventSources, IsNotTakenInByOtherObjects) {
  for (const char* page : {"{}", "[]", "", "null", R"({"detail":"Not Found"})", R"({"0":1})",
                           R"({"-1":{}})", R"({"0":{},"topic":{}})", R"({"0":{})"}) {
    EXPECT_EQ(ReadVllmEventSources(page), std::nullopt) << page;
  }
  std::string many = "{";
  for (uint32_t rank = 0; rank <= EngineReport::kMaxRanks; ++rank) {
    many += fmt::format(R"({}"{}":{{}})", rank == 0 ? "" : ",", rank);
  }
  EXPECT_EQ(ReadVllmEventSources(many + "}"), std::nullopt);
}

TEST(ReadVllmServerInfo, RecognisesTheEngineByAPageItCannotRead) {
  EXPECT_THAT(ReadVllmServerInfo(R"({"vllm_config":"model='m', dtype=bf16"})"),
              Optional(EngineReport{.engine = EngineKind::kVllm}));
  EXPECT_EQ(ReadVllmServerInfo(R"({"page_size":16})"), std::nullopt);
  EXPECT_EQ(ReadVllmServerInfo("[]"), std::nullopt);
  EXPECT_EQ(ReadVllmServerInfo("nonsense"), std::nullopt);
}

// --- SGLang. The answer of SGLang 0.5.23, shortened.

TEST(ReadSglangServerInfo, ReadsWhatARunningSglangSays) {
  const auto report = ReadSglangServerInfo(
      R"({"kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5901,)"
      R"("topic":"sg","block_size":16,"dp_size":1,"replay_endpoint_port_base":5911},)"
      R"("page_size":16,"max_total_num_tokens":2048,"dp_size":1,"disable_radix_cache":false,)"
      R"("chunked_prefill_size":8192,"max_running_requests":null,"context_length":null,)"
      R"("internal_states":[{"effective_max_running_requests_per_dp":1024}],)"
      R"("version":"0.5.23","speculative_algorithm":null})");
  EXPECT_THAT(report, Optional(EngineReport{.engine = EngineKind::kSglang,
                                            .ranks = 1,
                                            .block_size = 16,
                                            .num_blocks = 128,
                                            .context_parallel = 1,
                                            .kv_tokens = 2048,
                                            .max_running = 1024,
                                            .batch_tokens = 8192,
                                            .prefix_caching = true,
                                            .context_length = 0,
                                            .loads = {}}));
}

// The events' block size is that of a page with the factor already included.
TEST(ReadSglangServerInfo, DoesNotMultiplyTheBlockSizeOfTheEventsAgain) {
  const auto report =
      ReadSglangServerInfo(R"({"page_size":16,"dcp_size":4,"kv_events":{"block_size":64}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 16u);
  EXPECT_EQ(report->context_parallel, 4u);
  EXPECT_EQ(report->event_block_size(), 64u);
  // The metrics contain only the page size.
  const auto metrics = ReadSglangMetrics("sglang:page_size 16\n");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(Joined(*metrics, *report).event_block_size(), 64u);
}

TEST(ReadSglangServerInfo, MultipliesThePageWhereNoEventsAreTold) {
  const auto report = ReadSglangServerInfo(R"({"page_size":16,"dcp_size":4,"kv_events":null})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->event_block_size(), 64u);
}

TEST(ReadSglangServerInfo, BelievesTheEventsWhereThePageDoesNotGoWithThem) {
  for (const char* page : {"null", "48", "0", "-1", "\"16\""}) {
    const auto report = ReadSglangServerInfo(
        fmt::format(R"({{"page_size":{},"dcp_size":2,"kv_events":{{"block_size":64}}}})", page));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->event_block_size(), 64u) << page;
  }
}

TEST(ReadSglangServerInfo, LeavesThePageUnknownThatIsNull) {
  const auto report = ReadSglangServerInfo(
      R"({"page_size":null,"max_total_num_tokens":4096,"kv_events":{"publisher":"zmq"}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->event_block_size(), 0u);
  EXPECT_EQ(report->num_blocks, 0u);
  EXPECT_EQ(report->kv_tokens, 4096u);
}

// If ranks share the attention, the operator's limit is the sum for all of them.
TEST(ReadSglangServerInfo, SharesTheLimitOfRequestsAmongRanksThatShareTheAttention) {
  const std::string_view with = R"({"page_size":1,"dp_size":4,"max_running_requests":256)";
  EXPECT_EQ(ReadSglangServerInfo(std::string(with) + "}")->max_running, 256u);
  EXPECT_EQ(
      ReadSglangServerInfo(std::string(with) + R"(,"enable_dp_attention":true})")->max_running,
      64u);
}

TEST(ReadSglangServerInfo, TakesAnotherLimitForAStepThatIsNotCutIntoChunks) {
  const auto report = ReadSglangServerInfo(
      R"({"page_size":1,"chunked_prefill_size":-1,"max_prefill_tokens":16384})");
  EXPECT_EQ(report->batch_tokens, 16384u);
}

TEST(ReadSglangServerInfo, SeesThatTheRadixCacheIsOff) {
  EXPECT_THAT(ReadSglangServerInfo(R"({"page_size":1,"disable_radix_cache":true})")->prefix_caching,
              Optional(false));
}

TEST(ReadSglangServerInfo, NamesTheReasoningParser) {
  const auto parser = [](std::string_view member) {
    return ReadSglangServerInfo(fmt::format(R"({{"page_size":1{}}})", member))->reasoning_parser;
  };
  EXPECT_EQ(parser(""), std::nullopt);
  EXPECT_THAT(parser(R"(,"reasoning_parser":null)"), Optional(std::string()));
  EXPECT_THAT(parser(R"(,"reasoning_parser":"qwen3")"), Optional(std::string("qwen3")));
  EXPECT_EQ(parser(fmt::format(R"(,"reasoning_parser":"{}")", std::string(100, 'x'))),
            std::nullopt);
  EXPECT_EQ(parser(R"(,"reasoning_parser":5)"), std::nullopt);
}

TEST(ReadSglangServerInfo, IsNotTakenInByThePagesOfOthers) {
  for (const char* page : {R"({"disaggregated_params":null})", R"({"vllm_config":{}})", "{}", "[]",
                           "", "null", R"("page_size")", R"({"page_size":1)"}) {
    EXPECT_EQ(ReadSglangServerInfo(page), std::nullopt) << page;
  }
}

TEST(ReadSglangLoads, ReadsEachRank) {
  const auto report = ReadSglangLoads(
      R"({"timestamp":"2026-11-15T02:39:14+00:00","version":"0.5.23","loads":[)"
      R"({"dp_rank":1,"num_running_reqs":3,"num_waiting_reqs":2,"max_total_num_tokens":2048,)"
      R"("max_running_requests":1024,"token_usage":0.5,"memory":{"token_capacity":2048}},)"
      R"({"dp_rank":0,"num_running_reqs":0,"num_waiting_reqs":0,"max_total_num_tokens":2000,)"
      R"("max_running_requests":1024,"token_usage":0.0}]})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks, 2u);
  EXPECT_EQ(report->kv_tokens, 2000u) << "the smaller one";
  EXPECT_EQ(report->max_running, 1024u);
  EXPECT_THAT(report->loads, ElementsAre(RankLoadReport{.rank = 0}, RankLoadReport{1, 3, 2, 0.5}));
}

TEST(ReadSglangLoads, IsNothingWithoutLoads) {
  for (const char* page :
       {"", "{}", R"({"loads":[]})", R"({"loads":{}})", "[]", R"({"loads":[{"dp_rank":5000}]})"}) {
    EXPECT_EQ(ReadSglangLoads(page), std::nullopt) << page;
  }
}

TEST(ReadSglangMetrics, ReadsWhatARunningSglangSays) {
  const auto report = ReadSglangMetrics(
      R"(# TYPE sglang:max_total_num_tokens gauge
sglang:max_total_num_tokens{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 2048.0
sglang:page_size{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 16.0
sglang:num_pages{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 127.0
sglang:context_len{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 32768.0
sglang:num_running_reqs{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 4.0
sglang:num_queue_reqs{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 1.0
sglang:token_usage{engine_type="unified",model_name="tiny",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.25
)");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks, 1u);
  EXPECT_EQ(report->block_size, 16u);
  EXPECT_EQ(report->num_blocks, 127u);
  EXPECT_EQ(report->kv_tokens, 2048u);
  EXPECT_EQ(report->context_length, 32768u);
  EXPECT_THAT(report->loads, ElementsAre(RankLoadReport{0, 4, 1, 0.25}));
}

TEST(ReadSglangMetrics, CountsThePagesOfVersionsThatDoNot) {
  const auto report = ReadSglangMetrics("sglang:page_size 64\nsglang:max_total_num_tokens 6400\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->num_blocks, 100u);
}

// Two data-parallel ranks of two schedulers each; all schedulers report.
TEST(ReadSglangMetrics, CountsARankOnceHoweverManySchedulersSpeakForIt) {
  std::string page;
  for (int tp = 0; tp < 4; ++tp) {
    page +=
        fmt::format("sglang:num_running_reqs{{tp_rank=\"{}\",pp_rank=\"0\",dp_rank=\"{}\"}} {}\n",
                    tp, tp / 2, 10 + tp / 2);
    page += fmt::format(
        "sglang:num_running_reqs{{tp_rank=\"{}\",pp_rank=\"1\",dp_rank=\"{}\"}} 99\n", tp, tp / 2);
  }
  const auto report = ReadSglangMetrics(page);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ranks, 2u);
  EXPECT_THAT(report->loads, ElementsAre(RankLoadReport{.rank = 0, .running = 10},
                                         RankLoadReport{.rank = 1, .running = 11}));
}

// --- TensorRT-LLM

std::string Iteration(int number, int rank, int active, int queued, int used) {
  return fmt::format(
      R"({{"iter":{},"attentionDpRank":{},"numActiveRequests":{},"numQueuedRequests":{},)"
      R"("maxNumActiveRequests":256,"kvCacheStats":{{"maxNumBlocks":100,"freeNumBlocks":{},)"
      R"("usedNumBlocks":{},"tokensPerBlock":32}},"inflightBatchingStats":{{"numCtxTokens":5}}}})",
      number, rank, active, queued, 100 - used, used);
}

TEST(ReadTrtllmMetrics, ReadsTheNewestIterationOfEachRank) {
  const auto report =
      ReadTrtllmMetrics("[" + Iteration(1, 0, 9, 9, 90) + "," + Iteration(2, 0, 3, 1, 50) + "," +
                        Iteration(1, 1, 4, 0, 25) + "]");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->engine, EngineKind::kTrtllm);
  EXPECT_EQ(report->ranks, 2u);
  EXPECT_EQ(report->block_size, 32u);
  EXPECT_EQ(report->num_blocks, 100u);
  EXPECT_EQ(report->kv_tokens, 3200u);
  EXPECT_EQ(report->max_running, 256u);
  EXPECT_EQ(report->prefix_caching, std::nullopt);
  EXPECT_THAT(report->loads,
              ElementsAre(RankLoadReport{0, 3, 1, 0.5}, RankLoadReport{1, 4, 0, 0.25}));
}

TEST(ReadTrtllmMetrics, KnowsTheEngineByAnEmptyListAndNothingElse) {
  EXPECT_THAT(ReadTrtllmMetrics("[]"), Optional(EngineReport{.engine = EngineKind::kTrtllm}));
}

TEST(ReadTrtllmMetrics, SurvivesIterationsThatMakeNoSense) {
  for (const char* page : {"[1,2]", "[{}]", "{}", "", "[", R"([{"kvCacheStat":{}}])"}) {
    EXPECT_EQ(ReadTrtllmMetrics(page), std::nullopt) << page;
  }
  const auto report = ReadTrtllmMetrics(
      R"([{"numActiveRequests":-1,"numQueuedRequests":"x","maxNumActiveRequests":1e99,)"
      R"("attentionDpRank":null,"kvCacheStats":{"maxNumBlocks":0,"usedNumBlocks":5,)"
      R"("tokensPerBlock":99999999999}}])");
  ASSERT_TRUE(report);
  EXPECT_EQ(*report, (EngineReport{.engine = EngineKind::kTrtllm,
                                   .ranks = 1,
                                   .prefix_caching = {},
                                   .loads = {RankLoadReport{}}}));
}

TEST(ReadTrtllmMetrics, ReadsTheLoadOfAnEngineThatDoesNotSayItsBlocks) {
  const auto report = ReadTrtllmMetrics(
      R"([{"numActiveRequests":3,"kvCacheStats":{"maxNumBlocks":100,"tokensPerBlock":null}}])");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 0u);
  EXPECT_EQ(report->num_blocks, 100u);
  EXPECT_EQ(report->loads.at(0).running, 3u);
}

TEST(ReadTrtllmPrometheus, ReadsTheCacheOfAnEngineThatHasRun) {
  const auto report = ReadTrtllmPrometheus(
      "trtllm_num_requests_running{model_name=\"m\"} 0\n"
      "trtllm_kv_cache_tokens_per_block{model_name=\"m\"} 64\n"
      "trtllm_kv_cache_max_blocks{model_name=\"m\"} 100\n"
      "trtllm_kv_cache_config_info{page_size=\"32\",enable_block_reuse=\"False\"} 1\n");
  EXPECT_THAT(report, Optional(EngineReport{.engine = EngineKind::kTrtllm,
                                            .block_size = 64,
                                            .num_blocks = 100,
                                            .kv_tokens = 6400,
                                            .prefix_caching = false,
                                            .loads = {}}))
      << "what runs is better than what was configured";
}

TEST(ReadTrtllmPrometheus, ReadsTheConfigurationOfAnEngineThatHasNotRun) {
  const auto report = ReadTrtllmPrometheus(
      "trtllm_kv_cache_config_info{page_size=\"32\",enable_block_reuse=\"True\"} 1\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->block_size, 32u);
  EXPECT_EQ(report->num_blocks, 0u);
  EXPECT_THAT(report->prefix_caching, Optional(true));
}

TEST(ReadTrtllmPrometheus, LeavesUnknownWhatIsNotThereYet) {
  for (const char* page :
       {"trtllm_num_requests_running 0\n",
        "trtllm_kv_cache_config_info{page_size=\"None\",enable_block_reuse=\"None\"} 1\n",
        "trtllm_kv_cache_config_info 1\n",
        "trtllm_kv_cache_tokens_per_block NaN\ntrtllm_kv_cache_max_blocks -1\n",
        "trtllm_kv_cache_tokens_per_block +Inf\ntrtllm_kv_cache_max_blocks 1e300\n"}) {
    EXPECT_THAT(ReadTrtllmPrometheus(page), Optional(EngineReport{.engine = EngineKind::kTrtllm}))
        << page;
  }
}

TEST(ReadTrtllmPrometheus, IsNotTakenInByThePagesOfOthers) {
  for (const char* page : {"", "[]", "vllm:num_requests_running 1\n", "trtllm", "{}"}) {
    EXPECT_EQ(ReadTrtllmPrometheus(page), std::nullopt) << page;
  }
}

// --- All of them

TEST(ReadMetrics, FindsOutWhosePageItIs) {
  EXPECT_EQ(ReadMetrics(kVllmTwoRanks)->engine, EngineKind::kVllm);
  EXPECT_EQ(ReadMetrics("sglang:num_running_reqs 1\n")->engine, EngineKind::kSglang);
  EXPECT_EQ(ReadMetrics(" \n[]")->engine, EngineKind::kTrtllm);
  EXPECT_EQ(ReadMetrics("llamacpp:requests_processing 1\n"), std::nullopt);
  EXPECT_EQ(ReadMetrics(R"({"detail":"Not Found"})"), std::nullopt);
}

TEST(ReadContextLength, ReadsItFromAModelCard) {
  EXPECT_EQ(ReadContextLength(R"({"id":"m","max_model_len":4096})"), 4096u);
  EXPECT_EQ(ReadContextLength(R"({"id":"lora","max_model_len":null})"), 0u);
  EXPECT_EQ(ReadContextLength(R"({"id":"m"})"), 0u);
  EXPECT_EQ(ReadContextLength(""), 0u);
}

TEST(Joined, TakesFromTheSecondWhatTheFirstDoesNotSay) {
  EngineReport facts{.engine = EngineKind::kSglang,
                     .ranks = 2,
                     .block_size = 16,
                     .num_blocks = 8,
                     .context_parallel = 2,
                     .kv_tokens = 100,
                     .max_running = 5,
                     .batch_tokens = 6,
                     .prefix_caching = true,
                     .context_length = 7,
                     .loads = {RankLoadReport{.rank = 1}}};
  EngineReport load{.engine = EngineKind::kSglang, .kv_tokens = 90, .prefix_caching = false};
  const EngineReport joined = Joined(load, facts);
  EXPECT_EQ(joined.kv_tokens, 90u);
  EXPECT_THAT(joined.prefix_caching, Optional(false));
  EXPECT_THAT(joined.loads, IsEmpty());
  facts.kv_tokens = 90;
  facts.prefix_caching = false;
  facts.loads.clear();
  EXPECT_EQ(joined, facts);
}

}  // namespace
}  // namespace fathom
