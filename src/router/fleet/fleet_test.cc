#include "router/fleet/fleet.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"

namespace fathom {
namespace {

WorkerSpec SpecOf(const std::string& url) {
  WorkerSpec spec;
  spec.url = url;
  return spec;
}

std::set<std::string> Urls(const std::vector<const Member*>& members) {
  std::set<std::string> urls;
  for (const Member* member : members) urls.insert(member->worker->spec().url);
  EXPECT_EQ(urls.size(), members.size()) << "somebody is listed twice";
  return urls;
}

class FleetTest : public testing::Test {
 protected:
  WorkerId Add(const std::string& url) { return (*fleet_.Add(SpecOf(url)))->id(); }
  WorkerId AddReady(const std::string& url, std::vector<std::string> models) {
    const WorkerId id = Add(url);
    Report(id, std::move(models));
    fleet_.SetHealthy(id);
    return id;
  }
  WorkerId AddReadyForAnything(const std::string& url) {
    const WorkerId id = Add(url);
    Fleet::ModelReport report;
    report.any_model = true;
    fleet_.SetModels(id, report);
    fleet_.SetHealthy(id);
    return id;
  }
  void Report(WorkerId id, std::vector<std::string> models) {
    Fleet::ModelReport report;
    report.cards.assign(models.size(), "{}");
    report.models = std::move(models);
    fleet_.SetModels(id, std::move(report));
  }
  std::set<std::string> Serving(std::string_view model) {
    return Urls(fleet_.Current()->Serving(model));
  }

