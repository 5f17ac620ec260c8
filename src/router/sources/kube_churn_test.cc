// Random histories of a Service: after each the fleet is what the API says, and no worker that the
// API had all along was lost in between.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"
#include "router/sources/endpoint_slices.h"
#include "router/sources/kube_claims.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;

struct ChurnPod {
  int number = 0;  // its uid, and its address
  bool v4 = true;
  bool v6 = false;
  SourceSays says = SourceSays::kServe;

  std::string Url4() const {
    return fmt::format("http://10.0.{}.{}:8000", number / 200, number % 200);
  }
  std::string Url6() const { return fmt::format("http://[fd00::{:x}]:8000", number + 1); }
};

// A slice has one family; its endpoints are pods, each with what this slice says of it.
struct ChurnSlice {
  bool v6 = false;
  std::map<int, SourceSays> pods;

  std::string ToJson() const {
    std::string endpoints;
    for (const auto& [number, says] : pods) {
      const std::string address = v6 ? fmt::format("fd00::{:x}", number + 1)
                                     : fmt::format("10.0.{}.{}", number / 200, number % 200);
      const std::string_view conditions =
          says == SourceSays::kServe     ? (number % 2 == 0 ? "{}" : R"({"ready":true})")
          : says == SourceSays::kUnready ? R"({"ready":false})"
                                         : R"({"ready":false,"serving":true,"terminating":true})";
      endpoints += fmt::format(
          R"({}{{"addresses":["{}"],"conditions":{},"targetRef":{{"kind":"Pod","name":"p{}","uid":"u{}"}}}})",
          endpoints.empty() ? "" : ",", address, conditions, number, number);
    }
    return fmt::format(
        R"({{"addressType":"{}","ports":[{{"name":"http","port":8000}}],"endpoints":[{}]}})",
        v6 ? "IPv6" : "IPv4", endpoints);
  }
};

// The API server: slices, and the events of their changes.
class ChurnApi {
 public:
  struct Event {
    std::string name;
    std::optional<std::string> object;  // nothing: deleted
  };

  explicit ChurnApi(Random& random, bool dual) : random_(random), dual_(dual) {}

  void Step() {
    switch (random_.Below(9)) {
      case 0:
      case 1:
        return Add();
      case 2:
        return ChangeState();
      case 3:
        return Take();
      case 4:
        return Split();
      case 5:
        return Merge();
      case 6:
        return Rename();
      case 7:
        return Move();
      case 8:
        return Double();
    }
  }

  std::map<std::string, std::string> Objects() const {
    std::map<std::string, std::string> objects;
    for (const auto& [name, slice] : slices_) objects[name] = slice.ToJson();
    return objects;
  }
  // Which pods are endpoints, and what is said of them.
  std::map<int, ChurnPod> Pods() const {
    std::map<int, ChurnPod> pods;
    for (const auto& [_, slice] : slices_) {
      for (const auto& [number, says] : slice.pods) {
        ChurnPod& pod = pods.try_emplace(number, ChurnPod{number, false, false}).first->second;
        (slice.v6 ? pod.v6 : pod.v4) = true;
        pod.says = std::max(pod.says, says);
      }
    }
    return pods;
  }

  std::deque<Event> events;
  // Pods that were endpoints after each whole operation since they came. A move is two writes, and
  // one operation.
  std::set<int> alive;

 private:
  std::string* AnySlice(bool v6) {
    std::vector<std::string> names;
    for (const auto& [name, slice] : slices_) {
      if (slice.v6 == v6) names.push_back(name);
    }
    if (names.empty()) return nullptr;
    chosen_ = names[random_.Below(names.size())];
    return &chosen_;
  }
  std::string NewSlice(bool v6) {
    const std::string name =
        fmt::format("{}{}", static_cast<char>('a' + random_.Below(26)), ++made_);
    slices_[name].v6 = v6;
    return name;
  }
  void Tell(const std::string& name) {
    const auto found = slices_.find(name);
    if (found != slices_.end()) {
      events.push_back({name, found->second.ToJson()});
    } else {
      events.push_back({name, std::nullopt});
    }
  }
  // In either order.
  void TellBoth(const std::string& one, const std::string& other) {
    const bool first = random_.Below(2) == 0;
    Tell(first ? one : other);
    Tell(first ? other : one);
  }

