#include "lab/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "codec/json.h"
#include "io/http/server.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Answers every request after a pause, in two chunks; every `fail_every`-th with 500.
class SlowHandler final : public HttpHandler {
 public:
  explicit SlowHandler(Loop& loop) : loop_(loop) {}

  Task<void> Handle(ServerConnection& connection) override {
    auto reading = connection.ReadBody();
    const auto body = co_await reading;
    if (!body) co_return;
    const uint64_t number = ++seen;
    co_await loop_.Sleep(pause);
    if (fail_every != 0 && number % fail_every == 0) {
      const Answer failure{.status = 500, .body = "{}"};
      auto responding = connection.Respond(failure);
      co_await responding;
      co_return;
    }
    connection.MarkAnswered();
    const IoResult first = co_await connection.socket().Write(kFirst, connection.WriteDeadline());
    if (!first.ok()) co_return;
    co_await loop_.Sleep(pause);
    const IoResult rest = co_await connection.socket().Write(kRest, connection.WriteDeadline());
    if (!rest.ok()) connection.CloseAfterwards();
  }

  Answer Refuse(const RequestProblem&) override { return {.status = 400}; }

  std::atomic<uint64_t> seen{0};
  uint64_t fail_every = 0;
  Duration pause = milliseconds(5);

 private:
  static constexpr std::string_view kFirst =
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n";
  static constexpr std::string_view kRest =
      "2a\r\ndata: {\"usage\":{\"completion_tokens\": 7}}\n\n\r\n0\r\n\r\n";

  Loop& loop_;
};

// The server and the load share one loop, which ends with the load: nothing is left behind.
struct Bench {
  Loop loop;
  Log log{2, LogLevel::kOff};
  Resolver resolver;
  SlowHandler handler{loop};
  std::unique_ptr<HttpServer> server = std::make_unique<HttpServer>(
      std::vector<HttpServer::Place>{{&loop, &handler}}, ServerOptions{}, 1000, log);
  LoadOptions options;

  LoadReport Run() {
    const auto bound = server->Listen(*Address::Numeric("127.0.0.1", 0), nullptr);
    if (!bound) return {};
    options.endpoint.url = *Url::Parse("http://" + bound->ToString());
    LoadGenerator generator(loop, resolver, options);
    loop.Post([&] { Spawn(RunThenClose(generator)); });
    loop.Run();
    return generator.report();
  }

  Task<void> RunThenClose(LoadGenerator& generator) {
    co_await loop.Sleep(milliseconds(1));
    auto running = generator.Run();
    co_await running;
    while (server->connections() > 0) {
      server->Drain();
      co_await loop.Sleep(milliseconds(1));
    }
    loop.Post([this] {
      server.reset();
      loop.Post([this] { loop.Stop(); });
    });
  }
};

TEST(LoadRequest, IsOneWholeHttpRequest) {
  LoadOptions options;
  options.endpoint.url = *Url::Parse("http://127.0.0.1:9000");
  options.api_key = "secret";
  options.prompt_bytes = 1000;
  const std::string request = BuildLoadRequest(options);
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("authorization: Bearer secret\r\n"));
  const std::string body = request.substr(request.find("\r\n\r\n") + 4);
  EXPECT_THAT(request, HasSubstr("content-length: " + std::to_string(body.size()) + "\r\n"));
  const auto json = Json::Parse(body);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json->Find("messages")->array())[0].Find("content")->string()->size(), 1000u);
}

TEST(LoadRequest, NamesThePromptAsThePathWantsIt) {
  LoadOptions options;
  options.endpoint.url = *Url::Parse("http://127.0.0.1:9000");
  options.path = "/v1/embeddings";
  EXPECT_THAT(BuildLoadRequest(options), HasSubstr("\"input\":\"the quick"));
  options.path = "/v1/completions";
  EXPECT_THAT(BuildLoadRequest(options), HasSubstr("\"prompt\":\"the quick"));
}

TEST(CompletionTokens, TakesTheLastCountOfTheAnswer) {
  EXPECT_EQ(CompletionTokens(R"("completion_tokens":3},"completion_tokens": 12,)"), 12u);
  EXPECT_EQ(CompletionTokens("data: [DONE]"), 0u);
}

