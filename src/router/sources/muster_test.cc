#include "router/sources/muster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/random.h"
#include "router/sources/worker_sources.h"
#include "testing/becomes.h"

namespace fathom {
namespace {

using ClaimRank = Muster::Rank;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// No worker is probed: the prober's loop never runs.
class MusterTest : public testing::Test {
 protected:
  static constexpr size_t kWorkers = 4;  // at most
  ~MusterTest() override { ::close(log_file_); }

  static Claim Of(const std::string& url) {
    Claim claim;
    claim.entry.url = url;
    return claim;
  }
  static WorkerId IdOf(const std::string& url) { return WorkerId::OfUrl(url); }

  const Member* Find(const std::string& url) {
    snapshot_ = fleet_.Current();
    return snapshot_->Find(IdOf(url));
  }
  std::vector<std::string> Urls() const {
    std::vector<std::string> urls;
    for (const Member& member : fleet_.Current()->members()) {
      urls.push_back(member.worker->spec().url);
    }
    return urls;
  }
  bool Says(std::string_view what) const {
    return Becomes([&] {
      std::string text(1 << 20, '\0');
      text.resize(static_cast<size_t>(pread(log_file_, text.data(), text.size(), 0)));
      return text.contains(what);
    });
  }

  const int log_file_ = memfd_create("log", 0);
  Log log_{log_file_, LogLevel::kInfo};
  Loop unused_;
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}, kWorkers};
  Prober prober_{unused_, resolver_, fleet_, ProbeOptions{}, log_};
  std::map<std::string, std::string> variables_{{"LISTED", "l"}, {"SECRET", "s"}, {"OTHER", "o"}};
  Directory directory_{fleet_,
                       prober_,
                       [this](const std::string& name) -> std::optional<std::string> {
                         const auto found = variables_.find(name);
                         if (found == variables_.end()) return std::nullopt;
                         return found->second;
                       },
                       log_,
                       nullptr,
                       nullptr,
                       {"LISTED"}};
  Muster muster_{directory_, log_};
  std::shared_ptr<const FleetSnapshot> snapshot_;
};

constexpr const char* kA = "http://a:8000";
constexpr const char* kB = "http://b:8000";

TEST_F(MusterTest, EachSettingComesFromTheStrongestClaimThatHasIt) {
  const auto late = muster_.Open("late", ClaimRank::kFound);
  const auto admin = muster_.Open("POST /workers", ClaimRank::kAdmin);
  const auto later = muster_.Open("later", ClaimRank::kFound);
  const auto own = muster_.Open("configuration", ClaimRank::kOperator);
  Claim weak = Of(kA);
  weak.entry.kv_events = "tcp://later:1";
  weak.entry.kv_events_replay = "tcp://later:2";
  weak.entry.kv_events_topic = "later";
  weak.entry.role = "prefill";
  weak.entry.labels = {{"a", "later"}, {"b", "later"}, {"c", "later"}};
  ASSERT_TRUE(later->Put(weak));
  Claim middle = Of(kA);
  middle.entry.kv_events_replay = "tcp://late:2";
  middle.entry.role = "decode";
  middle.entry.labels = {{"a", "late"}, {"b", "late"}};
  ASSERT_TRUE(late->Put(middle));
  Claim strong = Of("http://A:8000/");
  strong.entry.kv_events_topic = "";
  strong.entry.labels = {{"a", "own"}};
  strong.place = "config.yaml:3";
  ASSERT_TRUE(own->Put(strong));
  ASSERT_TRUE(admin->Put(Of(kA)));

  const Member* member = Find(kA);
  ASSERT_NE(member, nullptr);
  EXPECT_EQ(member->worker->spec().kv_events, "tcp://later:1");
  EXPECT_EQ(member->worker->spec().kv_events_replay, "tcp://late:2");
  EXPECT_EQ(member->worker->spec().kv_events_topic, "");
  EXPECT_EQ(member->origin->role, "decode");
  EXPECT_THAT(member->origin->labels,
              ElementsAre(Pair("a", "own"), Pair("b", "late"), Pair("c", "later")));
  EXPECT_THAT(member->origin->sources,
              ElementsAre("config.yaml:3", "POST /workers", "late", "later"));
  EXPECT_THAT(Urls(), ElementsAre(kA));
}