  void Add() {
    const int number = next_++;
    alive.insert(number);
    for (const bool v6 : {false, true}) {
      if (v6 && !dual_) continue;
      std::string* const any = AnySlice(v6);
      const std::string name = any != nullptr && random_.Below(4) > 0 ? *any : NewSlice(v6);
      slices_[name].pods[number] =
          random_.Below(3) == 0 ? SourceSays::kUnready : SourceSays::kServe;
      Tell(name);
    }
  }
  std::optional<int> AnyPod() {
    if (alive.empty()) return std::nullopt;
    return *std::next(alive.begin(), static_cast<long>(random_.Below(alive.size())));
  }
  void ChangeState() {
    const auto pod = AnyPod();
    if (!pod) return;
    const auto says = static_cast<SourceSays>(random_.Below(3));
    for (auto& [name, slice] : slices_) {
      if (!slice.pods.contains(*pod)) continue;
      slice.pods[*pod] = says;
      Tell(name);
    }
  }
  void Take() {
    const auto pod = AnyPod();
    if (!pod) return;
    alive.erase(*pod);
    for (auto& [name, slice] : slices_) {
      if (slice.pods.erase(*pod) > 0) Tell(name);
    }
  }
  void Split() {
    const bool v6 = dual_ && random_.Below(2) == 0;
    std::string* const any = AnySlice(v6);
    if (any == nullptr) return;
    const std::string from = *any;
    const std::string to = NewSlice(v6);
    auto& pods = slices_[from].pods;
    for (auto at = pods.begin(); at != pods.end();) {
      if (random_.Below(2) == 0) {
        slices_[to].pods.insert(*at);
        at = pods.erase(at);
      } else {
        ++at;
      }
    }
    TellBoth(from, to);
  }
  void Merge() {
    const bool v6 = dual_ && random_.Below(2) == 0;
    std::string* any = AnySlice(v6);
    if (any == nullptr) return;
    const std::string from = *any;
    const std::string to = *AnySlice(v6);
    if (from == to) return;
    slices_[to].pods.merge(slices_[from].pods);
    slices_.erase(from);
    TellBoth(from, to);
  }
  void Rename() {
    const bool v6 = dual_ && random_.Below(2) == 0;
    std::string* any = AnySlice(v6);
    if (any == nullptr) return;
    const std::string from = *any;
    const std::string to = NewSlice(v6);
    slices_[to] = slices_[from];
    slices_.erase(from);
    TellBoth(from, to);
  }
  void Move() {
    const auto pod = AnyPod();
    if (!pod) return;
    for (auto& [name, slice] : slices_) {
      const auto found = slice.pods.find(*pod);
      if (found == slice.pods.end()) continue;
      const std::string from = name;
      const std::string to = *AnySlice(slice.v6);
      if (from == to) return;
      slices_[to].pods.insert(*found);
      slices_[from].pods.erase(*pod);
      return TellBoth(from, to);
    }
  }
  void Double() {
    const auto pod = AnyPod();
    if (!pod) return;
    for (const auto& [name, slice] : slices_) {
      const auto found = slice.pods.find(*pod);
      if (found == slice.pods.end()) continue;
      const std::string to = *AnySlice(slice.v6);
      slices_[to].pods.insert(*found);
      return Tell(to);
    }
  }

  Random& random_;
  const bool dual_;
  std::map<std::string, ChurnSlice> slices_;
  std::string chosen_;
  int next_ = 0;
  int made_ = 0;
};

class KubeChurnTest : public testing::Test {
 protected:
  Log log_{::open("/dev/null", O_WRONLY | O_CLOEXEC), LogLevel::kError};
  Loop unused_;
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{unused_, resolver_, fleet_, ProbeOptions{}, log_};
  Directory directory_{fleet_, prober_, [](const std::string&) { return std::nullopt; }, log_};
  Muster muster_{directory_, log_};
};

// The follower, and what it has told.
class ChurnClient {
 public:
  ChurnClient(Muster& muster, const Directory& directory, ChurnApi& api, Random& random)
      : muster_(muster),
        api_(api),
        random_(random),
        source_(muster.Open("k8s://ml/vllm:http", Muster::Rank::kFound)),
        claims_(*source_,
                *KubeEntry::Make({.url = "k8s://ml/vllm:http"}, "vllm.ml.svc", directory)) {}

