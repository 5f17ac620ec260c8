// Several routers in front of one engine that hands out each event once, in virtual time with
// random faults.
//
// Each seed is a life: an engine with a small cache serves random prompts and restarts; three
// routers poll it by turns, and now and then out of turn; polls fail, what they pass on to each
// other is lost or late; routers die and come back, and hear of that late. Whenever a router has
// heard everything, its index must not claim a block that the engine does not hold. In the end the
// faults stop, the cache turns over, and every index must be exact.
//
//   FATHOM_SIMULATION_SEED=17      one life
//   FATHOM_SIMULATION_SEEDS=100000 so many
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "lab/mock/event_queue.h"
#include "lab/simulation/kv_simulation_engine.h"
#include "router/events/polled_order.h"
#include "router/events/rank_feed.h"
#include "router/events/trtllm_dialect.h"
#include "router/index/cache_index.h"
#include "router/replicas/poll_exchange.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTurn = milliseconds(50);
constexpr int kTurns = 1600;
constexpr size_t kReplicas = 3;
constexpr uint32_t kPolledBlock = 4;
// An engine is away for longer than anything is on its way.
constexpr Duration kStartTime = seconds(8);
constexpr uint64_t kGroupSeeds = kSanitized ? 30 : 400;

struct GroupFaults {
  double lose_word = 0;
  double lose_answer = 0;
  double late_word = 0;    // later than anybody waits for it
  double out_of_turn = 0;  // a poll
  double restart = 0;      // of the engine
  double die = 0;          // a router
};

// Things that arrive at their time.
template <class T>
class OnTheirWay {
 public:
  void Send(TimePoint arrival, T what) { due_.emplace(arrival, std::move(what)); }
  std::vector<T> Arrived(TimePoint now) {
    std::vector<T> arrived;
    while (!due_.empty() && due_.begin()->first <= now) {
      arrived.push_back(std::move(due_.extract(due_.begin()).mapped()));
    }
    return arrived;
  }
  bool empty() const { return due_.empty(); }

 private:
  std::multimap<TimePoint, T> due_;
};

// The engine, as far as its polls tell of it.
class PolledSource {
 public:
  explicit PolledSource(const EngineOptions& options) : engine_(options) { Begin(); }

  SimulatedEngine& engine() { return engine_; }
  uint64_t published() const { return published_; }
  bool up(TimePoint now) const { return now >= back_; }
  // Ids alone tell a new process from the old one, so its first answer arrives.
  bool unheard() const { return unheard_; }

  void Step() {
    const auto& events = engine_.Step();
    queue_->Add(events, {.published = true});
    published_ += events.size();
  }
  void Restart(TimePoint now) {
    engine_.Restart(kPolledBlock);
    Begin();
    back_ = now + kStartTime;
  }
  std::string Poll() {
    JsonWriter answer;
    answer.BeginArray();
    queue_->Drain(answer);
    answer.EndArray();
    unheard_ = false;
    return answer.Take();
  }

 private:
  void Begin() {
    const size_t blocks = engine_.core().pool().usable_blocks();
    queue_.emplace(blocks, blocks, 1 << 20, 1 << 20, std::nullopt);
    published_ = 1;
    unheard_ = true;
  }

  SimulatedEngine engine_;
  std::optional<EventQueue> queue_;
  uint64_t published_ = 0;
  bool unheard_ = true;
  TimePoint back_{};
};

// One router. What it does with answers is what PollStream does.
class PollingRouter final : public ReplicaVoice {
 public:
  using Speak = std::function<void(const PolledAnswer&)>;
  PollingRouter(std::string id, TimePoint now, Speak speak)
      : id_(std::move(id)), now_(now), speak_(std::move(speak)) {}

  void Tell(ReplicaMessage::Content content) override { speak_(std::get<PolledAnswer>(content)); }
  bool TellOne(const std::string&, ReplicaMessage::Content content) override {
    Tell(std::move(content));
    return true;
  }
  const ReplicaPeers& peers() const override { return peers_; }
  const std::string& id() const override { return id_; }

  void Meet(const std::string& other, TimePoint now) {
    if (peers_.try_emplace(other).second) exchange_.Joined(other, now);
  }
  void Part(const std::string& other, TimePoint now) {
    if (peers_.erase(other) > 0) exchange_.Left(other, now);
  }
  void Hear(const std::string& origin, const PolledAnswer& told, TimePoint now) {
    now_ = now;
    if (!peers_.contains(origin)) return;
    ReplicaMessage message;
    message.origin = origin;
    message.content = told;
    exchange_.Heard(message, now);
  }