// Else a source could send any secret of the router to an address that it chooses.
TEST_F(MusterTest, TheAuthorityOfTheOperatorsOwnWorkerIsNobodyElsesWord) {
  const auto own = muster_.Open("configuration", ClaimRank::kOperator);
  const auto found = muster_.Open("etcd", ClaimRank::kFound);
  Claim mine = Of("https://a:8000");
  mine.entry.from = WorkerRequest::From::kOperator;
  ASSERT_TRUE(own->Put(mine));
  Claim theirs = Of("https://a:8000");
  theirs.entry.ca_file = "/no/such/file.pem";
  EXPECT_TRUE(found->Put(theirs)) << "it is not read";
  EXPECT_EQ(Find("https://a:8000")->worker->spec().ca_file, "");
}

TEST_F(MusterTest, AKeysVariableIsAllowedToWhoNamesIt) {
  const auto own = muster_.Open("configuration", ClaimRank::kOperator);
  const auto found = muster_.Open("etcd", ClaimRank::kFound);
  Claim plain = Of(kA);
  plain.entry.from = WorkerRequest::From::kOperator;
  ASSERT_TRUE(own->Put(plain));
  Claim steals = Of(kA);
  steals.entry.api_key_env = "SECRET";
  const auto refused = found->Put(steals);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("--worker-key-env does not list"));
  EXPECT_FALSE(found->Check(steals));
  EXPECT_THAT(found->Workers(), IsEmpty());
  EXPECT_EQ(Find(kA)->worker->spec().api_key, "");

  steals.entry.api_key_env = "LISTED";
  ASSERT_TRUE(found->Put(steals));
  EXPECT_EQ(Find(kA)->worker->spec().api_key, "l");
  plain.entry.api_key_env = "SECRET";
  ASSERT_TRUE(own->Put(plain));
  EXPECT_EQ(Find(kA)->worker->spec().api_key, "s");
}

TEST_F(MusterTest, AWorkerLeavesWithItsLastClaim) {
  const auto one = muster_.Open("one", ClaimRank::kFound);
  auto two = muster_.Open("two", ClaimRank::kFound);
  ASSERT_TRUE(one->Put(Of(kA)));
  ASSERT_TRUE(two->Put(Of(kA)));
  ASSERT_TRUE(two->Put(Of(kB)));
  const Worker* const worker = Find(kA)->worker.get();
  EXPECT_TRUE(one->Drop(IdOf(kA), "x"));
  EXPECT_FALSE(one->Drop(IdOf(kA), "x"));
  ASSERT_NE(Find(kA), nullptr);
  EXPECT_EQ(Find(kA)->worker.get(), worker);  // its index was kept
  EXPECT_THAT(Find(kA)->origin->sources, ElementsAre("two"));
  ASSERT_TRUE(one->Put(Of(kA)));
  two.reset();
  EXPECT_THAT(Urls(), ElementsAre(kA));
  EXPECT_EQ(Find(kA)->worker.get(), worker);
  EXPECT_TRUE(one->Drop(IdOf(kA), "x"));
  EXPECT_THAT(Urls(), IsEmpty());
}

TEST_F(MusterTest, AnEndingProcessLosesNoWorker) {
  {
    const auto own = muster_.Open("configuration", ClaimRank::kOperator);
    ASSERT_TRUE(own->Put(Of(kA)));
    muster_.End();
  }
  EXPECT_THAT(Urls(), ElementsAre(kA));
}

TEST_F(MusterTest, LabelsAndReadinessChangeInPlace) {
  const auto one = muster_.Open("one", ClaimRank::kFound);
  const auto two = muster_.Open("two", ClaimRank::kFound);
  ASSERT_TRUE(one->Put(Of(kA)));
  ASSERT_TRUE(two->Put(Of(kA)));
  const auto worker = Find(kA)->worker;
  fleet_.SetHealthy(worker->id());
  EXPECT_EQ(Find(kA)->state, WorkerState::kReady);
  Claim other = Of(kA);
  other.entry.role = "decode";
  other.entry.labels = {{"zone", "b"}};
  other.says = SourceSays::kUnready;
  other.because = "not ready";
  ASSERT_TRUE(one->Put(other));
  EXPECT_EQ(Find(kA)->worker, worker);
  EXPECT_EQ(Find(kA)->state, WorkerState::kUnready);
  EXPECT_EQ(Find(kA)->checked, WorkerState::kReady);
  EXPECT_EQ(Find(kA)->cause, "not ready");
  EXPECT_EQ(Find(kA)->origin->role, "decode");
  Claim ends = Of(kA);
  ends.says = SourceSays::kDrain;
  ends.because = "it ends";
  ASSERT_TRUE(two->Put(ends));
  EXPECT_EQ(Find(kA)->state, WorkerState::kDraining);  // one of them is enough
  EXPECT_EQ(Find(kA)->cause, "it ends");
  ASSERT_TRUE(one->Put(Of(kA)));
  ASSERT_TRUE(two->Put(Of(kA)));
  EXPECT_EQ(Find(kA)->state, WorkerState::kReady);
  EXPECT_EQ(Find(kA)->cause, "");
  EXPECT_EQ(Find(kA)->worker, worker);
}

