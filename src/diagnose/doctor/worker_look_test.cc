#include "diagnose/doctor/worker_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/doctor/live_look.h"
#include "testing/page_server.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using How = PublishedEvents::How;

std::string Models(const std::string& owner) {
  return R"({"object":"list","data":[{"id":"m","root":"/models/m","owned_by":")" + owner +
         R"(","max_model_len":4096}]})";
}

const std::string kVllmMetrics =
    "vllm:cache_config_info{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"100\","
    "enable_prefix_caching=\"True\",gpu_memory_utilization=\"0.9\",cache_dtype=\"auto\"} 1\n"
    "vllm:num_requests_running{engine=\"0\"} 2\nvllm:num_requests_waiting{engine=\"0\"} 1\n"
    "vllm:prefix_cache_queries_total 100\nvllm:prefix_cache_hits_total 40\n";

const std::string kVllmSources =
    R"({"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5801",)"
    R"("replay_endpoint":null,"topic":"kv"}})";

PageServer::Pages VllmPages() {
  return {{"GET /v1/models", {200, Models("vllm")}},
          {"GET /kv_event_sources", {200, kVllmSources}},
          {"GET /version", {200, R"({"version":"0.32.0"})"}},
          {"GET /metrics", {200, kVllmMetrics}},
          {"GET /health", {200, ""}}};
}

const std::string kSglangInfo =
    R"({"page_size":32,"max_total_num_tokens":6400,"dp_size":2,"context_length":8192,)"
    R"("max_running_requests":64,"disable_radix_cache":true,"mem_fraction_static":0.85,)"
    R"("kv_cache_dtype":"fp8_e5m2","kv_events_config":null,"kv_events":null,"version":"0.5.23"})";

WorkerLook WorkerLookAt(PageServer& server, bool drain = false) {
  const LiveTargets targets{.worker_urls = {server.url()}, .drain = drain};
  return LookLive(targets).workers.at(0).look;
}

TEST(WorkerLook, ReadsVllm) {
  PageServer server(VllmPages());
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_TRUE(look.reached);
  EXPECT_EQ(look.report.engine, EngineKind::kVllm);
  EXPECT_EQ(look.version, "0.32.0");
  EXPECT_EQ(look.report.block_size, 16u);
  EXPECT_EQ(look.report.prefix_caching, true);
  EXPECT_EQ(look.report.context_length, 4096u);
  EXPECT_EQ(look.healthy, true);
  EXPECT_EQ(look.levels.running, 2);
  EXPECT_EQ(look.levels.memory_fraction, "0.9");
  EXPECT_EQ(look.counts.HitRate(), 0.4);
  EXPECT_EQ(look.events.how, How::kStream);
  ASSERT_THAT(look.events.sources, SizeIs(1));
  EXPECT_EQ(look.events.sources[0].endpoint, "tcp://127.0.0.1:5801");
  EXPECT_EQ(look.events.sources[0].replay, "");
  ASSERT_THAT(look.models, SizeIs(1));
  EXPECT_EQ(look.models[0].root, "/models/m");
}

TEST(WorkerLook, SaysThatThePublisherIsOff) {
  auto pages = VllmPages();
  pages["GET /kv_event_sources"].body =
      R"({"0":{"enable_kv_cache_events":false,"publisher":"null","endpoint":"tcp://*:5557"}})";
  PageServer server(pages);
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_EQ(look.events.how, How::kOff);
  EXPECT_THAT(look.events.problem, HasSubstr("KV events are off"));
}

TEST(WorkerLook, TakesAnEmptyListOfSourcesForAPublisherThatIsOff) {
  auto pages = VllmPages();
  pages["GET /kv_event_sources"].body = " {} ";
  PageServer server(pages);
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_EQ(look.report.engine, EngineKind::kVllm);
  EXPECT_EQ(look.events.how, How::kOff);
  EXPECT_TRUE(look.events.unlisted);
  EXPECT_THAT(look.events.problem, HasSubstr("/kv_event_sources"));
}

TEST(WorkerLook, GuessesThePortOfAnOlderVllm) {
  auto pages = VllmPages();
  pages.erase("GET /kv_event_sources");
  PageServer server(pages);
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_EQ(look.report.engine, EngineKind::kVllm);
  EXPECT_EQ(look.report.block_size, 16u);
  EXPECT_EQ(look.events.how, How::kGuessed);
  ASSERT_THAT(look.events.sources, SizeIs(1));
  EXPECT_EQ(look.events.sources[0].endpoint, "tcp://127.0.0.1:5557");
}

TEST(WorkerLook, ReadsSglangAndLeavesItsHealthAlone) {
  PageServer server(
      {{"GET /v1/models", {200, Models("sglang")}},
       {"GET /server_info", {200, kSglangInfo}},
       {"GET /health", {200, ""}},
       {"GET /v1/loads",
        {200, R"({"loads":[{"dp_rank":0,"num_running_reqs":3,"token_usage":0.5}]})"}}});
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_EQ(look.report.engine, EngineKind::kSglang);
  EXPECT_EQ(look.version, "0.5.23");
  EXPECT_EQ(look.report.block_size, 32u);
  EXPECT_EQ(look.report.prefix_caching, false);
  EXPECT_EQ(look.report.max_running, 64u);
  EXPECT_EQ(look.levels.memory_fraction, "0.85");
  EXPECT_EQ(look.levels.cache_dtype, "fp8_e5m2");
  EXPECT_EQ(look.levels.running, 3);
  EXPECT_EQ(look.events.how, How::kOff);
  EXPECT_FALSE(look.has_metrics);
  EXPECT_THAT(look.unseen, ElementsAre(HasSubstr("answered 404")));
  EXPECT_THAT(server.asked(), Not(Contains("GET /health")));
}

