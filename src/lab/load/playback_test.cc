#include "lab/load/playback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "codec/json.h"
#include "testing/loopback_server.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kAnswer =
    "data: {\"choices\":[{\"text\":\"one\"}],\"usage\":null}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":32}}}\n\n"
    "data: [DONE]\n\n";

// Streams what it was told to say. May hold its first answer back, or leave a request unanswered.
class Engine final : public HttpHandler {
 public:
  explicit Engine(Loop& loop) : loop_(loop) {}

  Task<void> Handle(ServerConnection& connection) override {
    auto reading = connection.ReadBody();
    const auto body = co_await reading;
    if (!body) co_return;
    bodies.push_back(*Json::Parse(*body));
    const size_t number = bodies.size();
    while (number == 1 && bodies.size() < first_waits_for) co_await loop_.Sleep(milliseconds(1));
    if (number == 1) co_await loop_.Sleep(first_pause);
    connection.MarkAnswered();
    if (number == unanswered) {
      connection.CloseAfterwards();
      co_return;
    }
    const std::string text = Text();
    const IoResult sent = co_await connection.socket().Write(text, connection.WriteDeadline());
    if (!sent.ok()) connection.CloseAfterwards();
  }
  Answer Refuse(const RequestProblem& problem) override { return {.status = problem.status}; }

  std::string Text() const {
    return "HTTP/1.1 " + status + "\r\ncontent-type: text/event-stream\r\n" + headers +
           "content-length: " + std::to_string(events.size()) + "\r\n\r\n" + events;
  }

  std::vector<Json> bodies;
  size_t first_waits_for = 1;  // requests that must have come before it is answered
  Duration first_pause{};
  size_t unanswered = 0;  // this one, counted from 1
  std::string status = "200 OK";
  std::string headers;
  std::string events{kAnswer};

 private:
  Loop& loop_;
};

struct Stage {
  LoopThread thread;
  Engine engine{thread.loop()};
  PlaybackOptions options;

  PlaybackReport Play(std::vector<PlaybackRequest> requests) {
    LoopbackServer server(thread, engine);
    Resolver resolver;
    options.endpoint.url = *Url::Parse("http://" + server.address().ToString());
    Playback playback(thread.loop(), resolver, options, std::move(requests));
    thread.Complete([&] { return playback.Run(); });
    return playback.report();
  }
};

std::vector<uint64_t> FirstTokens(const std::vector<Json>& bodies) {
  std::vector<uint64_t> tokens;
  for (const Json& body : bodies) {
    tokens.push_back(*body.Find("prompt")->array()->front().unsigned_integer());
  }
  return tokens;
}

TEST(PlaybackRequest, BecomesOneWholeHttpRequestWithItsTokenIds) {
  PlaybackOptions options;
  options.endpoint.url = *Url::Parse("http://127.0.0.1:9000");
  options.api_key = "secret";
  const std::string text = BuildPlaybackRequest(options, {{}, {7, 4294967295, 0}, 12});
  EXPECT_TRUE(text.starts_with("POST /v1/completions HTTP/1.1\r\n"));
  EXPECT_THAT(text, HasSubstr("authorization: Bearer secret\r\n"));
  const std::string body = text.substr(text.find("\r\n\r\n") + 4);
  EXPECT_THAT(text, HasSubstr("content-length: " + std::to_string(body.size()) + "\r\n"));
  EXPECT_THAT(body, HasSubstr("\"prompt\":[7,4294967295,0],\"max_tokens\":12,\"stream\":true"));
  EXPECT_TRUE(Json::Parse(body));
}

TEST(Playback, StartsEachRequestWhenItIsDueWhateverTheOthersDo) {
  Stage stage;
  stage.engine.first_waits_for = 3;
  const PlaybackReport report =
      stage.Play({{{}, {1}, 1}, {milliseconds(20), {2}, 1}, {milliseconds(40), {3}, 1}});
  EXPECT_THAT(FirstTokens(stage.engine.bodies), ElementsAre(1, 2, 3));
  EXPECT_EQ(report.started, 3u);
  EXPECT_EQ(report.completed, 3u) << report.first_problem;
  EXPECT_GE(report.first_byte.max(), milliseconds(40));  // the first, held back by the last
  EXPECT_GE(report.seconds, 0.04);
}