  Fleet fleet_{BreakerOptions{}};
};

using Set = std::set<std::string>;

TEST_F(FleetTest, KnowsWhichModelsAreAdapters) {
  const WorkerId id = AddReady("http://a:1", {"base", "tuned"});
  EXPECT_FALSE(fleet_.Current()->IsAdapter("tuned"));
  // The same models, of which one turns out to be an adapter.
  fleet_.SetModels(id, {.models = {"base", "tuned"},
                        .cards = {"{}", "{}"},
                        .any_model = false,
                        .adapters = {"tuned"}});
  EXPECT_TRUE(fleet_.Current()->IsAdapter("tuned"));
  EXPECT_FALSE(fleet_.Current()->IsAdapter("base"));
  EXPECT_FALSE(fleet_.Current()->IsAdapter(""));
  fleet_.SetModels(id, {.models = {"base"}, .cards = {"{}"}, .any_model = false, .adapters = {}});
  EXPECT_FALSE(fleet_.Current()->IsAdapter("tuned"));
}

TEST_F(FleetTest, IsEmptyAtFirst) {
  const auto snapshot = fleet_.Current();
  EXPECT_TRUE(snapshot->members().empty());
  EXPECT_TRUE(snapshot->Serving("").empty());
  EXPECT_TRUE(snapshot->Serving("m").empty());
  EXPECT_TRUE(snapshot->KnowsModel("m")) << "too early to say";
}

TEST_F(FleetTest, RoutesOnlyToThoseThatAreReady) {
  const WorkerId a = Add("http://a:1");
  Report(a, {"m"});
  EXPECT_EQ(fleet_.Current()->Find(a)->state, WorkerState::kProbing);
  EXPECT_EQ(Serving("m"), Set{});
  EXPECT_TRUE(fleet_.Current()->KnowsModel("m"));
  fleet_.SetHealthy(a);
  EXPECT_EQ(Serving("m"), Set{"http://a:1"});
  EXPECT_EQ(fleet_.Current()->routable(), 1u);
  fleet_.SetUnhealthy(a, "ill");
  EXPECT_EQ(Serving("m"), Set{});
  EXPECT_EQ(fleet_.Current()->Find(a)->cause, "ill");
  EXPECT_TRUE(fleet_.Current()->KnowsModel("m")) << "it will be back";
  fleet_.SetHealthy(a);
  EXPECT_EQ(fleet_.Current()->Find(a)->cause, "");
}

TEST_F(FleetTest, CountsHowOftenAWorkerCame) {
  const WorkerId a = Add("http://a:1");
  EXPECT_EQ(fleet_.Current()->Find(a)->lives, 0u);
  for (int i = 0; i < 2; ++i) fleet_.SetHealthy(a);
  EXPECT_EQ(fleet_.Current()->Find(a)->lives, 1u);
  fleet_.SetUnhealthy(a, "ill");
  fleet_.SetHealthy(a);
  EXPECT_EQ(fleet_.Current()->Find(a)->lives, 2u);
  fleet_.SetUnhealthy(a, "ill");
  fleet_.SetMembership(a, Membership::kRefused, "block_size_conflict");
  EXPECT_EQ(fleet_.Current()->Find(a)->lives, 2u);
  fleet_.SetHealthy(a);
  EXPECT_EQ(fleet_.Current()->Find(a)->lives, 3u) << "what is excluded may be a new process, too";
  fleet_.SetMembership(a, Membership::kAdmitted);
  EXPECT_EQ(fleet_.Current()->Find(a)->lives, 3u) << "it is the same one";
}

// Learned slowness belongs to a process.
TEST_F(FleetTest, StartsEachRankAnewWhenItsWorkerComesBack) {
  const WorkerId a = Add("http://a");
  fleet_.SetHealthy(a);
  Rank& rank = fleet_.Current()->Find(a)->worker->ranks.only();
  const TimePoint now{std::chrono::hours(1)};
  for (int i = 0; i < 50; ++i) {
    rank.slowness.Observe({.work = 1000, .ratio = 9, .life = rank.life()}, rank.life(), now);
  }
  EXPECT_GT(rank.SlownessAt(now), 2);
  fleet_.SetUnhealthy(a, "stopped");
  fleet_.SetHealthy(a);
  EXPECT_EQ(rank.SlownessAt(now), 1);
}

TEST_F(FleetTest, DoesNotRouteToWhoIsHeldOrRefused) {
  const WorkerId id = Add("http://a");
  fleet_.SetMembership(id, Membership::kHeld);
  Report(id, {"m"});
  fleet_.SetHealthy(id);
  EXPECT_EQ(fleet_.Current()->Find(id)->state, WorkerState::kProbing);
  EXPECT_EQ(fleet_.Current()->routable(), 0u);
  fleet_.SetMembership(id, Membership::kRefused, "block_size_conflict");
  EXPECT_EQ(fleet_.Current()->Find(id)->state, WorkerState::kExcluded);
  EXPECT_EQ(fleet_.Current()->Find(id)->cause, "block_size_conflict");
  EXPECT_EQ(fleet_.Current()->routable(), 0u);
  fleet_.SetUnhealthy(id, "gone");
  EXPECT_EQ(fleet_.Current()->Find(id)->cause, "gone") << "what it is now, not what was decided";
  fleet_.SetMembership(id, Membership::kAdmitted);
  EXPECT_EQ(fleet_.Current()->Find(id)->state, WorkerState::kUnhealthy);
  fleet_.SetHealthy(id);
  EXPECT_EQ(fleet_.Current()->Find(id)->state, WorkerState::kReady);
  EXPECT_EQ(fleet_.Current()->Find(id)->lives, 2u) << "excluded once, ready once";
}

TEST_F(FleetTest, KnowsWhetherSomebodyMaySoonServeAModel) {
  const WorkerId id = Add("http://a");
  EXPECT_TRUE(fleet_.Current()->MaySoonServe("m")) << "it has not said what it serves";
  fleet_.SetMembership(id, Membership::kHeld);
  Report(id, {"m"});
  fleet_.SetHealthy(id);
  EXPECT_TRUE(fleet_.Current()->MaySoonServe("m"));
  EXPECT_TRUE(fleet_.Current()->MaySoonServe(""));
  EXPECT_FALSE(fleet_.Current()->MaySoonServe("n"));
  fleet_.SetMembership(id, Membership::kRefused);
  EXPECT_FALSE(fleet_.Current()->MaySoonServe("m"));
  fleet_.SetUnhealthy(id, "gone");
  EXPECT_FALSE(fleet_.Current()->MaySoonServe("m"));
}

TEST_F(FleetTest, FindsTheWorkersOfAModelAndAllOfThemForNoModel) {
  AddReady("http://a:1", {"m", "n"});
  AddReady("http://b:1", {"n"});
  EXPECT_EQ(Serving("m"), Set{"http://a:1"});
  EXPECT_EQ(Serving("n"), (Set{"http://a:1", "http://b:1"}));
  EXPECT_EQ(Serving(""), (Set{"http://a:1", "http://b:1"}));
  EXPECT_EQ(Serving("o"), Set{});
}

TEST_F(FleetTest, AssumesThatWhoCannotSayServesEverything) {
  AddReady("http://a:1", {"m"});
  const WorkerId any = AddReadyForAnything("http://any:1");
  EXPECT_EQ(Serving("m"), (Set{"http://a:1", "http://any:1"}));
  EXPECT_EQ(Serving("unheard of"), Set{"http://any:1"});
  EXPECT_TRUE(fleet_.Current()->KnowsModel("unheard of"));
  Report(any, {"n"});
  EXPECT_EQ(Serving("unheard of"), Set{});
  EXPECT_FALSE(fleet_.Current()->KnowsModel("unheard of"));
}

// Otherwise its clients get "model not found" and do not retry.
TEST_F(FleetTest, KnowsEveryModelWhileWhoServesEverythingIsOnlyIll) {
  const WorkerId any = AddReadyForAnything("http://any:1");
  fleet_.SetUnhealthy(any, "restarting");
  EXPECT_EQ(Serving("m"), Set{});
  EXPECT_TRUE(fleet_.Current()->KnowsModel("m"));
}

TEST_F(FleetTest, RulesNoModelOutWhileSomebodyIsAskedForTheFirstTime) {
  AddReady("http://a:1", {"m"});
  EXPECT_FALSE(fleet_.Current()->KnowsModel("n"));
  const WorkerId b = Add("http://b:1");
  EXPECT_TRUE(fleet_.Current()->KnowsModel("n"));
  EXPECT_EQ(Serving("n"), Set{});
  fleet_.SetUnhealthy(b, "never up");
  EXPECT_FALSE(fleet_.Current()->KnowsModel("n"))
      << "a typo must not be told to try again for ever";
}

TEST_F(FleetTest, RulesNoModelOutWhileNobodyHasEverReported) {
  fleet_.SetUnhealthy(Add("http://a:1"), "not up yet");
  EXPECT_TRUE(fleet_.Current()->KnowsModel("n"));
}

TEST_F(FleetTest, RefusesAWorkerThatIsThereAlready) {
  const WorkerId a = Add("http://a:1");
  const auto again = fleet_.Add(SpecOf("http://a:1"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().blame, Blame::kCaller);
  EXPECT_TRUE(fleet_.Remove(a));
  EXPECT_FALSE(fleet_.Remove(a));
  EXPECT_TRUE(fleet_.Add(SpecOf("http://a:1"))) << "it may come back";
  EXPECT_EQ(fleet_.Current()->Find(a)->state, WorkerState::kProbing) << "as a newcomer";
}

TEST_F(FleetTest, HasALimit) {
  Fleet fleet{BreakerOptions{}};
  size_t added = 0;
  while (fleet.Add(SpecOf("http://w:" + std::to_string(added)))) ++added;
  EXPECT_EQ(added, Fleet::kMaxWorkers);
  EXPECT_EQ(fleet.Add(SpecOf("http://one-more:1")).error().blame, Blame::kOverload);
}

// What one worker changes must not copy the others: a fleet of thousands would take minutes.
TEST_F(FleetTest, SharesWhatHasNotChangedWithEarlierSnapshots) {
  const WorkerId a = AddReady("http://a:1", {"m"});
  const WorkerId b = AddReady("http://b:1", {"m"});
  AddReady("http://c:1", {"n"});
  const auto before = fleet_.Current();
  fleet_.SetUnhealthy(a, "gone");
  const auto after = fleet_.Current();
  EXPECT_NE(before->Find(a), after->Find(a));
  EXPECT_EQ(before->Find(a)->state, WorkerState::kReady) << "a snapshot does not change";
  EXPECT_EQ(before->Find(b), after->Find(b));
  EXPECT_NE(&before->Serving("m"), &after->Serving("m"));
  EXPECT_EQ(&before->Serving("n"), &after->Serving("n"));
}

TEST_F(FleetTest, FindsEachOfManyWorkers) {
  std::vector<WorkerId> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(Add("http://w:" + std::to_string(i)));
  for (size_t i = 0; i < ids.size(); i += 3) fleet_.Remove(ids[i]);
  const auto snapshot = fleet_.Current();
  for (size_t i = 0; i < ids.size(); ++i) {
    const Member* const member = snapshot->Find(ids[i]);
    ASSERT_EQ(member != nullptr, i % 3 != 0);
    if (member != nullptr) {
      EXPECT_EQ(member->worker->id(), ids[i]);
    }
  }
  EXPECT_EQ(snapshot->Find(WorkerId(1)), nullptr);
}

TEST_F(FleetTest, ForgetsAnAdapterWithTheLastWorkerThatHasIt) {
  Fleet::ModelReport report{.models = {"base", "lora"}, .cards = {}, .any_model = false};
  report.adapters = {"lora"};
  report.bases = {{"lora", "base"}};
  const WorkerId a = Add("http://a:1");
  const WorkerId b = Add("http://b:1");
  fleet_.SetModels(a, report);
  fleet_.SetModels(b, report);
  fleet_.Remove(a);
  EXPECT_TRUE(fleet_.Current()->IsAdapter("lora"));
  EXPECT_EQ(fleet_.Current()->BaseOf("lora"), "base");
  fleet_.Remove(b);
  EXPECT_FALSE(fleet_.Current()->IsAdapter("lora"));
  EXPECT_EQ(fleet_.Current()->BaseOf("lora"), "");
}

TEST_F(FleetTest, MakesANewSnapshotOnlyWhenSomethingHasChanged) {
  const WorkerId a = AddReady("http://a:1", {"m"});
  const uint64_t version = fleet_.version();
  fleet_.SetHealthy(a);
  Report(a, {"m"});
  fleet_.SetHealthy(WorkerId(12345));
  fleet_.SetUnhealthy(WorkerId(12345), "who?");
  fleet_.Remove(WorkerId(12345));
  EXPECT_FALSE(fleet_.Add(SpecOf("http://a:1")));
  EXPECT_EQ(fleet_.version(), version);
  Report(a, {"m", "n"});
  EXPECT_GT(fleet_.version(), version);
}

TEST_F(FleetTest, LeavesOldSnapshotsAsTheyWere) {
  const WorkerId a = AddReady("http://a:1", {"m"});
  const auto old = fleet_.Current();
  fleet_.Remove(a);
  EXPECT_EQ(Urls(old->Serving("m")), Set{"http://a:1"});
  EXPECT_NE(old->Find(a), nullptr);
  EXPECT_EQ(fleet_.Current()->Find(a), nullptr);
}

TEST_F(FleetTest, ShowsAReaderTheNewestSnapshotAndTheSameOneWhileNothingChanges) {
  FleetReader reader(fleet_);
  const auto first = reader.Get();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reader.Get(), first);
  Add("http://a:1");
  EXPECT_NE(reader.Get(), first);
  EXPECT_EQ(reader.Get()->members().size(), 1u);
  EXPECT_EQ(reader.Get(), fleet_.Current());
}

TEST_F(FleetTest, CanBeReadWhileItIsChanged) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      FleetReader reader(fleet_);
      size_t last = 0;
      while (!stop || last < 200) {
        const auto& snapshot = reader.Get();
        for (const Member* member : snapshot->Serving("m")) {
          ASSERT_EQ(member->state, WorkerState::kReady);
        }
        ASSERT_GE(snapshot->members().size(), last) << "it only grows here";
        last = snapshot->members().size();
      }
    });
  }
  for (int i = 0; i < 200; ++i) AddReady("http://w:" + std::to_string(i), {"m"});
  stop = true;
  for (auto& reader : readers) reader.join();
}