TEST_F(MusterTest, AnotherEventEndpointIsAnotherWorker) {
  const auto one = muster_.Open("one", ClaimRank::kFound);
  ASSERT_TRUE(one->Put(Of(kA)));
  const auto worker = Find(kA)->worker;
  Claim other = Of(kA);
  other.entry.kv_events = "tcp://a:5557";
  ASSERT_TRUE(one->Put(other));
  EXPECT_NE(Find(kA)->worker, worker);
  EXPECT_EQ(Find(kA)->worker->spec().kv_events, "tcp://a:5557");
  EXPECT_THAT(Urls(), ElementsAre(kA));
}

TEST_F(MusterTest, AClaimThatIsRefusedChangesNothing) {
  const auto one = muster_.Open("one", ClaimRank::kFound);
  ASSERT_TRUE(one->Put(Of(kA)));
  const auto worker = Find(kA)->worker;
  Claim bad = Of(kA);
  bad.entry.role = "decoder";
  EXPECT_THAT(one->Put(bad).error().what, HasSubstr("must be prefill, decode or both"));
  bad = Of(kA);
  bad.entry.kv_events = "http://a";
  EXPECT_FALSE(one->Put(bad));
  bad = Of(kA);
  bad.entry.labels = {{"x", std::string(Muster::kMaxLabelBytes, 'y')}};
  EXPECT_THAT(one->Put(bad).error().what, HasSubstr("at most 16384 are kept"));
  bad = Of("dns+http://a");
  EXPECT_FALSE(one->Put(bad));
  EXPECT_EQ(Find(kA)->worker, worker);
  EXPECT_THAT(one->Workers(), ElementsAre(IdOf(kA)));
}

TEST_F(MusterTest, WorkersThatDoNotFitJoinOnceThereIsRoom) {
  const auto one = muster_.Open("one", ClaimRank::kFound);
  for (size_t i = 0; i < kWorkers; ++i) {
    ASSERT_TRUE(one->Put(Of(fmt::format("http://w{}:1", i))));
  }
  // The first of those that wait cannot join, which must not hold up the second.
  const std::string first = IdOf(kA) < IdOf(kB) ? kA : kB;
  const std::string second = first == kA ? kB : kA;
  Claim keyed = Of(first);
  keyed.entry.api_key_env = "LISTED";
  ASSERT_TRUE(one->Put(keyed));
  ASSERT_TRUE(one->Put(Of(second)));
  EXPECT_EQ(Find(second), nullptr);
  EXPECT_TRUE(one->Claims(IdOf(second)));
  EXPECT_TRUE(Says("Some workers of a source were not added"));
  EXPECT_EQ(muster_.Sources()[0].not_added, 2u);
  variables_.erase("LISTED");
  EXPECT_TRUE(one->Drop(IdOf("http://w0:1"), "x"));
  EXPECT_NE(Find(second), nullptr);
  EXPECT_EQ(Find(first), nullptr);
  variables_["LISTED"] = "l";
  EXPECT_TRUE(one->Drop(IdOf("http://w1:1"), "x"));
  EXPECT_NE(Find(first), nullptr);
}