TEST(Playback, CountsWhatTheEngineAndTheRouterSayOfTheCache) {
  Stage stage;
  stage.engine.headers = "x-fathom-cached-tokens: 24\r\n";
  const PlaybackReport report = stage.Play({{{}, {1}, 1}, {{}, {2}, 1}});
  EXPECT_EQ(report.completed, 2u) << report.first_problem;
  EXPECT_EQ(report.prompt_tokens, 80u);
  EXPECT_EQ(report.cached_tokens, 64u);
  EXPECT_EQ(report.completion_tokens, 6u);
  EXPECT_EQ(report.announced, 2u);
  EXPECT_EQ(report.announced_cached_tokens, 48u);
  EXPECT_EQ(report.first_byte.count(), 2u);
  EXPECT_EQ(report.total.count(), 2u);
  EXPECT_EQ(report.lag.count(), 2u);
}

TEST(Playback, HasNothingAnnouncedWhereTheHeaderIsMissingOrNoNumber) {
  for (const std::string headers : {"", "x-fathom-cached-tokens: many\r\n"}) {
    Stage stage;
    stage.engine.headers = headers;
    const PlaybackReport report = stage.Play({{{}, {1}, 1}});
    EXPECT_EQ(report.completed, 1u) << report.first_problem;
    EXPECT_EQ(report.announced, 0u) << headers;
  }
}

TEST(Playback, CountsRefusalsByTheirStatusAndTimesNoneOfThem) {
  Stage stage;
  stage.engine.status = "429 Too Many Requests";
  const PlaybackReport report = stage.Play({{{}, {1}, 1}, {milliseconds(30), {2}, 1}});
  EXPECT_EQ(report.errors, (std::map<int, uint64_t>{{429, 2}}));
  EXPECT_EQ(report.completed, 0u);
  EXPECT_EQ(report.error_count(), 2u);
  EXPECT_EQ(report.first_byte.count() + report.total.count(), 0u);
}

TEST(Playback, DoesNotTakeABrokenStreamForAnAnswer) {
  const std::map<std::string, std::string> broken = {
      {"data: {\"error\":{\"message\":\"x\"}}\n\n", "error event"},
      {"data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n", "error event"},
      {"data: {\"choices\":[]}\n\n", "without [DONE]"},
      {"data: nonsense\n\ndata: [DONE]\n\n", "not JSON"},
      {"", "without [DONE]"}};
  for (const auto& [events, problem] : broken) {
    Stage stage;
    stage.engine.events = events;
    const PlaybackReport report = stage.Play({{{}, {1}, 1}});
    EXPECT_EQ(report.errors, (std::map<int, uint64_t>{{0, 1}})) << events;
    EXPECT_THAT(report.first_problem, HasSubstr(problem)) << events;
    EXPECT_EQ(report.completed, 0u) << events;
  }
}

TEST(Playback, GivesUpARequestThatIsNotAnsweredInTime) {
  Stage stage;
  stage.options.timeout = milliseconds(50);
  stage.engine.first_pause = milliseconds(300);
  const PlaybackReport report = stage.Play({{{}, {1}, 1}});
  EXPECT_EQ(report.errors, (std::map<int, uint64_t>{{0, 1}}));
  EXPECT_THAT(report.first_problem, HasSubstr("receive"));
}

TEST(Playback, AsksAgainWhenAKeptConnectionWasClosedUnderIt) {
  Stage stage;
  stage.engine.unanswered = 2;
  const PlaybackReport report = stage.Play({{{}, {1}, 1}, {milliseconds(300), {2}, 1}});
  EXPECT_EQ(report.completed, 2u) << report.first_problem;
  EXPECT_THAT(FirstTokens(stage.engine.bodies), ElementsAre(1, 2, 2));
}

TEST(Playback, DoesNotAskAgainOnAConnectionThatWasNew) {
  Stage stage;
  stage.engine.unanswered = 1;
  const PlaybackReport report = stage.Play({{{}, {1}, 1}});
  EXPECT_EQ(report.errors, (std::map<int, uint64_t>{{0, 1}}));
  EXPECT_EQ(stage.engine.bodies.size(), 1u);
}

TEST(Playback, SaysWhyNobodyAnswered) {
  Loop loop;
  Resolver resolver;
  PlaybackOptions options;
  options.endpoint.url = *Url::Parse("http://127.0.0.1:1");
  Playback playback(loop, resolver, options, {{{}, {1}, 1}, {{}, {2}, 1}});
  RunToEnd(loop, [&] { return playback.Run(); });
  EXPECT_EQ(playback.report().errors, (std::map<int, uint64_t>{{0, 2}}));
  EXPECT_THAT(playback.report().first_problem, HasSubstr("refused"));
}

}  // namespace
}  // namespace fathom
