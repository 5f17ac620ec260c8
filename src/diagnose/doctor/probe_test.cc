#include "diagnose/doctor/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "codec/json.h"
#include "testing/loopback_server.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Streams an answer of two words to everybody, and remembers what it was asked.
class Model final : public HttpHandler {
 public:
  std::string models = R"({"data":[{"id":"first"},{"id":"second"}]})";
  std::string usage = R"({"prompt_tokens":2000,"prompt_tokens_details":{"cached_tokens":1600}})";
  std::string content = "content";
  std::string cached;             // of the router's header; empty: none
  size_t most_turns = 1'000'000;  // the others are refused

  std::vector<Json> bodies;
  std::vector<std::string> keys;
  std::vector<std::string> requests;
  size_t at_once = 0;
  size_t most_at_once = 0;

  explicit Model(Loop& loop) : loop_(loop) {}

  Task<void> Handle(ServerConnection& connection) override {
    requests.push_back(std::string(connection.head().method) + " " +
                       std::string(connection.head().target));
    const Header* const key = connection.head().headers.Find("authorization");
    keys.emplace_back(key == nullptr ? "" : key->value);
    const bool lists = connection.head().method == "GET";
    auto reading = connection.ReadBody();
    const auto body = co_await reading;
    if (!lists) bodies.push_back(*Json::Parse(*body));
    most_at_once = std::max(most_at_once, ++at_once);
    if (!lists) co_await loop_.Sleep(std::chrono::milliseconds(2));
    --at_once;
    const Answer answer = lists ? Answer{.body = models} : Chat();
    auto responding = connection.Respond(answer);
    co_await responding;
  }
  Answer Refuse(const RequestProblem& problem) override { return {.status = problem.status}; }

 private:
  Answer Chat() {
    if (bodies.size() > most_turns) {
      return {.status = 429, .body = R"({"error":{"message":"too many"}})"};
    }
    std::string events = R"(data: {"choices":[{"delta":{"role":"assistant","content":""}}]})"
                         "\n\ndata: {\"choices\":[{\"delta\":{\"" +
                         content +
                         "\":\"so it is\"}}]}\n\ndata: {\"choices\":[],\"usage\":" + usage +
                         "}\n\ndata: [DONE]\n\n";
    Answer answer{.content_type = "text/event-stream", .body = std::move(events)};
    if (!cached.empty()) answer.headers.emplace_back("x-fathom-cached-tokens", cached);
    return answer;
  }

  Loop& loop_;
};

struct Stage {
  Stage() : model(thread.loop()) {}

  ProbeReport Run() {
    LoopbackServer server(thread, model);
    options.endpoint.url = *Url::Parse("http://" + server.address().ToString());
    options.pause = std::chrono::milliseconds(1);
    options.seed = 7;
    return RunProbe(options);
  }

  LoopThread thread;
  Model model;
  ProbePlan options;
};

std::string Said(const Json& body, size_t message) {
  return *(*body.Find("messages")->array())[message].Find("content")->string();
}