// After any sequence of changes, a snapshot equals a plain list of workers.
TEST(FleetProperty, AgreesWithANaiveModel) {
  struct Naive {
    bool probing = true;
    bool ready = false;
    bool reported = false;
    bool any = false;
    std::set<std::string> models;
  };
  Random random(11);
  Fleet fleet{BreakerOptions{}};
  std::map<std::string, Naive> model;
  const std::vector<std::string> names = {"m0", "m1", "m2", "m3"};
  for (int step = 0; step < 5000; ++step) {
    const std::string url = "http://w:" + std::to_string(random.Below(8));
    const WorkerId id = WorkerId::OfUrl(url);
    const bool there = model.contains(url);
    switch (random.Below(5)) {
      case 0:
        ASSERT_EQ(fleet.Add(SpecOf(url)).has_value(), !there);
        model.try_emplace(url);
        break;
      case 1:
        ASSERT_EQ(fleet.Remove(id), there);
        model.erase(url);
        break;
      case 2:
        fleet.SetHealthy(id);
        if (there) model[url].ready = true;
        if (there) model[url].probing = false;
        break;
      case 3:
        fleet.SetUnhealthy(id, "x");
        if (there) model[url].ready = false;
        if (there) model[url].probing = false;
        break;
      default: {
        Fleet::ModelReport report;
        report.any_model = random.Below(4) == 0;
        for (const auto& name : names) {
          if (!report.any_model && random.Below(2) == 0) report.models.push_back(name);
        }
        if (there) {
          model[url].reported = true;
          model[url].any = report.any_model;
          model[url].models = {report.models.begin(), report.models.end()};
        }
        fleet.SetModels(id, std::move(report));
      }
    }
    const auto snapshot = fleet.Current();
    ASSERT_EQ(snapshot->members().size(), model.size());
    for (const std::string& name : {names[0], names[1], names[2], names[3], std::string("other")}) {
      Set serving;
      bool anyone_reported = false;
      bool known = false;
      for (const auto& [worker, naive] : model) {
        const bool serves = naive.any || naive.models.contains(name);
        known = known || serves || (naive.probing && !naive.reported);
        anyone_reported = anyone_reported || naive.reported;
        if (serves && naive.ready) serving.insert(worker);
      }
      ASSERT_EQ(Urls(snapshot->Serving(name)), serving) << name;
      ASSERT_EQ(snapshot->KnowsModel(name), known || !anyone_reported) << name;
    }
  }
}