TEST_F(MusterTest, WhatAnOperatorTakesOutStaysOut) {
  const auto own = muster_.Open("configuration", ClaimRank::kOperator);
  const auto one = muster_.Open("one", ClaimRank::kFound);
  const auto two = muster_.Open("two", ClaimRank::kFound);
  ASSERT_TRUE(own->Put(Of(kA)));
  ASSERT_TRUE(one->Put(Of(kA)));
  EXPECT_TRUE(muster_.TakeOut(IdOf(kA)));
  EXPECT_FALSE(muster_.TakeOut(IdOf(kA)));
  EXPECT_FALSE(muster_.TakeOut(IdOf(kB)));
  EXPECT_TRUE(muster_.IsTakenOut(IdOf(kA)));
  EXPECT_FALSE(own->Claims(IdOf(kA)));
  EXPECT_TRUE(one->Claims(IdOf(kA)));
  EXPECT_THAT(muster_.Sources()[0].taken_out, ElementsAre(IdOf(kA)));
  EXPECT_EQ(muster_.Sources()[0].workers, 0u);
  EXPECT_EQ(muster_.followed(), 2u);
  ASSERT_TRUE(two->Put(Of(kA)));
  Claim other = Of(kA);
  other.entry.labels = {{"zone", "b"}};
  ASSERT_TRUE(one->Put(other));
  EXPECT_EQ(Find(kA), nullptr);
  muster_.PutBack(IdOf(kA));
  ASSERT_NE(Find(kA), nullptr);
  EXPECT_THAT(Find(kA)->origin->labels, ElementsAre(Pair("zone", "b")));
  EXPECT_TRUE(muster_.TakeOut(IdOf(kA)));
  EXPECT_TRUE(one->Drop(IdOf(kA), "x"));
  EXPECT_TRUE(two->Drop(IdOf(kA), "x"));
  EXPECT_FALSE(muster_.IsTakenOut(IdOf(kA)));
  ASSERT_TRUE(one->Put(Of(kA)));  // a new pod at an old address
  EXPECT_NE(Find(kA), nullptr);
}

TEST_F(MusterTest, ASourceIsOkOrStaleAndSaysSoOnce) {
  auto one = muster_.Open("one", ClaimRank::kFound);
  const auto own = muster_.Open("configuration", ClaimRank::kOperator);
  EXPECT_EQ(muster_.pending(), 1u);
  ASSERT_EQ(muster_.Sources().size(), 1u);
  EXPECT_FALSE(muster_.Sources()[0].asked);
  ASSERT_TRUE(one->Put(Of(kA)));
  one->Ok();
  EXPECT_EQ(muster_.pending(), 0u);
  EXPECT_TRUE(muster_.Sources()[0].ok);
  EXPECT_EQ(muster_.Sources()[0].workers, 1u);
  one->Stale("no answer");
  one->Stale("still no answer");
  EXPECT_FALSE(muster_.Sources()[0].ok);
  EXPECT_EQ(muster_.Sources()[0].error, "still no answer");
  one->Refused("w.yaml:3: bad");
  EXPECT_EQ(muster_.Sources()[0].error, "w.yaml:3: bad");
  EXPECT_TRUE(Says("What a source of workers says was refused"));
  one->Ok();
  EXPECT_EQ(muster_.Sources()[0].error, "");
  EXPECT_TRUE(Says("A source of workers works again"));
  one->SetUnknown("pods");
  EXPECT_EQ(muster_.Sources()[0].unknown, "pods");
  one.reset();
  EXPECT_THAT(muster_.Sources(), IsEmpty());
  const auto silent = muster_.Open("two", ClaimRank::kFound);
  EXPECT_EQ(muster_.pending(), 1u);
}

// What the fleet should be, computed anew from all claims.
struct MusterModel {
  struct Source {
    ClaimRank rank;
    std::map<std::string, Claim> claims;
  };
  std::vector<std::optional<Source>> sources;  // in the order in which they were opened
  std::set<std::string> out;

  std::vector<const Claim*> On(const std::string& url) const {
    std::vector<const Claim*> claims;
    for (const ClaimRank rank : {ClaimRank::kOperator, ClaimRank::kAdmin, ClaimRank::kFound}) {
      for (const auto& source : sources) {
        if (!source || source->rank != rank) continue;
        const auto claim = source->claims.find(url);
        if (claim != source->claims.end()) claims.push_back(&claim->second);
      }
    }
    return claims;
  }
  void Forget(const std::string& url) {
    if (On(url).empty()) out.erase(url);
  }
};

