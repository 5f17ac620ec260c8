#include "router/gateway/rosters.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace fathom {
namespace {

using std::chrono::seconds;

class RostersTest : public testing::Test {
 protected:
  std::shared_ptr<Worker> Join(const std::string& url, std::vector<std::string> models) {
    auto worker = *fleet_.Add({.url = url});
    Fleet::ModelReport report;
    report.models = std::move(models);
    fleet_.SetModels(worker->id(), std::move(report));
    fleet_.SetHealthy(worker->id());
    return worker;
  }
  Roster& Of(std::string_view model) { return rosters_.Of(*fleet_.Current(), model, now_); }
  // Workers and ranks that may be chosen.
  std::set<std::pair<std::string, uint32_t>> Present(std::string_view model) {
    const Roster& roster = Of(model);
    std::set<std::pair<std::string, uint32_t>> present;
    for (uint32_t i = 0; i < roster.size(); ++i) {
      if (roster.IsExcluded(i)) continue;
      present.emplace(roster.at(i).worker->spec().url, roster.at(i).rank->number);
    }
    EXPECT_EQ(present.size(), roster.present());
    return present;
  }
  using Expected = std::set<std::pair<std::string, uint32_t>>;

  TimePoint now_{seconds(100)};
  Fleet fleet_{BreakerOptions{.failures = 1, .open_for = seconds(5)}};
  Rosters rosters_;
};

TEST_F(RostersTest, HaveTheRanksOfTheModelOnly) {
  Join("http://a:1", {"m"});
  const auto several = Join("http://b:1", {"m", "n"});
  Join("http://c:1", {"n"});
  several->ranks.Know(0);
  several->ranks.Know(1);
  EXPECT_EQ(Present("m"), (Expected{{"http://a:1", 0}, {"http://b:1", 0}, {"http://b:1", 1}}));
  EXPECT_EQ(Present("n"), (Expected{{"http://b:1", 0}, {"http://b:1", 1}, {"http://c:1", 0}}));
}

TEST_F(RostersTest, AreKeptUntilSomethingChanges) {
  const auto a = Join("http://a:1", {"m", "alike"});
  const Roster* const first = &Of("m");
  EXPECT_EQ(&Of("m"), first);
  EXPECT_EQ(&Of("alike"), first) << "the same workers";
  a->ranks.Know(0);
  a->ranks.Know(1);
  EXPECT_EQ(Of("m").size(), 2u) << "a rank has come";
  Join("http://b:1", {"m"});
  EXPECT_EQ(Of("m").size(), 3u) << "a worker has come";
  fleet_.Remove(a->id());
  EXPECT_EQ(Present("m"), (Expected{{"http://b:1", 0}}));
  EXPECT_EQ(Of("alike").size(), 0u);
}

TEST_F(RostersTest, LeaveOutWorkersWhoseCircuitBreakerIsOpen) {
  const auto a = Join("http://a:1", {"m"});
  Join("http://b:1", {"m"});
  const Expected both{{"http://a:1", 0}, {"http://b:1", 0}};
  EXPECT_EQ(Present("m"), both);
  a->breaker.Trip(now_);
  EXPECT_EQ(Present("m"), (Expected{{"http://b:1", 0}}));
  now_ += seconds(5);
  EXPECT_EQ(Present("m"), both) << "one request may try";
  a->breaker.OnSend(now_);
  EXPECT_EQ(Present("m"), (Expected{{"http://b:1", 0}}));
  a->breaker.OnSuccess();
  EXPECT_EQ(Present("m"), both);
}

TEST_F(RostersTest, AreFewHoweverManyModelsThereAre) {
  for (size_t i = 0; i < 2 * Rosters::kMost; ++i) {
    Join("http://w:" + std::to_string(i), {"m" + std::to_string(i)});
  }
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 2 * Rosters::kMost; ++i) {
      EXPECT_EQ(Of("m" + std::to_string(i)).size(), 1u);
    }
  }
}

}  // namespace
}  // namespace fathom
