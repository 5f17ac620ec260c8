#include "router/gateway/tokenize_roster.h"

#include <gtest/gtest.h>

#include <map>

namespace fathom {
namespace {

using Outcome = TokenizeRoster::Outcome;
using std::chrono::milliseconds;
using std::chrono::seconds;

class TokenizeRosterTest : public testing::Test {
 protected:
  WorkerId Add(const std::string& url, std::vector<std::string> models = {"m"}) {
    WorkerSpec spec;
    spec.url = url;
    const WorkerId id = (*fleet_.Add(spec))->id();
    Fleet::ModelReport report;
    report.cards.assign(models.size(), "{}");
    report.models = std::move(models);
    fleet_.SetModels(id, std::move(report));
    fleet_.SetHealthy(id);
    return id;
  }

  std::expected<WorkerId, TokenFailure> Select(std::vector<WorkerId> tried = {},
                                               std::string_view model = "m") {
    const auto selected = roster_.Select(*fleet_.Current(), model, tried, now_);
    if (!selected) return std::unexpected(selected.error());
    return (*selected)->id();
  }
  // Asks the next worker, which reports `outcome`.
  std::expected<WorkerId, TokenFailure> Ask(Outcome outcome = Outcome::kAnswered) {
    const auto selected = Select();
    if (selected) roster_.Report(*selected, outcome, now_);
    return selected;
  }

  Log log_{2, LogLevel::kOff};
  Fleet fleet_{BreakerOptions{}};
  TokenizeRoster roster_{log_, milliseconds(250)};
  TimePoint now_{seconds(1000)};
};

TEST_F(TokenizeRosterTest, GoesRoundTheWorkersOfTheModel) {
  const WorkerId a = Add("http://a:1");
  const WorkerId b = Add("http://b:1");
  Add("http://c:1", {"other"});
  std::map<WorkerId, int> asked;
  for (int i = 0; i < 10; ++i) ++asked[*Ask()];
  EXPECT_EQ(asked[a], 5);
  EXPECT_EQ(asked[b], 5);
  EXPECT_EQ(asked.size(), 2u);
}

TEST_F(TokenizeRosterTest, PassesOverThoseThatWereTriedAndWhoseBreakerIsOpen) {
  const WorkerId a = Add("http://a:1");
  const WorkerId b = Add("http://b:1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Select({a}), b);
  EXPECT_EQ(Select({a, b}), std::unexpected(TokenFailure::kError));
  fleet_.Current()->Find(b)->worker->breaker.Trip(now_);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Select(), a);
}

TEST_F(TokenizeRosterTest, LetsAWorkerRestThatFailed) {
  Add("http://a:1");
  ASSERT_TRUE(Ask(Outcome::kFailed));
  EXPECT_EQ(Ask(), std::unexpected(TokenFailure::kError));
  now_ += TokenizeRoster::kRest;
  EXPECT_TRUE(Ask());
  EXPECT_TRUE(Ask());
}

TEST_F(TokenizeRosterTest, SparesAWorkerThatIsSilentUntilItAnswers) {
  const WorkerId a = Add("http://a:1");
  ASSERT_TRUE(Select());
  now_ += milliseconds(250);
  ASSERT_TRUE(Select()) << "not yet";
  now_ += milliseconds(1);
  EXPECT_EQ(Select(), a) << "late, but there is no other";
  const WorkerId b = Add("http://b:1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Select(), b);
  now_ += TokenizeRoster::kSilence + milliseconds(1);
  EXPECT_FALSE(Select()) << "neither has answered any of its questions";
  roster_.Report(a, Outcome::kAnswered, now_);
  EXPECT_EQ(Select(), a);
}

TEST_F(TokenizeRosterTest, AsksTheLeastLoadedWorker) {
  const WorkerId a = Add("http://a:1");
  const WorkerId b = Add("http://b:1");
  const WorkerId c = Add("http://c:1");
  fleet_.Current()->Find(a)->worker->in_flight = 5;
  fleet_.Current()->Find(c)->worker->in_flight = 2;
  EXPECT_EQ(Select(), b);
  EXPECT_EQ(Select(), b);
  EXPECT_TRUE(Select()) << "b has two questions open, as many as c has requests";
  EXPECT_EQ(Select({b, c}), a);
  fleet_.Current()->Find(a)->worker->in_flight = 0;
  EXPECT_EQ(Select({b, c}), a);
}

TEST_F(TokenizeRosterTest, DoesNotTakeAWorkerForSilentThatWasNotAsked) {
  Add("http://a:1");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Ask());
    now_ += seconds(10);
  }
}

TEST_F(TokenizeRosterTest, KnowsForAMinuteThatNobodyCanTokenize) {
  Add("http://a:1");
  Add("http://b:1");
  ASSERT_TRUE(Ask(Outcome::kUnsupported));
  ASSERT_TRUE(Ask(Outcome::kUnsupported)) << "the other one is still asked";
  EXPECT_EQ(Ask(), std::unexpected(TokenFailure::kUnsupported));
  now_ += TokenizeRoster::kUnsupportedFor;
  EXPECT_TRUE(Ask()) << "engines are restarted with other versions";
}

TEST_F(TokenizeRosterTest, HoldsAMissingEndpointAgainstNoOtherWorker) {
  Add("http://a:1");
  ASSERT_TRUE(Ask(Outcome::kUnsupported));
  const WorkerId b = Add("http://b:1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Ask(), b);
}

TEST_F(TokenizeRosterTest, HasNobodyToAskInAnEmptyFleet) {
  EXPECT_EQ(Select(), std::unexpected(TokenFailure::kError));
}

}  // namespace
}  // namespace fathom