  void Tick(TimePoint now) {
    now_ = now;
    exchange_.Tick(now);
    if (!order_ && exchange_.Known(worker_->id())) order_.emplace(*exchange_.Known(worker_->id()));
    if (order_) Settle();
  }

  // --- polls ---

  bool WantsToPoll(TimePoint now) {
    return !asked_ && now >= next_poll_ && exchange_.Mine(worker_->id());
  }
  bool polling() const { return asked_.has_value(); }
  void BeginPoll() { asked_ = order_ ? order_->view() : PolledView{}; }
  void EndPoll(const std::optional<std::string>& answer, TimePoint now) {
    now_ = now;
    next_poll_ = now + milliseconds(250);
    const PolledView sent = *std::exchange(asked_, std::nullopt);
    if (!answer) return exchange_.Rests(worker_->id());
    if (!order_) order_.emplace();
    auto events = decoder_.Read(*answer);
    const bool empty = events->empty();
    const bool certain = order_->TakeOwn(sent, *std::move(events), now);
    (void)order_->TakeContradiction();
    PassOn(certain && !empty ? *answer : std::string(), true);
    Settle();
  }

  // --- what it knows ---

  bool HasHeardAll(uint64_t published) const {
    return order_ && !order_->waiting() && decoder_.held(0) == 0 &&
           order_->next(0) == std::optional(published);
  }
  uint64_t process() const { return order_ ? order_->view().process : 0; }
  std::string Whereabouts() const {
    return fmt::format("{}: process {}, next {}, mine {}", id_, process(),
                       order_ ? order_->next(0).value_or(0) : 0, exchange_.counts().polling);
  }
  std::string Complaint(const SimulatedEngine::Prompt& prompt, bool exactly) {
    size_t claimed = 0;
    for (const auto& found : reader_.Match(prompt.tokens, NamespaceSeed("", ""))) {
      claimed = std::max(claimed, found.tokens[0]);
    }
    if (claimed == prompt.held || (claimed < prompt.held && !exactly)) return {};
    return fmt::format("{} claims {} tokens where {} are held", id_, claimed, prompt.held);
  }

 private:
  void Take(PolledWord word) {
    if (!order_) return;
    std::vector<TrtllmEvent> events;
    if (!word.body.empty()) events = *decoder_.Read(word.body);
    order_->TakeHeard(word.view, std::move(events), now_);
    if (order_->TakeContradiction()) PassOn({}, false);
    if (word.polls && order_->KnowsMoreThan(word.view)) Correct();
    Settle();
  }
  void Correct() {
    if (now_ - corrected_ < seconds(1)) return;
    corrected_ = now_;
    PassOn({}, false);
  }
  void PassOn(std::string body, bool polls) {
    exchange_.Polled(worker_->id(), {order_->view(), std::move(body), polls});
  }
  void Settle() {
    order_->Expire(now_, exchange_.alone() ? Duration::zero() : PolledOrder::kPatience);
    while (auto step = order_->Next()) {
      if (step->what != PolledOrder::Step::What::kEvent) {
        feed_.Reset(now_);
        decoder_.Forget(0);
        continue;
      }
      for (const PolledEvent& event : decoder_.Take(std::move(step->event))) {
        feed_.Apply(event.events, now_);
      }
    }
  }

  const std::string id_;
  TimePoint now_;
  const Speak speak_;
  ReplicaPeers peers_;
  CacheIndex index_{size_t{1} << 28, 1};
  Epochs::Seat seat_{index_.epochs()};
  CacheReader reader_{index_};
  FeedBoard board_;
  const std::shared_ptr<Worker> worker_ =
      std::make_shared<Worker>(WorkerSpec{.url = "http://engine"}, BreakerOptions{});
  RankFeed feed_{index_, seat_, worker_, board_.Open(worker_->id(), 0, "")};
  TrtllmDecoder decoder_;
  std::optional<PolledOrder> order_;
  PollExchange exchange_{*this, [this](WorkerId, PolledWord word) { Take(std::move(word)); }};
  std::optional<PolledView> asked_;
  TimePoint next_poll_{};
  TimePoint corrected_{};
};

