#include "diagnose/doctor/read_only_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/doctor/live_look.h"
#include "testing/loop_thread.h"
#include "testing/model_fixture.h"
#include "testing/page_server.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Question {
  std::string method = "GET";
  std::string path;
  EngineKind engine = EngineKind::kUnknown;
  bool drain = false;
  ServerKind server = ServerKind::kEngine;
};

// Whether anything was sent for it.
bool IsSent(const Question& question) {
  PageServer server({});
  Loop loop;
  Resolver resolver;
  SentRequests sent;
  ReadOnlyClient client(
      loop, resolver, sent,
      {.server = question.server, .endpoint = *EndpointOf(server.url()), .drain = question.drain});
  client.Recognise(question.engine);
  const auto answer = RunToEnd(loop, [&] {
    return question.method == "GET" ? client.Get(question.path) : client.Ask(question.path, "{}");
  });
  EXPECT_EQ(answer.has_value(), !server.asked().empty());
  EXPECT_EQ(sent.All().size(), server.asked().size());
  return !server.asked().empty();
}

TEST(ReadOnlyClient, SendsWhatIsOnTheList) {
  EXPECT_TRUE(IsSent({.path = "/v1/models"}));
  EXPECT_TRUE(IsSent({.path = "/server_info?config_format=json"}));
  EXPECT_TRUE(IsSent({.method = "POST", .path = "/tokenize"}));
  EXPECT_TRUE(IsSent({.path = "/debug/decisions?limit=9", .server = ServerKind::kRouter}));
}

TEST(ReadOnlyClient, RefusesEverythingElse) {
  EXPECT_FALSE(IsSent({.path = "/health_generate", .engine = EngineKind::kVllm, .drain = true}));
  EXPECT_FALSE(IsSent({.path = "/flush_cache"}));
  EXPECT_FALSE(IsSent({.path = "/v1/models/../../flush_cache"}));
  EXPECT_FALSE(IsSent({.path = "/tokenize"}));
  EXPECT_FALSE(IsSent({.method = "POST", .path = "/v1/models"}));
  EXPECT_FALSE(IsSent({.method = "POST", .path = "/v1/completions"}));
  EXPECT_FALSE(IsSent({.method = "POST", .path = "/workers", .server = ServerKind::kRouter}));
  EXPECT_FALSE(IsSent({.path = "/kv_event_sources", .server = ServerKind::kDynamo}));
  EXPECT_FALSE(IsSent({.path = ""}));
}

TEST(ReadOnlyClient, DrainsNothingUnlessAllowed) {
  EXPECT_FALSE(IsSent({.path = "/metrics"}));
  EXPECT_FALSE(IsSent({.path = "/metrics", .engine = EngineKind::kTrtllm}));
  EXPECT_TRUE(IsSent({.path = "/metrics", .engine = EngineKind::kVllm}));
  EXPECT_TRUE(IsSent({.path = "/metrics", .engine = EngineKind::kSglang}));
  EXPECT_TRUE(IsSent({.path = "/metrics", .engine = EngineKind::kTrtllm, .drain = true}));
  EXPECT_FALSE(IsSent({.method = "POST", .path = "/kv_cache_events", .engine = EngineKind::kVllm}));
  EXPECT_TRUE(IsSent({.method = "POST", .path = "/kv_cache_events", .drain = true}));
}

TEST(ReadOnlyClient, MakesNoEngineRunAToken) {
  EXPECT_FALSE(IsSent({.path = "/health"}));
  EXPECT_FALSE(IsSent({.path = "/health", .engine = EngineKind::kSglang, .drain = true}));
  EXPECT_TRUE(IsSent({.path = "/health", .engine = EngineKind::kVllm}));
  EXPECT_TRUE(IsSent({.path = "/health", .engine = EngineKind::kTrtllm}));
}

TEST(ReadOnlyClient, SaysInWordsWhyThereIsNoAnswer) {
  EXPECT_EQ(WhyNot(FetchAnswer{.status = 200, .body = ""}, "--k"), "");
  EXPECT_EQ(WhyNot(FetchAnswer{.status = 503, .body = ""}, "--k"), "answered 503");
  EXPECT_THAT(WhyNot(FetchAnswer{.status = 401, .body = ""}, "--k"), HasSubstr("with --k"));
  EXPECT_EQ(WhyNot(Fail(Blame::kPeer, "gone\x1b"), "--k"), "gone?");
}

TEST(SentRequests, CountsEachOnceAndIsBounded) {
  SentRequests sent;
  sent.Count("GET", "http://a/health");
  sent.Count("GET", "http://a/health");
  EXPECT_THAT(sent.All(), ElementsAre(testing::Field(&SentRequest::times, 2)));
  for (int i = 0; i < 10000; ++i) sent.Count("GET", std::to_string(i));
  EXPECT_EQ(sent.All().size(), SentRequests::kMost + 1);
}

bool Listed(const SentRequest& sent) {
  const size_t path = sent.target.find('/', std::string_view("http://").size());
  const std::string bare = sent.target.substr(path, sent.target.find('?') - path);
  return std::ranges::any_of(ReadOnlyRequests(), [&](const ReadOnlyRequest& request) {
    return request.method == sent.method && request.path == bare;
  });
}

// Every page answers with what some look may want, so that nothing that it could ask is left out.
PageServer::Pages Everything(const std::string& owner) {
  PageServer::Pages pages;
  for (const ReadOnlyRequest& request : ReadOnlyRequests()) {
    pages[std::string(request.method) + " " + std::string(request.path)] = {200, "{}"};
  }
  pages["GET /v1/models"].body = R"({"data":[{"id":"m","owned_by":")" + owner + R"("}]})";
  pages["GET /health"].body = R"({"status":"ok","version":"1","workers_total":0})";
  pages["GET /metrics"].body = "vllm:x 1\nsglang:x 1\n";
  return pages;
}

TEST(ReadOnlyClient, IsTheWayOfAllLooks) {
  for (const char* owner : {"vllm", "sglang", "tensorrt_llm", "somebody"}) {
    PageServer server(Everything(owner));
    const LiveTargets targets{.router_url = server.url(),
                              .worker_urls = {server.url()},
                              .dynamo_url = server.url(),
                              .listen = std::chrono::milliseconds(20),
                              .model = SmallModel()};
    const LiveView view = LookLive(targets);
    uint64_t times = 0;
    for (const SentRequest& sent : view.sent) {
      EXPECT_TRUE(Listed(sent)) << sent.method << " " << sent.target;
      times += sent.times;
    }
    EXPECT_EQ(times, server.asked().size()) << "it lists what it sent";
    for (const std::string& asked : server.asked()) {
      EXPECT_TRUE(asked.starts_with("GET ") || asked == "POST /tokenize") << asked;
    }
  }
}

}  // namespace
}  // namespace fathom