PageServer::Pages TrtllmPages() {
  return {{"GET /v1/models", {200, Models("tensorrt_llm")}},
          {"GET /version", {200, R"({"version":"1.2.0"})"}},
          {"GET /metrics", {200, "[]"}},
          {"POST /kv_cache_events", {200, "[]"}},
          {"GET /health", {200, ""}},
          {"GET /prometheus/metrics",
           {200, "trtllm_kv_cache_tokens_per_block 32\ntrtllm_kv_cache_max_blocks 100\n"}}};
}

TEST(WorkerLook, TakesNothingFromTensorRt) {
  PageServer server(TrtllmPages());
  LiveTargets targets{.worker_urls = {server.url()}, .listen = std::chrono::milliseconds(50)};
  const LiveView view = LookLive(targets);
  const LookedAtWorker& worker = view.workers.at(0);
  EXPECT_EQ(worker.look.report.engine, EngineKind::kTrtllm);
  EXPECT_EQ(worker.look.report.block_size, 32u);
  EXPECT_EQ(worker.look.events.how, How::kPolled);
  EXPECT_THAT(worker.unheard, HasSubstr("--drain"));
  EXPECT_THAT(server.asked(), Not(Contains("GET /metrics")));
  EXPECT_THAT(server.asked(), Not(Contains(HasSubstr("POST"))));
}

TEST(WorkerLook, PollsTensorRtWhereThatIsAllowed) {
  PageServer server(TrtllmPages());
  const LiveTargets targets{
      .worker_urls = {server.url()}, .listen = std::chrono::milliseconds(50), .drain = true};
  const LiveView view = LookLive(targets);
  ASSERT_THAT(view.workers.at(0).streams, SizeIs(1));
  EXPECT_TRUE(view.workers[0].streams[0].polled);
  EXPECT_TRUE(view.workers[0].streams[0].listened);
  EXPECT_THAT(server.asked(), AllOf(Contains("GET /metrics"), Contains("POST /kv_cache_events")));
}

// It may be TensorRT-LLM behind something that hides it.
TEST(WorkerLook, AsksAnEngineThatItDoesNotKnowForNoMetrics) {
  PageServer server({{"GET /v1/models", {200, Models("somebody")}}, {"GET /metrics", {200, "[]"}}});
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_TRUE(look.reached);
  EXPECT_EQ(look.report.engine, EngineKind::kUnknown);
  EXPECT_EQ(look.events.how, How::kUnknown);
  EXPECT_THAT(look.unseen, Contains(HasSubstr("only once")));
  EXPECT_THAT(server.asked(), Not(Contains("GET /metrics")));
}

TEST(WorkerLook, TellsAKeyThatIsMissing) {
  auto pages = VllmPages();
  pages["GET /v1/models"] = {401, R"({"error":"Unauthorized"})"};
  PageServer server(pages);
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_EQ(look.report.engine, EngineKind::kVllm);
  EXPECT_THAT(look.unseen, ElementsAre(HasSubstr("--worker-api-key")));
}

TEST(WorkerLook, MakesNothingOfGarbage) {
  PageServer::Pages pages;
  for (const char* path : {"/v1/models", "/kv_event_sources", "/server_info", "/get_server_info",
                           "/version", "/metrics", "/prometheus/metrics"}) {
    pages["GET " + std::string(path)] = {200, R"({"data":[{"id":"\u001b[2J"}],"0":[[[]]]})"};
  }
  PageServer server(pages);
  const WorkerLook look = WorkerLookAt(server);
  EXPECT_TRUE(look.reached);
  EXPECT_EQ(look.report, EngineReport{});
  EXPECT_THAT(look.events.sources, IsEmpty());
  ASSERT_THAT(look.models, SizeIs(1));
  EXPECT_EQ(look.models[0].id, "?[2J");
}

TEST(LookLive, CountsWhatHappensWhileItListens) {
  auto pages = VllmPages();
  pages["GET /kv_event_sources"].body =
      R"({"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:1"}})";
  PageServer server(pages);
  const LiveTargets targets{.worker_urls = {server.url(), server.url() + "/"},
                            .listen = std::chrono::milliseconds(50)};
  const LiveView view = LookLive(targets);
  ASSERT_THAT(view.workers, SizeIs(1));  // named twice
  const LookedAtWorker& worker = view.workers[0];
  ASSERT_TRUE(worker.meanwhile);
  EXPECT_EQ(worker.meanwhile->prefix_hits, 0);
  EXPECT_EQ(worker.meanwhile->HitRate(), std::nullopt);
  EXPECT_GT(worker.seconds, 0);
  ASSERT_THAT(worker.streams, SizeIs(1));
  EXPECT_FALSE(worker.streams[0].connected);
}

}  // namespace
}  // namespace fathom