  void Step() {
    now_ += milliseconds(random_.Below(20));
    switch (random_.Below(20)) {
      case 0:
        return Relist();
      case 1:
        blind_ = true;
        now_ += std::chrono::hours(1);
        return Apply();
      default:
        blind_ = false;
        for (uint64_t i = random_.Below(4); i > 0; --i) Deliver();
    }
  }
  void CatchUp() {
    blind_ = false;
    while (!api_.events.empty()) Deliver();
    for (int i = 0; i < 3; ++i) {
      now_ += KubeClaims::kLinger;
      Apply();
    }
  }
  // Words of what is wrong; empty: nothing.
  const std::string& lost() const { return lost_; }
  const Muster::Source& source() const { return *source_; }

 private:
  void Deliver() {
    if (api_.events.empty()) return Apply();
    const ChurnApi::Event event = api_.events.front();
    api_.events.pop_front();
    Tell(event.name, event.object);
  }
  void Tell(const std::string& name, const std::optional<std::string>& object) {
    if (object) {
      claims_.Set(name, ReadEndpointSlice(*Json::Parse(*object), "http").seen);
      told_[name] = *object;
    } else {
      claims_.Set(name, {});
      told_.erase(name);
    }
    Apply();
  }
  // The watch broke and its version is gone: what differs is told, what is missing last.
  void Relist() {
    api_.events.clear();
    const auto objects = api_.Objects();
    const auto before = told_;
    for (const auto& [name, object] : objects) {
      const auto known = before.find(name);
      if (known == before.end() || known->second != object) Tell(name, object);
    }
    for (const auto& [name, _] : before) {
      if (!objects.contains(name)) Tell(name, std::nullopt);
    }
  }
  void Apply() {
    claims_.Apply(now_, blind_);
    std::erase_if(workers_, [&](const auto& known) { return !api_.alive.contains(known.first); });
    for (const int number : api_.alive) {
      const ChurnPod pod{number};
      const auto v4 = muster_.Find(WorkerId::OfUrl(pod.Url4()));
      const auto v6 = muster_.Find(WorkerId::OfUrl(pod.Url6()));
      const auto known = workers_.find(number);
      if (known == workers_.end()) {
        if (v4 != nullptr || v6 != nullptr) workers_[number] = v4 != nullptr ? v4 : v6;
      } else if (known->second != v4 && known->second != v6) {
        lost_ = fmt::format("pod {} lost its worker", number);
      }
    }
  }

  Muster& muster_;
  ChurnApi& api_;
  Random& random_;
  const std::unique_ptr<Muster::Source> source_;
  KubeClaims claims_;
  std::map<std::string, std::string> told_;
  std::map<int, std::shared_ptr<Worker>> workers_;
  TimePoint now_{};
  bool blind_ = false;
  std::string lost_;
};

TEST_F(KubeChurnTest, AfterEachHistoryTheFleetIsWhatTheApiSaysAndNoWorkerWasLost) {
  constexpr int kHistories = 1000;
  constexpr int kSteps = 80;
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= kHistories; ++seed) {
    Random random(seed);
    ChurnApi api(random, seed % 3 == 0);
    ChurnClient client(muster_, directory_, api, random);
    for (int i = 0; i < kSteps; ++i) {
      if (random.Below(2) == 0) api.Step();
      client.Step();
    }
    client.CatchUp();
    ASSERT_EQ(client.lost(), "") << "history " << seed;
    const auto pods = api.Pods();
    ASSERT_EQ(client.source().Workers().size(), pods.size()) << "history " << seed;
    const auto fleet = fleet_.Current();
    for (const auto& [number, pod] : pods) {
      const Member* member = fleet->Find(WorkerId::OfUrl(pod.Url4()));
      if (member == nullptr && pod.v6) member = fleet->Find(WorkerId::OfUrl(pod.Url6()));
      ASSERT_NE(member, nullptr) << "history " << seed << ", pod " << number;
      ASSERT_EQ(member->origin->says, pod.says) << "history " << seed << ", pod " << number;
      ++compared;
    }
  }
  EXPECT_GT(compared, size_t{2} * kHistories) << "the histories must leave something to compare";
}

}  // namespace
}  // namespace fathom