TEST_F(MusterTest, TheFleetIsWhatTheClaimsSay) {
  const std::vector<std::string> urls = {kA, kB, "http://c:8000", "http://d:8000"};
  const auto random_claim = [&](Random& random, const std::string& url) {
    Claim claim = Of(url);
    if (random.Below(2) == 0)
      claim.entry.kv_events = fmt::format("tcp://e:{}", 1 + random.Below(2));
    if (random.Below(2) == 0) claim.entry.role = random.Below(2) == 0 ? "decode" : "prefill";
    if (random.Below(2) == 0) claim.entry.labels["x"] = std::to_string(random.Below(3));
    claim.says = static_cast<SourceSays>(random.Below(3));
    return claim;
  };
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    MusterModel model;
    std::vector<std::unique_ptr<Muster::Source>> sources;
    for (int step = 0; step < 60; ++step) {
      const std::string& url = urls[random.Below(urls.size())];
      const size_t i = sources.empty() ? 0 : random.Below(sources.size());
      switch (sources.size() < 2 ? 0 : random.Below(10)) {
        case 0: {
          if (sources.size() >= 5) break;
          const auto rank = static_cast<ClaimRank>(random.Below(3));
          sources.push_back(muster_.Open(fmt::format("s{}", sources.size()), rank));
          model.sources.push_back(MusterModel::Source{rank, {}});
          break;
        }
        case 1:
          sources[i].reset();
          model.sources[i].reset();
          for (const std::string& each : urls) model.Forget(each);
          break;
        case 2:
          EXPECT_EQ(muster_.TakeOut(IdOf(url)), !model.On(url).empty() && !model.out.contains(url));
          if (model.On(url).empty()) break;
          if (!model.out.insert(url).second) break;
          for (auto& source : model.sources) {
            if (source && source->rank != ClaimRank::kFound) source->claims.erase(url);
          }
          model.Forget(url);
          break;
        case 3:
          muster_.PutBack(IdOf(url));
          model.out.erase(url);
          break;
        case 4:
        case 5:
          if (!sources[i]) break;
          EXPECT_EQ(sources[i]->Drop(IdOf(url), "x"), model.sources[i]->claims.erase(url) > 0);
          model.Forget(url);
          break;
        default: {
          if (!sources[i]) break;
          const Claim claim = random_claim(random, url);
          EXPECT_TRUE(sources[i]->Put(claim));
          model.sources[i]->claims[url] = claim;
        }
      }
      for (const std::string& each : urls) {
        const auto claims = model.On(each);
        const Member* member = Find(each);
        ASSERT_EQ(member != nullptr, !claims.empty() && !model.out.contains(each)) << each;
        if (member == nullptr) continue;
        std::optional<std::string> events;
        std::string role;
        std::map<std::string, std::string> labels;
        SourceSays says = SourceSays::kServe;
        for (const Claim* claim : claims) {
          if (!events) events = claim->entry.kv_events;
          if (role.empty()) role = claim->entry.role;
          labels.insert(claim->entry.labels.begin(), claim->entry.labels.end());
          says = std::max(says, claim->says);
        }
        ASSERT_EQ(member->worker->spec().kv_events, events);
        ASSERT_EQ(member->origin->role, role);
        ASSERT_EQ(member->origin->labels, labels);
        ASSERT_EQ(member->origin->says, says);
        ASSERT_EQ(member->origin->sources.size(), claims.size());
      }
    }
    sources.clear();
    ASSERT_THAT(Urls(), IsEmpty());
  }
}

TEST_F(MusterTest, SourcesOnSeveralThreadsLeaveNothingBehind) {
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        Random random(t);
        const auto source = muster_.Open(fmt::format("t{}", t), ClaimRank::kFound);
        for (int i = 0; i < 200; ++i) {
          const std::string url = random.Below(2) == 0 ? kA : kB;
          switch (random.Below(4)) {
            case 0:
              source->Drop(IdOf(url), "x");
              break;
            case 1:
              muster_.TakeOut(IdOf(url));
              muster_.PutBack(IdOf(url));
              break;
            default:
              EXPECT_TRUE(source->Put(Of(url)));
          }
          source->Ok();
          muster_.Sources();
        }
      });
    }
  }
  EXPECT_THAT(Urls(), IsEmpty());
  EXPECT_THAT(muster_.Sources(), IsEmpty());
  EXPECT_EQ(muster_.pending(), 0u);
}

}  // namespace
}  // namespace fathom
