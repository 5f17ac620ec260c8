#include "io/client/conversations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "codec/json.h"
#include "testing/loopback_server.h"

namespace fathom {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

// Streams the same answer to every client, and records the requests.
class Parrot final : public HttpHandler {
 public:
  explicit Parrot(std::string events) : events_(std::move(events)) {}

  Task<void> Handle(ServerConnection& connection) override {
    auto reading = connection.ReadBody();
    const auto body = co_await reading;
    const Header* const session = connection.head().headers.Find("x-session-id");
    sessions.emplace_back(session == nullptr ? "" : session->value);
    bodies.push_back(*Json::Parse(*body));
    const Answer answer{.content_type = "text/event-stream", .body = events_};
    auto responding = connection.Respond(answer);
    co_await responding;
  }
  Answer Refuse(const RequestProblem& problem) override { return {.status = problem.status}; }

  std::vector<Json> bodies;
  std::vector<std::string> sessions;

 private:
  const std::string events_;
};

constexpr std::string_view kAnswer =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"well \"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"yes\"}}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":2,"
    "\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\n"
    "data: [DONE]\n\n";

// One person and the parrot, until `turns` turns have completed or failed.
ConversationReport Talk(Parrot& parrot, uint64_t turns, ConversationOptions options = {}) {
  LoopThread thread;
  LoopbackServer server(thread, parrot);
  Resolver resolver;
  options.endpoint.url = *Url::Parse("http://" + server.address().ToString());
  options.people = 1;
  options.turns = 2;
  options.opening_words = 3;
  options.reply_words = 1;
  options.think = Duration::zero();
  Conversations conversations(thread.loop(), resolver, options);
  thread.Call([&] { conversations.Start(); });
  const auto check = [&] {
    if (conversations.report().completed + conversations.report().errors >= turns) {
      conversations.Stop();
    }
    return conversations.present() == 0;
  };
  for (bool over = false; !over; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    thread.Call([&] { over = check(); });
  }
  ConversationReport report;
  thread.Call([&] { report = conversations.report(); });
  return report;
}

std::vector<std::string> Roles(const Json& body) {
  std::vector<std::string> roles;
  for (const Json& message : *body.Find("messages")->array()) {
    roles.push_back(*message.Find("role")->string());
  }
  return roles;
}

std::string Said(const Json& body, size_t message) {
  return *(*body.Find("messages")->array())[message].Find("content")->string();
}

std::string Text(const Json& body) {
  std::string text;
  body.WriteTo(text);
  return text;
}

TEST(Conversations, AFollowUpBringsAlongWhatWasSaidBefore) {
  Parrot parrot{std::string(kAnswer)};
  Talk(parrot, 3);
  ASSERT_GE(parrot.bodies.size(), 3u);
  EXPECT_THAT(Roles(parrot.bodies[0]), ElementsAre("user"));
  EXPECT_THAT(Roles(parrot.bodies[1]), ElementsAre("user", "assistant", "user"));
  EXPECT_THAT(Roles(parrot.bodies[2]), ElementsAre("user"));  // a new conversation
  EXPECT_EQ(Said(parrot.bodies[1], 1), "well yes");
  EXPECT_EQ(Said(parrot.bodies[1], 0), Said(parrot.bodies[0], 0));
}

TEST(Conversations, AllBeginWithTheSystemPromptThatTheyShare) {
  Parrot parrot{std::string(kAnswer)};
  const ConversationReport report = Talk(parrot, 3, {.system_words = 5});
  ASSERT_GE(parrot.bodies.size(), 3u);
  EXPECT_THAT(Roles(parrot.bodies[0]), ElementsAre("system", "user"));
  EXPECT_THAT(Roles(parrot.bodies[1]), ElementsAre("system", "user", "assistant", "user"));
  EXPECT_THAT(Roles(parrot.bodies[2]), ElementsAre("system", "user"));
  EXPECT_EQ(Said(parrot.bodies[0], 0), Said(parrot.bodies[2], 0));
  EXPECT_NE(Said(parrot.bodies[0], 1), Said(parrot.bodies[2], 1));
  EXPECT_GE(report.first_turn.count(), 2u);
  EXPECT_GE(report.follow_up.count(), 1u);
}

TEST(Conversations, AreTheSameWithTheSameSeed) {
  Parrot one{std::string(kAnswer)};
  Parrot same{std::string(kAnswer)};
  Parrot other{std::string(kAnswer)};
  Talk(one, 3, {.system_words = 5, .seed = 7});
  Talk(same, 3, {.system_words = 5, .seed = 7});
  Talk(other, 3, {.system_words = 5, .seed = 8});
  for (size_t turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(Text(one.bodies[turn]), Text(same.bodies[turn]));
    EXPECT_NE(Text(one.bodies[turn]), Text(other.bodies[turn]));
  }
}

TEST(Conversations, TellFirstTurnsFromFollowUpsAndCountWhatWasReused) {
  Parrot parrot{std::string(kAnswer)};
  const ConversationReport report = Talk(parrot, 4);
  EXPECT_EQ(report.errors, 0u) << report.first_problem;
  EXPECT_EQ(report.first_turn.count() + report.follow_up.count(), report.completed);
  EXPECT_GE(report.first_turn.count(), 2u);
  EXPECT_GE(report.follow_up.count(), 2u);
  EXPECT_EQ(report.tokens, 2 * report.completed);
  EXPECT_EQ(report.prompt_tokens, 30 * report.completed);
  EXPECT_EQ(report.cached_tokens, 16 * report.completed);
}

TEST(Conversations, NameTheirSessionOnlyWhenAsked) {
  Parrot silent{std::string(kAnswer)};
  Talk(silent, 2);
  EXPECT_THAT(silent.sessions, Each(IsEmpty()));
  Parrot named{std::string(kAnswer)};
  Talk(named, 3, {.sessions = true});
  ASSERT_GE(named.sessions.size(), 3u);
  EXPECT_EQ(named.sessions[0], named.sessions[1]);
  EXPECT_NE(named.sessions[1], named.sessions[2]);
}

TEST(Conversations, AnErrorEventOrAnEndWithoutDoneIsAFailedTurn) {
  for (const std::string events : {"data: {\"error\":{\"message\":\"x\"}}\n\n",
                                   "data: {\"choices\":[]}\n\n", "data: nonsense\n\n"}) {
    Parrot parrot{events};
    const ConversationReport report = Talk(parrot, 1);
    EXPECT_GE(report.errors, 1u) << events;
    EXPECT_EQ(report.completed, 0u) << events;
  }
}

TEST(MakeWords, DependOnTheSeedAlone) {
  Random a(1);
  Random b(1);
  Random c(2);
  const std::string words = MakeWords(a, 20);
  EXPECT_EQ(words, MakeWords(b, 20));
  EXPECT_NE(words, MakeWords(c, 20));
}

}  // namespace
}  // namespace fathom
