// Do all replicas come to the same view, whatever happens on the way?
//
// Groups of two to eight replicas in virtual time, with the code of the router: the group, the gate
// and the exchange of loads. Only the network and the clocks are simulated. The network loses,
// delays, reorders and repeats messages, changes bits, keeps messages and sends them again much
// later, and is cut into parts. Replicas die, leave, start again under the same name, and two of
// them have the same name at once. Their clocks differ by hours, and run at different speeds.
//
// When the faults end, the views must agree within the time that router/replicas/replica_group.h
// promises. Every choice comes from the seed, which a failure prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "router/replicas/load_exchange.h"
#include "router/replicas/replica_group.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kWorkers = 4;
constexpr uint32_t kMostOpen = 3;  // requests of one replica on one worker
constexpr Duration kSimulatedTick = milliseconds(25);
constexpr Duration kSimulatedTimeout = seconds(2);
constexpr Duration kLongestWay = milliseconds(300);
// What replica_group.h promises, with a tick of the receiver and one of the sender; clocks that run
// at different speeds measure it differently.
constexpr Duration kConverged =
    (kSimulatedTimeout + 2 * ReplicaGroup::kPresence + 4 * kLongestWay + 2 * kSimulatedTick) * 102 /
    100;

// After its last message has come.
constexpr Duration kForgotten = (kSimulatedTimeout + kSimulatedTick) * 101 / 100 + kLongestWay;

// What was held back for longer must not count.
constexpr Duration kHeldBack = OriginGate::kChallengeHeld + kLongestWay;

// When, in the time of the simulation.
using SimulatedTime = Duration;

class SimulatedWire {
 public:
  struct Weather {
    double loss = 0;
    double twice = 0;
    double changed = 0;  // a bit of it
    double kept = 0;     // and sent again later
    Duration shortest = milliseconds(1);
    Duration longest = milliseconds(40);
  };

  explicit SimulatedWire(uint64_t seed) : random_(seed) {}

  // `to` is a place. Those in different parts do not hear each other.
  void Put(size_t from, size_t to, std::string_view bytes, SimulatedTime now) {
    if (part_of[from] != part_of[to] || random_.Unit() < weather.loss) return;
    std::string message(bytes);
    if (random_.Unit() < weather.changed) {
      char& byte = message[random_.Below(message.size())];
      byte = static_cast<char>(byte ^ (1 << random_.Below(8)));
    }
    if (random_.Unit() < weather.kept && kept_.size() < 1000) kept_.emplace_back(now, message);
    if (random_.Unit() < weather.twice) Launch(to, message, now);
    Launch(to, std::move(message), now);
  }
  // Somebody who has no key sends what was kept. What was lost and is sent in time is a message
  // like others; only later it must not count.
  void SendKept(size_t to, SimulatedTime now) {
    if (kept_.empty()) return;
    const auto& [since, message] = kept_[random_.Below(kept_.size())];
    if (now - since > kHeldBack) Launch(to, message, now);
  }
  // The next one that has arrived by now: where, and what.
  std::optional<std::pair<size_t, std::string>> Next(SimulatedTime now) {
    if (flying_.empty() || flying_.begin()->first > now) return std::nullopt;
    auto arrived = std::move(flying_.begin()->second);
    flying_.erase(flying_.begin());
    return arrived;
  }

  Weather weather;
  std::map<size_t, int> part_of;

 private:
  void Launch(size_t to, std::string message, SimulatedTime now) {
    const auto spread = static_cast<uint64_t>((weather.longest - weather.shortest).count());
    const Duration way = weather.shortest + Duration(static_cast<int64_t>(random_.Below(spread)));
    flying_.emplace(now + way, std::pair(to, std::move(message)));
  }

  Random random_;
  std::multimap<SimulatedTime, std::pair<size_t, std::string>> flying_;
  std::vector<std::pair<SimulatedTime, std::string>> kept_;
};

class SimulatedCarrier final : public Carrier {
 public:
  using Put = std::function<void(std::string_view to, std::string_view bytes)>;
  explicit SimulatedCarrier(Put put) : put_(std::move(put)) {}

  void Start(OnMessage /*on_message*/) override {}
  void Stop() override {}
  bool Publish(std::string_view message) override {
    put_("", message);
    return true;
  }
  bool Send(std::string_view replica, std::string_view message) override {
    put_(replica, message);
    return true;
  }
  Status status() const override { return {}; }