TEST(Load, ClosedLoopSendsExactlyTheRequestsAskedForOnKeptConnections) {
  Bench bench;
  bench.options.requests = 30;
  bench.options.concurrency = 3;
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.started, 30u);
  EXPECT_EQ(report.completed, 30u) << report.first_problem;
  EXPECT_EQ(report.error_count(), 0u);
  EXPECT_EQ(report.connections, 3u);
  EXPECT_EQ(report.tokens, 30u * 7);
  EXPECT_EQ(report.chunks, 60u);
  EXPECT_EQ(report.first_byte.count(), 30u);
  EXPECT_EQ(report.between_chunks.count(), 30u);
  EXPECT_GE(report.total.Percentile(1), milliseconds(10));
  EXPECT_GE(report.first_byte.Percentile(1), milliseconds(5));
  EXPECT_LT(report.first_byte.Percentile(50), report.total.Percentile(50));
}

TEST(Load, ClosedLoopCanBeginGradually) {
  Bench bench;
  bench.options.requests = 4;
  bench.options.concurrency = 4;
  bench.options.ramp = milliseconds(80);
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.completed, 4u) << report.first_problem;
  EXPECT_GE(report.seconds, 0.06);  // when the last began
}

TEST(Load, CountsButDoesNotTimeTheWarmUp) {
  Bench bench;
  bench.options.rate = 100;
  bench.options.poisson = false;
  bench.options.requests = 10;
  bench.options.warmup = milliseconds(35);  // the first four were due before
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.completed, 10u) << report.first_problem;
  EXPECT_EQ(report.total.count(), 6u);
  EXPECT_EQ(report.first_byte.count(), 6u);
  EXPECT_EQ(report.lag.count(), 6u);
}

TEST(Load, OpensAConnectionPerRequestWithoutKeepAlive) {
  Bench bench;
  bench.options.requests = 6;
  bench.options.concurrency = 2;
  bench.options.keep_alive = false;
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.completed, 6u) << report.first_problem;
  EXPECT_EQ(report.connections, 6u);
}

TEST(Load, CountsErrorsByTheirStatus) {
  Bench bench;
  bench.handler.fail_every = 2;
  bench.options.requests = 10;
  bench.options.concurrency = 1;
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.completed, 5u);
  EXPECT_EQ(report.errors, (std::map<int, uint64_t>{{500, 5}}));
}

TEST(Load, SaysWhyNobodyAnswered) {
  LoadOptions options;
  options.endpoint.url = *Url::Parse("http://127.0.0.1:1");
  options.requests = 2;
  options.concurrency = 1;
  const LoadReport report = RunLoad(options);
  EXPECT_EQ(report.errors, (std::map<int, uint64_t>{{0, 2}}));
  EXPECT_THAT(report.first_problem, HasSubstr("refused"));
}

TEST(Load, OpenLoopCountsTheWaitOfThoseWhoCouldNotStart) {
  Bench bench;
  bench.handler.pause = milliseconds(20);  // 40 ms per request, one at a time
  bench.options.rate = 500;                // one every 2 ms
  bench.options.poisson = false;
  bench.options.requests = 10;
  bench.options.concurrency = 1;
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.completed, 10u) << report.first_problem;
  // The last was due after 18 ms and answered after 400.
  EXPECT_GE(report.total.max(), milliseconds(350));
  EXPECT_GE(report.lag.max(), milliseconds(300));
}

TEST(Load, OpenLoopKeepsItsRateWhenThereIsRoom) {
  Bench bench;
  bench.options.rate = 1000;
  bench.options.duration = milliseconds(300);
  bench.options.concurrency = 200;
  bench.options.seed = 3;
  const LoadReport report = bench.Run();
  EXPECT_EQ(report.completed, report.started) << report.first_problem;
  EXPECT_GT(report.started + report.unsent, 200u);
  EXPECT_LT(report.started + report.unsent, 400u);
}

}  // namespace
}  // namespace fathom