class GroupLife {
 public:
  explicit GroupLife(uint64_t seed)
      : seed_(seed),
        random_(seed),
        source_({.block_size = kPolledBlock,
                 .num_blocks = static_cast<uint32_t>(12 + random_.Below(40)),
                 .max_num_seqs = 4,
                 .max_num_batched_tokens = static_cast<uint32_t>(16 + random_.Below(64)),
                 .seed = random_.Next()}) {
    for (size_t i = 0; i < kReplicas; ++i) Bear(i);
    const auto rate = [&](double most) {
      return random_.Below(3) == 0 ? 0 : random_.Unit() * most;
    };
    faults_ = {rate(0.2), rate(0.1), rate(0.1), rate(0.1), rate(0.003), rate(0.003)};
  }

  void Run() {
    for (int i = 0; i < kTurns && !testing::Test::HasFailure(); ++i) {
      if (random_.Below(4) == 0) (void)source_.engine().core().Submit(MakeRequest(false));
      Turn();
      if (random_.Below(4) == 0) CompareSettled(false);
    }
    faults_ = {};
    Rest();
    TurnOver();
    for (auto& router : routers_) {
      EXPECT_TRUE(router && router->HasHeardAll(source_.published()))
          << "seed " << seed_ << ": " << (router ? router->Whereabouts() : "dead") << ", published "
          << source_.published();
    }
    CompareSettled(true);
  }

 private:
  static std::string NameOf(size_t i) { return "r" + std::to_string(i); }

  EngineRequest MakeRequest(bool fresh) {
    EngineRequest request;
    const TokenId family = fresh ? next_fresh_++ : static_cast<TokenId>(random_.Below(6));
    const size_t length = fresh ? 3 * kPolledBlock + 1 : 1 + random_.Below(7 * kPolledBlock);
    for (size_t i = 0; i < length; ++i) {
      const bool changed = !fresh && i > 2 * kPolledBlock && random_.Below(20) == 0;
      request.prompt.push_back(changed ? static_cast<TokenId>(random_.Below(3))
                                       : family * 1000 + static_cast<TokenId>(i));
    }
    request.max_tokens = static_cast<uint32_t>(1 + random_.Below(6));
    return request;
  }

  // --- routers that come and go ---

  void Bear(size_t i) {
    routers_[i] = std::make_unique<PollingRouter>(
        NameOf(i), now_, [this, i](const PolledAnswer& told) { Spread(i, told); });
    ++lives_[i];
    for (size_t other = 0; other < kReplicas; ++other) {
      if (other == i || !routers_[other]) continue;
      news_.Send(now_ + Delay(1500), {i, other, true, lives_[other]});
      news_.Send(now_ + Delay(1500), {other, i, true, lives_[i]});
    }
  }
  void Kill(size_t i) {
    routers_[i].reset();
    reborn_.Send(now_ + seconds(1) + Delay(8000), i);
    const Duration noticed = random_.Below(2) == 0 ? Duration(milliseconds(100)) : seconds(5);
    for (size_t other = 0; other < kReplicas; ++other) {
      if (other != i) news_.Send(now_ + noticed, {other, i, false, lives_[i]});
    }
  }
  void TellNews() {
    for (const size_t i : reborn_.Arrived(now_)) Bear(i);
    for (const News& news : news_.Arrived(now_)) {
      auto& router = routers_[news.to];
      if (!router || news.life != lives_[news.about]) continue;
      if (news.alive) {
        router->Part(NameOf(news.about), now_);
        if (routers_[news.about]) router->Meet(NameOf(news.about), now_);
      } else {
        router->Part(NameOf(news.about), now_);
      }
    }
  }

  // --- the network ---

  Duration Delay(uint64_t most_ms) { return milliseconds(random_.Below(most_ms)); }
  bool Chance(double rate) { return random_.Unit() < rate; }

  void Spread(size_t from, const PolledAnswer& told) {
    for (size_t to = 0; to < kReplicas; ++to) {
      if (to == from || Chance(faults_.lose_word)) continue;
      const Duration late = Chance(faults_.late_word) ? Delay(5000) : Duration::zero();
      words_.Send(now_ + Delay(200) + late, {from, to, lives_[from], lives_[to], told});
    }
  }
  void DeliverWords() {
    for (const Word& word : words_.Arrived(now_)) {
      auto& router = routers_[word.to];
      const bool same = word.life == lives_[word.from] && word.life_of_to == lives_[word.to];
      if (router && same) router->Hear(NameOf(word.from), word.told, now_);
    }
  }
  void Poll() {
    for (size_t i = 0; i < kReplicas; ++i) {
      auto& router = routers_[i];
      if (!router || router->polling()) continue;
      if (!router->WantsToPoll(now_) && !Chance(faults_.out_of_turn)) continue;
      router->BeginPoll();
      polls_.Send(now_ + Delay(100), {i, lives_[i], std::nullopt});
    }
    for (Polling& poll : polls_.Arrived(now_)) {
      const bool lost = Chance(faults_.lose_answer) && !source_.unheard();
      const bool alive = routers_[poll.router] && poll.life == lives_[poll.router];
      if (source_.up(now_) && (alive || !source_.unheard())) {
        auto answer = source_.Poll();
        if (!lost) poll.answer = std::move(answer);
      }
      answers_.Send(now_ + Delay(400), std::move(poll));
    }
    for (const Polling& poll : answers_.Arrived(now_)) {
      auto& router = routers_[poll.router];
      if (router && poll.life == lives_[poll.router]) router->EndPoll(poll.answer, now_);
    }
  }

