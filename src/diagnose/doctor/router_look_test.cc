#include "diagnose/doctor/router_look.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/doctor/dynamo_look.h"
#include "diagnose/doctor/live_look.h"
#include "testing/page_server.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::string_view kHealth =
    R"({"status":"degraded","version":"0.1.0","draining":false,"requests_in_flight":3,)"
    R"("requests_waiting":1,"workers_ready":1,"workers_total":1,"models":[{"model":"m",)"
    R"("status":"degraded","cause":"prompts_unread","share":0.5,"reason":"timeout","route":"chat",)"
    R"("engine":"vllm","cost_tokens":77,"fix":"files"},{"model":"n","status":"ok","cause":null,)"
    R"("share":0,"reason":null},7],"workers":[{"id":5,)"
    R"("url":"http://10.0.0.1:8000","models":["m"],"state":"ready","cause":null,)"
    R"("circuit":"closed","in_flight":2,"requests":40,"engine":"trtllm","kv_tokens":4096,)"
    R"("kv_blocks":128,"context_length":null,"max_running":64,"batch_tokens":null,)"
    R"("prefix_caching":true,"load":{"running":2,"waiting":1,"cache_usage":0.5},)"
    R"("block_size":16,"block_size_source":"explicit","new_field":[{}],"ranks":[{"rank":0,)"
    R"("trust":"doubted","cause":"block_size_mismatch","since":"2026-01-01T00:00:00.000Z",)"
    R"("evidence":"events say 32","fix":"set it","cost_tokens":1234,)"
    R"("credit":{"plain":0.5,"adapter":0,"salted":0},"events":"tcp://10.0.0.1:5557",)"
    R"("blocks":0,"last_event_age_seconds":1.5}]}]})";

constexpr std::string_view kIndex =
    R"({"blocks":0,"ranks":[{"worker":5,"url":"x","rank":0,"source":"tcp://10.0.0.1:5557",)"
    R"("connected":true,"reach":"open","batches":9,"stored_blocks":90,"removed_blocks":80,)"
    R"("gaps":2,"lost_batches":1,"malformed_batches":1,"malformed_events":2,)"
    R"("mismatched_events":90,"block_size":32},{"worker":77,"rank":0},7]})";

constexpr std::string_view kMetrics =
    "kv_router_prompt_tokens_total 1000\nkv_router_cached_tokens_total 0\n"
    "kv_router_wasted_prefill_tokens_total{cause=\"block_size_mismatch\"} 600\n"
    "kv_router_decisions_total{by=\"load\"} 40\n"
    "kv_router_prompts_unread_total{route=\"chat\",reason=\"timeout\"} 3\n"
    "kv_router_prompts_unread_total{route=\"messages\",reason=\"timeout\"} 4\n"
    "kv_router_block_size_mismatch_total{worker=\"4\",configured=\"16\",reported=\"16\"} 0\n"
    "kv_router_block_size_mismatch_total{worker=\"5\",configured=\"16\",reported=\"32\"} 90\n"
    "fathom_time_to_first_token_seconds_sum 4\nfathom_time_to_first_token_seconds_count 40\n"
    "kv_router_event_lag_seconds_sum{from=\"timestamp\"} 1\n"
    "kv_router_event_lag_seconds_count{from=\"timestamp\"} 10\n"
    "kv_router_event_lag_seconds_sum{from=\"first_byte\"} 100\n"
    "kv_router_event_lag_seconds_count{from=\"first_byte\"} 1\n"
    "fathom_requests_total{route=\"chat\",status=\"200\"} 40\n";

constexpr std::string_view kDecisions =
    R"({"count":2,"decisions":[{"age_seconds":1,"mode":"kv","depths_from":"events",)"
    R"("prompt_tokens":100,"cached_tokens":64,"found_tokens":32,"tree_size":7},)"
    R"({"age_seconds":9,"prompt_tokens":50,"cached_tokens":0,"found_tokens":null,)"
    R"("depths_from":"nothing: the prompt's tokens are not known"}]})";

PageServer::Pages RouterPages() {
  return {{"GET /health", {200, std::string(kHealth)}},
          {"GET /ready", {503, R"({"status":"doubted","reason":"1 ranks are doubted"})"}},
          {"GET /metrics", {200, std::string(kMetrics)}},
          {"GET /debug/index", {200, std::string(kIndex)}},
          {"GET /debug/decisions", {200, std::string(kDecisions)}}};
}

RouterLook RouterLookAt(PageServer& server, std::string key = "") {
  const LiveTargets targets{.router_url = server.url(), .admin_key = std::move(key)};
  return *LookLive(targets).router;
}

