// For tests: a mock on a free port, and clients of it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "codec/json.h"
#include "io/http/fetch.h"
#include "lab/mock/mock_server.h"
#include "testing/loop_thread.h"

namespace fathom {

inline constexpr std::string_view kChatPath = "/v1/chat/completions";
inline constexpr std::string_view kTextPath = "/v1/completions";

// A mock on a free port, and for each call a client with its own loop.
class MockServerTest : public testing::Test {
 protected:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  MockServerTest() {
    options_.name = "m";
    options_.first_token_delay = std::chrono::milliseconds(2);
    options_.token_interval = std::chrono::milliseconds(1);
  }

  void Start(size_t threads = 1) {
    auto started = MockServer::Start(options_, *Address::Numeric("127.0.0.1", 0), threads, log_);
    ASSERT_TRUE(started) << started.error().what;
    server_ = *std::move(started);
  }

  Result<FetchAnswer> Get(std::string_view path) { return Call("GET", path, {}, {}); }
  Result<FetchAnswer> Post(std::string_view path, std::string_view body, Headers headers = {},
                           Duration limit = std::chrono::seconds(20)) {
    return Call("POST", path, body, std::move(headers), limit);
  }

  Result<FetchAnswer> Call(std::string_view method, std::string_view path, std::string_view body,
                           Headers headers, Duration limit = std::chrono::seconds(20)) {
    FetchRequest request{.method = method, .path = std::string(path)};
    request.headers = std::move(headers);
    request.body = body;
    request.max_answer = 64 << 20;
    Loop loop;
    Resolver resolver;
    const Endpoint endpoint{*Url::Parse(server_->url()), nullptr};
    return RunToEnd(loop,
                    [&] { return Fetch(loop, resolver, endpoint, request, loop.now() + limit); });
  }

  // The raw head of the answer.
  static Task<std::string> ReadHead(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                    std::string request) {
    const TimePoint deadline = loop.now() + std::chrono::seconds(20);
    ClientConnection connection(loop);
    auto opening = connection.Open(endpoint, resolver, deadline);
    const auto opened = co_await opening;
    if (!opened) co_return std::string();
    const IoResult sent = co_await connection.socket().Write(request, deadline);
    EXPECT_TRUE(sent.ok());
    const IoResult read = co_await connection.socket().Read(connection.in().room(), deadline);
    connection.in().Commit(read.bytes);
    const auto parsed = connection.ParseHead(false);
    EXPECT_TRUE(parsed && *parsed);
    co_return std::string(connection.in().view().substr(0, connection.head_size()));
  }

  uint64_t Stat(std::string_view name) {
    const auto stats = Json::Parse(Get("/mock/stats")->body);
    return stats->Find(name)->unsigned_integer().value_or(~uint64_t{0});
  }

  // Waits until the condition holds, or until the test's time limit.
  void Await(const std::function<bool()>& condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  MockOptions options_;
  Log log_{2, LogLevel::kOff};
  std::unique_ptr<MockServer> server_;
};

}  // namespace fathom