  void Turn() {
    now_ += kTurn;
    if (source_.up(now_)) {
      source_.Step();
      if (Chance(faults_.restart)) source_.Restart(now_);
    }
    for (size_t i = 0; i < kReplicas; ++i) {
      if (routers_[i] && Chance(faults_.die)) Kill(i);
    }
    TellNews();
    DeliverWords();
    Poll();
    for (auto& router : routers_) {
      if (router) router->Tick(now_);
    }
  }

  // --- the end ---

  void Rest() {
    for (int i = 0; i < 4000; ++i) {
      Turn();
      const EngineCore& core = source_.engine().core();
      if (core.running() + core.waiting() > 0 || !IsSettled()) continue;
      const bool all = std::ranges::all_of(routers_, [&](const auto& router) {
        return router && router->HasHeardAll(source_.published());
      });
      if (all && reborn_.empty() && news_.empty()) return;
    }
  }
  void TurnOver() {
    const size_t capacity = source_.engine().core().pool().usable_blocks();
    for (size_t blocks = 0; blocks < 3 * capacity; blocks += 3) {
      (void)source_.engine().core().Submit(MakeRequest(true));
      for (int i = 0; i < 10; ++i) Turn();
    }
    Rest();
  }

  // Nothing is on its way, and all know of the same process.
  bool IsSettled() const {
    uint64_t process = 0;
    for (const auto& router : routers_) {
      if (!router || router->process() == 0) continue;
      if (process != 0 && router->process() != process) return false;
      process = router->process();
    }
    return words_.empty() && answers_.empty() && !source_.unheard() && source_.up(now_);
  }
  void CompareSettled(bool everything) {
    if (!IsSettled()) return;
    auto& engine = source_.engine();
    const size_t stride = everything ? 1 : 1 + engine.known_blocks() / 4;
    for (const auto& prompt : engine.Prompts(random_.Below(stride), stride)) {
      for (auto& router : routers_) {
        if (!router || !router->HasHeardAll(source_.published())) continue;
        ++compared_;
        EXPECT_EQ(router->Complaint(prompt, everything), "")
            << "seed " << seed_ << "\nagain with FATHOM_SIMULATION_SEED=" << seed_;
      }
    }
    if (engine.known_blocks() > 400) engine.ForgetPrompts();
  }

  struct Word {
    size_t from;
    size_t to;
    uint64_t life;
    uint64_t life_of_to;
    PolledAnswer told;
  };
  struct News {
    size_t to;
    size_t about;
    bool alive;
    uint64_t life;
  };
  struct Polling {
    size_t router;
    uint64_t life;
    std::optional<std::string> answer;
  };

  const uint64_t seed_;
  Random random_;
  TimePoint now_{seconds(1000)};
  PolledSource source_;
  GroupFaults faults_;
  std::array<std::unique_ptr<PollingRouter>, kReplicas> routers_;
  std::array<uint64_t, kReplicas> lives_{};
  OnTheirWay<Word> words_;
  OnTheirWay<News> news_;
  OnTheirWay<size_t> reborn_;
  OnTheirWay<Polling> polls_;
  OnTheirWay<Polling> answers_;
  TokenId next_fresh_ = 100;

 public:
  uint64_t compared_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(PolledGroup, NoIndexClaimsMoreThanTheEngineHolds) {
  if (const uint64_t seed = FromEnvironment("FATHOM_SIMULATION_SEED", 0); seed != 0) {
    GroupLife(seed).Run();
    return;
  }
  const uint64_t seeds = FromEnvironment("FATHOM_SIMULATION_SEEDS", kGroupSeeds);
  uint64_t compared = 0;
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    GroupLife life(seed);
    life.Run();
    compared += life.compared_;
  }
  EXPECT_GT(compared, seeds * 100);
}

}  // namespace
}  // namespace fathom