TEST(RouterLook, ReadsAllPages) {
  PageServer server(RouterPages());
  const RouterLook look = RouterLookAt(server, "secret");
  EXPECT_EQ(server.authorization(), "Bearer secret");
  EXPECT_TRUE(look.reached);
  EXPECT_EQ(look.problem, "");
  EXPECT_EQ(look.status, "degraded");
  EXPECT_FALSE(look.ready);
  EXPECT_EQ(look.not_ready_because, "1 ranks are doubted");
  ASSERT_THAT(look.models, SizeIs(3));
  const RoutedModel& model = look.models[0];
  EXPECT_EQ(model.cause, "prompts_unread");
  EXPECT_EQ(model.share, 0.5);
  EXPECT_EQ(model.reason + model.route + model.engine + model.fix, "timeoutchatvllmfiles");
  EXPECT_EQ(model.cost_tokens, 77u);
  EXPECT_EQ(look.models[1].cause, "");
  EXPECT_EQ(look.models[2].model, "") << "what is no object says nothing";
  ASSERT_THAT(look.workers, SizeIs(1));
  const RoutedWorker& worker = look.workers[0];
  EXPECT_EQ(worker.engine, "trtllm");
  EXPECT_EQ(worker.block_size, 16u);
  EXPECT_EQ(worker.block_size_source, "explicit");
  EXPECT_EQ(worker.context_length, 0u);
  EXPECT_EQ(worker.prefix_caching, true);
  ASSERT_THAT(worker.ranks, SizeIs(1));
  const RoutedRank& rank = worker.ranks[0];
  EXPECT_EQ(rank.cause, "block_size_mismatch");
  EXPECT_EQ(rank.cost_tokens, 1234u);
  EXPECT_EQ(rank.credit, 0.5);
  ASSERT_TRUE(rank.feed);
  EXPECT_EQ(rank.feed->block_size, 32u);
  EXPECT_EQ(rank.feed->malformed, 3u);
  EXPECT_EQ(rank.feed->gaps, 2u);
}

TEST(RouterLook, KnowsTheRanksOfAnOlderRouterByItsIndex) {
  RouterLook look;
  ASSERT_TRUE(ReadRouterHealth(R"({"version":"0","workers_total":1,"workers":[{"id":5}]})", look));
  ReadRouterIndex(kIndex, look);
  ASSERT_THAT(look.workers.at(0).ranks, SizeIs(1));
  EXPECT_EQ(look.workers[0].ranks[0].trust, "");
  EXPECT_EQ(look.workers[0].ranks[0].feed->stored_blocks, 90u);
}

TEST(RouterLook, ReadsItsMetrics) {
  const RouterCounters counters = ReadRouterMetrics(MetricsPage(std::string(kMetrics)));
  EXPECT_TRUE(counters.known);
  EXPECT_THAT(counters.wasted, ElementsAre(Pair("block_size_mismatch", 600)));
  EXPECT_THAT(counters.unread, ElementsAre(Pair("timeout", 7)));
  EXPECT_EQ(counters.Since(counters).unread.at("timeout"), 0);
  ASSERT_THAT(counters.mismatches, SizeIs(1));
  EXPECT_EQ(counters.mismatches[0].configured, 16u);
  EXPECT_EQ(counters.mismatches[0].reported, 32u);
  EXPECT_EQ(counters.event_lag.Mean(), 0.1);
  EXPECT_EQ(counters.first_token.Mean(), 0.1);
  EXPECT_EQ(counters.Since(counters).wasted.at("block_size_mismatch"), 0);
  EXPECT_EQ(counters.Since(counters).mismatches[0].events, 0);
  EXPECT_FALSE(ReadRouterMetrics(MetricsPage("up 1\n")).known);
}

TEST(RouterLook, KnowsTheFormerNameOfACause) {
  const std::string_view family = "kv_router_wasted_prefill_tokens_total";
  const RouterCounters counters = ReadRouterMetrics(
      MetricsPage(fmt::format("{0}{{cause=\"wish\"}} 5\n{0}{{cause=\"load\"}} 2\n", family)));
  EXPECT_THAT(counters.wasted, ElementsAre(Pair("load", 2), Pair("override", 5)));
}

TEST(RouterLook, AddsUpTheLatestDecisions) {
  const RecentDecisions decisions = ReadRouterDecisions(kDecisions);
  EXPECT_EQ(decisions.looked_at, 2u);
  EXPECT_EQ(decisions.prompt_tokens, 150u);
  EXPECT_EQ(decisions.cached_tokens, 64u);
  EXPECT_EQ(decisions.found_tokens, 32u);
  EXPECT_EQ(decisions.found_prompt_tokens, 100u);
  EXPECT_EQ(decisions.tokens_unknown, 1u);
  EXPECT_EQ(decisions.oldest, 9);
  EXPECT_EQ(decisions.mode, "kv");
}

TEST(RouterLook, SaysThatTheAdminKeyIsNeeded) {
  auto pages = RouterPages();
  pages["GET /health"].body =
      R"({"status":"ok","version":"0.1.0","workers_ready":2,"workers_total":2})";
  pages["GET /debug/index"] = {401, "{}"};
  PageServer server(pages);
  const RouterLook look = RouterLookAt(server);
  EXPECT_TRUE(look.reached);
  EXPECT_TRUE(look.wants_admin_key);
  EXPECT_THAT(look.problem, HasSubstr("--admin-key"));
  EXPECT_TRUE(look.counters.known);
}