TEST(Probe, GoesUpInPowersOfTwoToWhatWasAskedFor) {
  EXPECT_THAT(ProbeLevels(1), ElementsAre(1));
  EXPECT_THAT(ProbeLevels(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(ProbeLevels(6), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(ProbeLevels(0), ElementsAre());
}

TEST(Probe, TellsFirstTurnsFromFollowUpsAtEachLevel) {
  Stage stage;
  stage.options.most_at_once = 6;
  const ProbeReport report = stage.Run();
  EXPECT_EQ(report.problem, "");
  ASSERT_EQ(report.levels.size(), 4u);
  const size_t conversations[] = {4, 4, 4, 6};
  const size_t at_once[] = {1, 2, 4, 6};
  for (size_t i = 0; i < 4; ++i) {
    const ProbeLevel& level = report.levels[i];
    EXPECT_EQ(level.at_once, at_once[i]);
    EXPECT_EQ(level.first_turns.turns, conversations[i]);
    EXPECT_EQ(level.follow_ups.turns, 3 * conversations[i]);
    EXPECT_EQ(level.requests, 4 * conversations[i]);
    EXPECT_EQ(level.errors, 0u);
    EXPECT_GT(level.Ratio(), 0);
  }
  EXPECT_EQ(stage.model.most_at_once, 6u);
  EXPECT_EQ(report.requests, 72u);
  EXPECT_EQ(report.prompt_tokens, 144'000u);
}

TEST(Probe, RepeatsWhatWasSaidAndSharesNothingBetweenConversations) {
  Stage stage;
  stage.Run();
  ASSERT_EQ(stage.model.bodies.size(), 16u);
  std::set<std::string> beginnings;
  for (size_t i = 0; i < 16; i += 4)
    beginnings.insert(Said(stage.model.bodies[i], 0).substr(0, 16));
  EXPECT_EQ(beginnings.size(), 4u);
  const Json& last = stage.model.bodies[3];
  EXPECT_EQ(last.Find("messages")->array()->size(), 7u);
  EXPECT_EQ(Said(last, 0), Said(stage.model.bodies[0], 0));
  EXPECT_EQ(Said(last, 1), "so it is");
  EXPECT_EQ(last.Find("max_tokens")->unsigned_integer(), 16u);
}

TEST(Probe, HasOtherWordsWithAnotherSeed) {
  Stage one;
  Stage other;
  one.Run();
  LoopbackServer server(other.thread, other.model);
  other.options.endpoint.url = *Url::Parse("http://" + server.address().ToString());
  other.options.seed = 8;
  RunProbe(other.options);
  EXPECT_NE(Said(one.model.bodies[0], 0).substr(0, 16),
            Said(other.model.bodies[0], 0).substr(0, 16));
}

TEST(Probe, CountsWhatEnginesAndRouterSayOfTheCache) {
  Stage stage;
  stage.model.cached = "1584";
  const ProbeReport report = stage.Run();
  ASSERT_EQ(report.levels.size(), 1u) << report.problem;
  const ProbeTimes& times = report.levels[0].follow_ups;
  EXPECT_EQ(times.told, 12u);
  EXPECT_EQ(times.cached_tokens, 12 * 1600u);
  EXPECT_EQ(times.announced, 12u);
  EXPECT_EQ(times.announced_tokens, 12 * 1584u);
}

TEST(Probe, DoesNotTakeSilenceAboutTheCacheForAnEmptyOne) {
  for (const char* usage :
       {R"({"prompt_tokens":2000})", R"({"prompt_tokens":2000,"prompt_tokens_details":null})"}) {
    Stage stage;
    stage.model.usage = usage;
    const ProbeReport report = stage.Run();
    ASSERT_EQ(report.levels.size(), 1u) << report.problem;
    EXPECT_EQ(report.levels[0].follow_ups.told, 0u);
    EXPECT_EQ(report.levels[0].follow_ups.announced, 0u);
    EXPECT_EQ(report.levels[0].follow_ups.prompt_tokens, 24'000u);
  }
}

TEST(Probe, TimesTheFirstTokenOfAModelThatReasonsFirst) {
  Stage stage;
  stage.model.content = "reasoning_content";
  const ProbeReport report = stage.Run();
  ASSERT_EQ(report.levels.size(), 1u) << report.problem;
  EXPECT_EQ(report.levels[0].follow_ups.turns, 12u);
  EXPECT_EQ(Said(stage.model.bodies[1], 1), "well");
}

TEST(Probe, AsksForTheFirstModelUnlessOneIsNamed) {
  Stage any;
  EXPECT_EQ(any.Run().model, "first");
  EXPECT_EQ(*any.model.bodies[0].Find("model")->string(), "first");
  Stage named;
  named.options.model = "second";
  EXPECT_EQ(named.Run().model, "second");
  EXPECT_EQ(*named.model.bodies[0].Find("model")->string(), "second");
}

TEST(Probe, SendsNothingToTheEnginesWhereNoModelIsListed) {
  Stage stage;
  stage.model.models = R"({"data":[]})";
  const ProbeReport report = stage.Run();
  EXPECT_THAT(report.problem, HasSubstr("--probe-model"));
  EXPECT_TRUE(report.levels.empty());
  EXPECT_EQ(report.what, "");
  EXPECT_THAT(stage.model.requests, ElementsAre("GET /v1/models"));
}

TEST(Probe, IsShorterForAModelWithAShortContext) {
  Stage stage;
  stage.model.models = R"({"data":[{"id":"first","max_model_len":2048}]})";
  const ProbeReport report = stage.Run();
  EXPECT_THAT(report.what, HasSubstr("about 512 words"));
  EXPECT_LT(Said(stage.model.bodies[0], 0).size(), 4096u);
}

TEST(Probe, SaysWhatItSentAndUsesTheKey) {
  Stage stage;
  stage.options.api_key = "k-123";
  stage.options.most_at_once = 2;
  const ProbeReport report = stage.Run();
  EXPECT_THAT(stage.model.keys, testing::Each("Bearer k-123"));
  ASSERT_EQ(report.sent.size(), 2u);
  EXPECT_EQ(report.sent[0].method, "GET");
  EXPECT_EQ(report.sent[1].method, "POST");
  EXPECT_THAT(report.sent[1].target, HasSubstr("/v1/chat/completions"));
  EXPECT_EQ(report.sent[1].times, 32u);
  EXPECT_THAT(report.what, HasSubstr("32 requests for first, about 64000 prompt tokens"));
}

TEST(Probe, EndsAtTheFirstLevelThatFails) {
  Stage stage;
  stage.model.most_turns = 20;
  stage.options.most_at_once = 64;
  const ProbeReport report = stage.Run();
  ASSERT_EQ(report.levels.size(), 2u);
  EXPECT_GE(report.levels[1].errors, 1u);
  EXPECT_EQ(report.levels[1].first_problem, "status 429: too many");
  EXPECT_THAT(report.problem, HasSubstr("stopped at 2 conversations at once"));
  EXPECT_LE(stage.model.bodies.size(), 22u);
}

TEST(Probe, DoesNotTakeABrokenStreamForAnAnswer) {
  Stage stage;
  stage.model.usage = "nonsense";
  const ProbeReport report = stage.Run();
  ASSERT_EQ(report.levels.size(), 1u);
  EXPECT_EQ(report.levels[0].errors, 1u);
  EXPECT_THAT(report.problem, HasSubstr("not JSON"));
  EXPECT_EQ(report.levels[0].Ratio(), 0);
}

TEST(Probe, SaysThatNobodyListens) {
  ProbePlan options;
  options.endpoint.url = *Url::Parse("http://127.0.0.1:1");
  const ProbeReport report = RunProbe(options);
  EXPECT_THAT(report.problem, HasSubstr("connection refused"));
  EXPECT_TRUE(report.levels.empty());
}

}  // namespace
}  // namespace fathom