class SlicedFleetTest : public testing::Test {
 protected:
  WorkerId Add(const std::string& url) { return (*fleet_.Add(SpecOf(url)))->id(); }
  void Report(WorkerId id, std::vector<std::string> models) {
    Fleet::ModelReport report;
    for (const std::string& model : models) report.cards.push_back("card of " + model);
    report.models = std::move(models);
    fleet_.SetModels(id, fleet_.Narrow(std::move(report)));
  }
  Member Get(WorkerId id) { return *fleet_.Current()->Find(id); }

  Fleet fleet_{BreakerOptions{}, Fleet::kMaxWorkers, *ModelSlice::Of({"llama*"})};
};

TEST_F(SlicedFleetTest, FollowsAWorkerOnceItReportsAModelOfTheSlice) {
  const WorkerId id = Add("http://a:1");
  EXPECT_FALSE(Get(id).followed);
  Report(id, {"llama-8b"});
  EXPECT_TRUE(Get(id).followed);
  EXPECT_EQ(Get(id).state, WorkerState::kProbing);
  fleet_.SetHealthy(id);
  EXPECT_EQ(Get(id).state, WorkerState::kReady);
}

TEST_F(SlicedFleetTest, ServesTheModelsOfTheSliceAlone) {
  const WorkerId id = Add("http://a:1");
  fleet_.SetHealthy(id);
  Report(id, {"llama-8b", "qwen"});
  EXPECT_EQ(Get(id).models, std::vector<std::string>{"llama-8b"});
  EXPECT_EQ(Get(id).model_cards, std::vector<std::string>{"card of llama-8b"});
  EXPECT_TRUE(fleet_.Current()->KnowsModel("llama-8b"));
  EXPECT_FALSE(fleet_.Current()->KnowsModel("qwen"));
}