TEST(RouterLook, KnowsWhatIsNoFathom) {
  for (const char* body : {"", "{}", "ok", "[]", R"({"status":"healthy","instances":[]})"}) {
    PageServer server({{"GET /health", {200, body}}});
    const RouterLook look = RouterLookAt(server);
    EXPECT_FALSE(look.reached) << body;
    EXPECT_THAT(look.problem, HasSubstr("not Fathom"));
    EXPECT_THAT(server.asked(), ElementsAre("GET /health"));
  }
}

TEST(RouterLook, MakesWhatItCanOfHostilePages) {
  RouterLook look;
  EXPECT_TRUE(ReadRouterHealth(
      R"({"status":"\u001b[2J","version":7,"workers_total":-1,"workers":[1,null,{"id":"x",)"
      R"("ranks":{},"models":[1,"m\n"]},{"block_size":99999999999,"ranks":[null]}]})",
      look));
  EXPECT_EQ(look.status, "?[2J");
  ASSERT_THAT(look.workers, SizeIs(4));
  EXPECT_THAT(look.workers[2].models, ElementsAre("m?"));
  EXPECT_EQ(look.workers[3].block_size, 0u);
  ReadRouterIndex("[[[", look);
  ReadRouterIndex(R"({"ranks":[{"worker":0,"rank":0,"blocks":1e300}]})", look);
  EXPECT_EQ(ReadRouterDecisions("null").looked_at, 0u);
}

TEST(RouterLook, TellsAConnectionThatIsRefused) {
  const LiveTargets targets{.router_url = "http://127.0.0.1:1", .dynamo_url = "http://127.0.0.1:1"};
  const LiveView view = LookLive(targets);
  EXPECT_FALSE(view.router->reached);
  EXPECT_THAT(view.router->problem, HasSubstr("refused"));
  EXPECT_FALSE(view.dynamo->reached);
  EXPECT_THAT(view.dynamo->problem, HasSubstr("refused"));
}

TEST(LookLive, TellsWhatIsNoUrl) {
  const LiveTargets targets{
      .router_url = "router", .worker_urls = {"ftp://x"}, .dynamo_url = "http://"};
  const LiveView view = LookLive(targets);
  EXPECT_FALSE(view.router->problem.empty());
  EXPECT_FALSE(view.workers.at(0).look.problem.empty());
  EXPECT_FALSE(view.dynamo->problem.empty());
  EXPECT_THAT(view.sent, IsEmpty());
}

constexpr std::string_view kDynamoMetrics =
    "dynamo_frontend_model_kv_cache_block_size{model=\"q\"} 16\n"
    "dynamo_frontend_model_total_kv_blocks{model=\"q\"} 1000\n"
    "dynamo_frontend_model_max_num_seqs{model=\"q\"} 256\n"
    "dynamo_component_kv_cache_events_applied{event_type=\"stored\",status=\"ok\"} 1\n"
    "dynamo_component_kv_cache_events_applied{event_type=\"stored\",status=\"parent_block_not_"
    "found\"} 3\n"
    "dynamo_component_router_kv_hit_rate_sum 0\ndynamo_component_router_kv_hit_rate_count 12\n"
    "dynamo_frontend_time_to_first_token_seconds_sum{model=\"q\"} 6\n"
    "dynamo_frontend_time_to_first_token_seconds_count{model=\"q\"} 12\n";

TEST(DynamoLook, ReadsHealthAndMetrics) {
  PageServer server(
      {{"GET /health",
        {200, R"({"status":"healthy","endpoints":["dyn://a"],"instances":[{"component":"backend",)"
              R"("endpoint":"generate","instance_id":18446744073709551615}]})"}},
       {"GET /metrics", {200, std::string(kDynamoMetrics)}}});
  const LiveTargets targets{.dynamo_url = server.url()};
  const DynamoLook look = *LookLive(targets).dynamo;
  EXPECT_TRUE(look.reached);
  EXPECT_EQ(look.status, "healthy");
  ASSERT_THAT(look.instances, SizeIs(1));
  EXPECT_EQ(look.instances[0].id, "18446744073709551615");
  ASSERT_THAT(look.models, SizeIs(1));
  EXPECT_EQ(look.models[0].block_size, 16);
  EXPECT_EQ(look.models[0].max_num_seqs, 256);
  EXPECT_EQ(look.NotApplied(), 0.75);
  EXPECT_EQ(look.hit_rate.count, 12);
  EXPECT_EQ(look.first_token.Mean(), 0.5);
}

TEST(DynamoLook, TakesAnyPageForWhatItIs) {
  DynamoLook look;
  ReadDynamoHealth(503, R"({"status":"not_ready","message":"loading","instances":{}})", look);
  EXPECT_EQ(look.status, "not_ready");
  EXPECT_EQ(look.message, "loading");
  ReadDynamoHealth(500, "oops", look);
  EXPECT_EQ(look.status, "answered 500");
  ReadDynamoMetrics(MetricsPage("x 1\n"), look);
  EXPECT_FALSE(look.has_metrics);
  EXPECT_EQ(look.NotApplied(), std::nullopt);
}

}  // namespace
}  // namespace fathom