 private:
  const Put put_;
};

// Hears what the other guests hear, and expects that no message counts twice.
class SimulatedWitness final : public ReplicaGuest {
 public:
  void Heard(const ReplicaMessage& message, TimePoint /*now*/) override {
    EXPECT_TRUE(present_.contains(message.origin));
    EXPECT_TRUE(heard_.emplace(message.incarnation, message.number).second)
        << "message " << message.number << " of " << message.origin << " counts twice";
  }
  void Tick(TimePoint /*now*/) override {}
  void Joined(const std::string& origin, TimePoint /*now*/) override {
    EXPECT_TRUE(present_.insert(origin).second);
  }
  void Left(const std::string& origin, TimePoint /*now*/) override {
    EXPECT_EQ(present_.erase(origin), 1u);
  }

 private:
  std::set<std::string> present_;
  std::set<std::pair<uint64_t, uint64_t>> heard_;  // incarnation and number
};

// One process with its own fleet, requests and clock.
class SimulatedReplica {
 public:
  SimulatedReplica(std::string id, uint64_t incarnation, const MessageSeal& seal, Random& random,
                   SimulatedCarrier::Put put)
      : offset_(seconds(random.Below(100'000) + 100'000)),
        speed_(0.995 + random.Unit() * 0.01),
        carrier_(std::move(put)),
        group_({.self = {.group = "simulated", .id = std::move(id), .incarnation = incarnation},
                .timeout = kSimulatedTimeout,
                .seed = random.Next()},
               &seal, carrier_, [] { return ReplicaPresence{}; }),
        exchange_(fleet_, engine_speed_, group_) {
    for (size_t i = 0; i < kWorkers; ++i) {
      const auto worker = *fleet_.Add({.url = "http://w:" + std::to_string(i)});
      fleet_.SetModels(worker->id(), {.models = {"m"}, .cards = {"{}"}});
      workers_.push_back(worker);
    }
    group_.Invite(exchange_);
    group_.Invite(witness_);
  }
  ~SimulatedReplica() {
    for (size_t worker = 0; worker < kWorkers; ++worker) {
      while (!open_[worker].empty()) End(worker, TimePoint{});
    }
  }
  SimulatedReplica(const SimulatedReplica&) = delete;
  SimulatedReplica& operator=(const SimulatedReplica&) = delete;

  TimePoint Local(SimulatedTime now) const {
    return TimePoint{offset_} +
           Duration(static_cast<int64_t>(static_cast<double>(now.count()) * speed_));
  }
  void Tick(SimulatedTime now) { group_.Tick(Local(now)); }
  void Receive(std::string_view bytes, SimulatedTime now) { group_.Received(bytes, Local(now)); }
  void Goodbye() { group_.Goodbye(); }

  // Something happens to one of its requests.
  void Work(Random& random, SimulatedTime now) {
    const size_t worker = random.Below(kWorkers);
    auto& open = open_[worker];
    const uint64_t what = random.Below(4);
    if (what < 2 && open.size() < kMostOpen) {
      open.push_back(std::make_unique<Request>());
      open.back()->work = static_cast<double>(1 + random.Below(1000));
      open.back()->context = 1 + random.Below(10'000);
      Load(worker).Enter(open.back()->stay, RankLoad::Kind::kAnnounced, open.back()->work,
                         open.back()->context, Local(now));
    } else if (what == 2 && !open.empty() && open.front()->waits) {
      open.front()->waits = false;
      Load(worker).FirstByte(open.front()->stay, Local(now));
    } else if (what == 3 && !open.empty()) {
      End(worker, Local(now));
    }
  }
  void EndAll(SimulatedTime now) {
    for (size_t worker = 0; worker < kWorkers; ++worker) {
      while (!open_[worker].empty()) End(worker, Local(now));
    }
  }

  // What it has itself placed, and what it believes to be there in all.
  RankLoad::View Placed(size_t worker) const {
    RankLoad::View sum;
    for (const auto& request : open_[worker]) {
      sum.queued += request->waits ? request->work : 0;
      sum.context += request->context;
      sum.requests += 1;
      sum.waiting += request->waits ? 1 : 0;
    }
    return sum;
  }
  RankLoad::View View(size_t worker, SimulatedTime now) {
    RankLoad::View view = Load(worker).Look(Local(now), 1e6);
    view.backlog = 0;  // an estimate
    return view;
  }
  const ReplicaGroup& group() const { return group_; }

 private:
  struct Request {
    RankLoad::Stay stay;
    double work = 0;
    uint64_t context = 0;
    bool waits = true;
  };
  RankLoad& Load(size_t worker) { return workers_[worker]->ranks.only().load; }
  void End(size_t worker, TimePoint now) {
    Load(worker).Leave(open_[worker].front()->stay, now);
    open_[worker].erase(open_[worker].begin());
  }

  const Duration offset_;
  const double speed_;
  Fleet fleet_{BreakerOptions{}};
  EngineSpeed engine_speed_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::array<std::vector<std::unique_ptr<Request>>, kWorkers> open_;
  SimulatedCarrier carrier_;
  ReplicaGroup group_;
  LoadExchange exchange_;
  SimulatedWitness witness_;
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed)
      : random_(seed),
        wire_(seed + 1),
        names_(2 + random_.Below(7)),
        alone_(random_.Below(2) == 0) {
    for (size_t name = 0; name < names_; ++name) Start(name);
  }

  void Run() {
    wire_.weather = {.loss = random_.Unit() * 0.3,
                     .twice = random_.Unit() * 0.2,
                     .changed = random_.Unit() * 0.02,
                     .kept = 0.05,
                     .shortest = milliseconds(1),
                     .longest = milliseconds(2 + random_.Below(298))};
    for (int tick = 0; tick < 400; ++tick) {
      if (random_.Below(30) == 0) Fault();
      wire_.SendKept(AnyPlace(), now_);
      Step(true);
      if (tick % 8 == 0) ExpectNothingTwice();
      ExpectNoneOfTheDead();
    }
    EndFaults();
    Pass(kConverged);
    ExpectTheSameViews("after the faults");
    // Without faults a change is heard at once: the next tick, and the way.
    for (int tick = 0; tick < 20; ++tick) Step(true);
    Pass(2 * kSimulatedTick + kLongestWay);
    ExpectTheSamePeers("under traffic");
    Pass(ReplicaGroup::kPresence + kLongestWay);
    ExpectTheSameViews("when the whole was told");
    for (auto& [place, replica] : living_) replica->EndAll(now_);
    Pass(ReplicaGroup::kPresence + kLongestWay);
    ExpectZero();
  }

 private:
  static std::string NameOf(size_t name) { return "fathom-" + std::to_string(name); }

  void Start(size_t name) {
    const size_t place = places_++;
    name_of_[place] = name;
    wire_.part_of[place] = 0;
    const auto put = [this, place](std::string_view to, std::string_view bytes) {
      for (const auto& [other, replica] : living_) {
        if (alone_ && !to.empty() && replica->group().id() != to) continue;
        wire_.Put(place, other, bytes, now_);
      }
    };
    const uint64_t incarnation = random_.Next();
    incarnation_of_[place] = incarnation;
    living_[place] =
        std::make_unique<SimulatedReplica>(NameOf(name), incarnation, seal_, random_, put);
  }
  void End(size_t place) {
    if (living_.erase(place) > 0) ended_[incarnation_of_[place]] = now_;
  }
  size_t AnyPlace() {
    if (living_.empty()) return 0;
    return std::next(living_.begin(), static_cast<ptrdiff_t>(random_.Below(living_.size())))->first;
  }
  bool Lives(size_t name) const {
    return std::ranges::any_of(living_,
                               [&](const auto& entry) { return name_of_.at(entry.first) == name; });
  }

  void Fault() {
    switch (random_.Below(6)) {
      case 0:  // it dies
        return End(AnyPlace());
      case 1:  // it leaves
        if (const auto found = living_.find(AnyPlace()); found != living_.end()) {
          found->second->Goodbye();
          End(found->first);
        }
        return;
      case 2:  // it starts, or another one of its name
        return Start(random_.Below(names_));
      case 3:  // it starts again at once
        if (const auto found = living_.find(AnyPlace()); found != living_.end()) {
          const size_t name = name_of_[found->first];
          End(found->first);
          Start(name);
        }
        return;
      case 4:
        for (auto& [place, part] : wire_.part_of) part = static_cast<int>(random_.Below(2));
        return;
      default:
        for (auto& [place, part] : wire_.part_of) part = 0;
    }
  }
  // Of each name one stays.
  void EndFaults() {
    for (auto& [place, part] : wire_.part_of) part = 0;
    wire_.weather = {};
    std::set<size_t> names;
    std::vector<size_t> further;
    for (const auto& [place, replica] : living_) {
      if (!names.insert(name_of_[place]).second) further.push_back(place);
    }
    for (const size_t place : further) End(place);
    for (size_t name = 0; name < 2; ++name) {
      if (!Lives(name)) Start(name);
    }
  }

  void Step(bool works) {
    now_ += kSimulatedTick;
    while (const auto arrived = wire_.Next(now_)) {
      const auto found = living_.find(arrived->first);
      if (found != living_.end()) found->second->Receive(arrived->second, now_);
    }
    for (auto& [place, replica] : living_) {
      if (works && random_.Below(5) == 0) replica->Work(random_, now_);
      replica->Tick(now_);
    }
  }
  void Pass(Duration time) {
    for (const SimulatedTime end = now_ + time; now_ < end;) Step(false);
  }

  // No replica has more than kMostOpen requests on a worker at any time.
  void ExpectNothingTwice() {
    for (auto& [place, replica] : living_) {
      const size_t peers = replica->group().peers().size();
      EXPECT_LE(peers, names_ - 1);
      EXPECT_FALSE(replica->group().peers().contains(replica->group().id()));
      for (size_t worker = 0; worker < kWorkers; ++worker) {
        const uint32_t own = replica->Placed(worker).requests;
        EXPECT_LE(replica->View(worker, now_).requests, own + peers * kMostOpen);
      }
    }
  }
  // Also while somebody sends their messages again.
  void ExpectNoneOfTheDead() {
    for (const auto& [place, replica] : living_) {
      for (const auto& [id, peer] : replica->group().peers()) {
        const auto ended = ended_.find(peer.incarnation);
        if (ended == ended_.end()) continue;
        EXPECT_LE(now_ - ended->second, kForgotten) << id;
      }
    }
  }
  void ExpectTheSamePeers(const char* when) {
    for (auto& [place, replica] : living_) {
      std::vector<std::string> expected;
      std::vector<std::string> found;
      for (const auto& [other, peer] : living_) {
        if (other != place) expected.push_back(peer->group().id());
      }
      for (const auto& [id, peer] : replica->group().peers()) found.push_back(id);
      std::ranges::sort(expected);
      EXPECT_EQ(found, expected) << "peers of " << replica->group().id() << " " << when;
    }
  }
  void ExpectTheSameViews(const char* when) {
    ExpectTheSamePeers(when);
    for (size_t worker = 0; worker < kWorkers; ++worker) {
      RankLoad::View sum;
      for (const auto& [place, replica] : living_) {
        const RankLoad::View placed = replica->Placed(worker);
        sum.queued += placed.queued;
        sum.context += placed.context;
        sum.requests += placed.requests;
        sum.waiting += placed.waiting;
      }
      for (auto& [place, replica] : living_) {
        const RankLoad::View view = replica->View(worker, now_);
        EXPECT_EQ(view, sum) << replica->group().id() << " sees on worker " << worker << " " << when
                             << ": requests " << view.requests << " of " << sum.requests
                             << ", queued " << view.queued << " of " << sum.queued << ", context "
                             << view.context << " of " << sum.context;
      }
    }
  }
  void ExpectZero() {
    for (auto& [place, replica] : living_) {
      for (size_t worker = 0; worker < kWorkers; ++worker) {
        EXPECT_EQ(replica->View(worker, now_), RankLoad::View{}) << replica->group().id();
      }
    }
  }

  Random random_;
  SimulatedWire wire_;
  const MessageSeal seal_{"simulated"};
  const size_t names_;
  const bool alone_;  // the carrier can reach one replica alone
  SimulatedTime now_{};
  size_t places_ = 0;
  std::map<size_t, size_t> name_of_;           // by place
  std::map<size_t, uint64_t> incarnation_of_;  // by place
  std::map<uint64_t, SimulatedTime> ended_;    // by incarnation
  std::map<size_t, std::unique_ptr<SimulatedReplica>> living_;
};

TEST(ReplicaSimulation, ViewsConvergeWhateverHappensBefore) {
  constexpr uint64_t kSeeds = kSanitized ? 15 : 300;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Simulation(seed * 1'000'003).Run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "with seed " << seed;
  }
}

}  // namespace
}  // namespace fathom