TEST_F(SlicedFleetTest, KeepsAWorkerOfOtherModelsOutsideUntilItsModelsChange) {
  const WorkerId id = Add("http://a:1");
  fleet_.SetHealthy(id);
  Report(id, {"a", "b", "c", "d"});
  EXPECT_EQ(Get(id).state, WorkerState::kOutside);
  EXPECT_EQ(Name(Get(id).state), "outside");
  EXPECT_EQ(Get(id).cause, "serves none of --models: it serves a, b, c, ...");
  EXPECT_FALSE(Get(id).followed);
  EXPECT_TRUE(Get(id).models.empty());
  EXPECT_EQ(fleet_.Current()->routable(), 0u);
  const uint64_t lives = Get(id).lives;
  Report(id, {"a", "llama"});
  EXPECT_EQ(Get(id).state, WorkerState::kReady);
  EXPECT_EQ(Get(id).cause, "");
  EXPECT_TRUE(Get(id).followed);
  EXPECT_EQ(Get(id).lives, lives + 1) << "what is known of it may be old";
  Report(id, {});
  EXPECT_EQ(Get(id).state, WorkerState::kOutside);
  EXPECT_EQ(Get(id).cause, "serves none of --models");
}

TEST_F(SlicedFleetTest, ShowsAWorkerOutsideWhateverItsHealth) {
  const WorkerId id = Add("http://a:1");
  fleet_.SetHealthy(id);
  Report(id, {"qwen"});
  fleet_.SetUnhealthy(id, "refused");
  EXPECT_EQ(Get(id).state, WorkerState::kOutside);
  fleet_.SetMembership(id, Membership::kRefused, "block_size_conflict");
  EXPECT_EQ(Get(id).state, WorkerState::kOutside);
  Report(id, {"llama"});
  EXPECT_EQ(Get(id).state, WorkerState::kUnhealthy);
}

TEST_F(SlicedFleetTest, FollowsAWorkerThatDoesNotReportItsModels) {
  const WorkerId id = Add("http://a:1");
  Fleet::ModelReport report;
  report.any_model = true;
  fleet_.SetModels(id, fleet_.Narrow(report));
  EXPECT_TRUE(Get(id).followed);
}

TEST_F(SlicedFleetTest, NarrowsAdaptersByTheirOwnNames) {
  Fleet::ModelReport report{.models = {"llama", "llama-lora", "lora"}, .cards = {"1", "2", "3"}};
  report.adapters = {"llama-lora", "lora"};
  report.bases = {{"llama-lora", "llama"}, {"lora", "llama"}};
  const Fleet::ModelReport kept = fleet_.Narrow(report);
  EXPECT_EQ(kept.models, (std::vector<std::string>{"llama", "llama-lora"}));
  EXPECT_EQ(kept.cards, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(kept.adapters, std::vector<std::string>{"llama-lora"});
  EXPECT_EQ(kept.bases.size(), 1u);
  EXPECT_EQ(kept.others, std::vector<std::string>{"lora"});
  EXPECT_FALSE(kept.outside);
}

}  // namespace
}  // namespace fathom
