#include "lab/bench/bench_exchange.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/exit_status.h"
#include "base/random.h"
#include "base/text.h"
#include "codec/json.h"
#include "io/net/message_seal.h"
#include "lab/bench/bench_settings.h"
#include "lab/replay/time_queue.h"
#include "lab/replay/virtual_network.h"
#include "router/replicas/load_exchange.h"
#include "router/replicas/prompt_exchange.h"
#include "router/replicas/replica_group.h"

namespace fathom {
namespace {

constexpr std::string_view kExchangeUsage =
    "usage: fathom bench exchange [replicas=2,8,32] [ranks=1000] [rate=4000] [seconds=10]\n"
    "         [tokens=8192] [answer=200]\n"
    "Replicas with all of their messages, sealed, over a carrier in memory and in virtual time:\n"
    "`rate` requests per second, of all replicas together, to random ranks. Prints microseconds "
    "of\n"
    "CPU and bytes per request, of the replica that tells and of each that hears.\n";

struct ExchangePlan {
  std::string replicas = "2,8,32";
  uint64_t ranks = 1000;
  uint64_t rate = 4000;
  uint64_t seconds = 10;
  uint64_t tokens = 8192;  // of a prompt
  uint64_t answer = 200;   // tokens
};

Duration ThreadCpu() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// A router as the exchange knows it: a fleet with loads, and sent prompts.
class ExchangeReplica {
 public:
  ExchangeReplica(const ExchangePlan& plan, std::string name, const MessageSeal& seal,
                  Carrier& carrier, const TimePoint& now, Random& random)
      : fleet_({}, plan.ranks),
        group_({.self = {.group = "bench", .id = std::move(name), .incarnation = random.Next()},
                .seed = random.Next()},
               &seal, carrier, [] { return ReplicaPresence{}; }),
        loads_(fleet_, speed_, group_),
        prompts_(sent_, group_) {
    for (uint64_t i = 0; i < plan.ranks; ++i) Employ(i);
    group_.Invite(loads_);
    group_.Invite(prompts_);
    carrier.Start([this, &now](std::string_view bytes) { group_.Received(bytes, now); });
  }

  ReplicaGroup& group() { return group_; }
  SentPrompts& sent() { return sent_; }
  Worker& worker(uint64_t number) { return *workers_[number]; }

  bool IsQuiet(TimePoint now) const {
    return std::ranges::all_of(workers_, [&](const std::shared_ptr<Worker>& worker) {
      return worker->ranks.only().load.Look(now, 1) == RankLoad::View{};
    });
  }

 private:
  void Employ(uint64_t number) {
    auto worker = fleet_.Add({.url = fmt::format("http://worker-{}:8000", number)});
    CHECK(worker);
    fleet_.SetModels((*worker)->id(), {.models = {"model"}, .cards = {""}});
    fleet_.SetHealthy((*worker)->id());
    workers_.push_back(*std::move(worker));
  }

  Fleet fleet_;
  EngineSpeed speed_;
  SentPrompts sent_{std::chrono::seconds(1)};
  std::vector<std::shared_ptr<Worker>> workers_;
  ReplicaGroup group_;
  LoadExchange loads_;
  PromptExchange prompts_;
};

struct ExchangeCost {
  uint64_t replicas = 0;
  uint64_t requests = 0;
  Duration telling{};  // CPU of all replicas
  Duration hearing{};
  uint64_t messages = 0;  // published
  uint64_t bytes = 0;     // theirs, once for each message
  bool quiet = false;     // in the end no replica sees a load
};

class ExchangeRun {
 public:
  ExchangeRun(const ExchangePlan& plan, uint64_t replicas)
      : plan_(plan), network_({}, NamesOf(replicas), 1) {
    for (uint64_t i = 0; i < replicas; ++i) {
      replicas_.push_back(std::make_unique<ExchangeReplica>(plan, NamesOf(replicas)[i], seal_,
                                                            network_.carrier(i), now_, random_));
    }
  }

  ExchangeCost Run() {
    PassTime(std::chrono::seconds(3));  // they meet
    cost_ = {.replicas = replicas_.size()};
    const auto [messages, bytes] = Published();
    const TimePoint end = now_ + std::chrono::seconds(plan_.seconds);
    const Duration apart = Duration(std::chrono::seconds(1)) / static_cast<int64_t>(plan_.rate);
    for (TimePoint at = now_; at < end; at += apart) events_.Push(at, Expect());
    while (events_.next() != kNever) PassTime(ReplicaGroup::kTick);
    cost_.requests = requests_.size();
    const auto [messages_now, bytes_now] = Published();
    cost_.messages = messages_now - messages;
    cost_.bytes = bytes_now - bytes;
    const ExchangeCost cost = cost_;
    PassTime(std::chrono::seconds(3));
    cost_ = cost;
    cost_.quiet =
        std::ranges::all_of(replicas_, [&](const auto& replica) { return replica->IsQuiet(now_); });
    return cost_;
  }

 private:
  struct Request {
    ExchangeReplica* replica = nullptr;
    uint64_t rank = 0;
    int phase = 0;
    RankLoad::Stay stay;
    SentPrompts::Sending sending;
  };
  // Of an answer, after its first byte.
  static constexpr int kGrowths = 10;

  static std::vector<std::string> NamesOf(uint64_t replicas) {
    std::vector<std::string> names;
    for (uint64_t i = 0; i < replicas; ++i) names.push_back(fmt::format("replica-{}", i));
    return names;
  }

  size_t Expect() {
    auto request = std::make_unique<Request>();
    request->replica = replicas_[random_.Below(replicas_.size())].get();
    request->rank = random_.Below(plan_.ranks);
    requests_.push_back(std::move(request));
    return requests_.size() - 1;
  }

  void Step(size_t number) {
    Request& request = *requests_[number];
    RankLoad& load = request.replica->worker(request.rank).ranks.only().load;
    SentPrompts& sent = request.replica->sent();
    const int phase = request.phase++;
    if (phase == 0) {
      Mark(number);
      sent.Begin(request.sending, {request.replica->worker(request.rank).id().value(), 0}, marks_,
                 now_);
      load.Enter(request.stay, RankLoad::Kind::kAnnounced, static_cast<double>(plan_.tokens),
                 plan_.tokens, now_);
    } else if (phase == 1) {
      sent.FirstByte(request.sending, now_);
      load.FirstByte(request.stay, now_);
    } else if (phase < 2 + kGrowths) {
      load.Grow(request.stay, plan_.answer / kGrowths);
    } else {
      sent.End(request.sending, now_);
      load.Leave(request.stay, now_);
      return;
    }
    events_.Push(now_ + std::chrono::milliseconds(200), number);
  }

  // A prompt that no other one resembles.
  void Mark(size_t number) {
    marks_.clear();
    for (uint32_t at = kFirstMark; at <= plan_.tokens; at = NextMark(at)) {
      marks_.push_back({.key = random_.Next() ^ number, .tokens = at});
    }
  }

  void PassTime(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end;) {
      now_ += ReplicaGroup::kTick;
      network_.SetNow(now_);
      while (const auto number = events_.Pop(now_)) Step(*number);
      const Duration begun = ThreadCpu();
      for (const auto& replica : replicas_) replica->group().Tick(now_);
      const Duration told = ThreadCpu();
      network_.Deliver(now_);
      cost_.telling += told - begun;
      cost_.hearing += ThreadCpu() - told;
    }
  }

  std::pair<uint64_t, uint64_t> Published() const {
    uint64_t messages = 0;
    uint64_t bytes = 0;
    for (const auto& replica : replicas_) {
      messages += replica->group().counts().sent;
      bytes += replica->group().counts().sent_bytes;
    }
    return {messages, bytes};
  }

  const ExchangePlan& plan_;
  const MessageSeal seal_{"a key of the benchmark"};
  TimePoint now_{std::chrono::hours(1)};
  Random random_{1};
  VirtualNetwork network_;
  std::vector<std::unique_ptr<ExchangeReplica>> replicas_;
  std::vector<std::unique_ptr<Request>> requests_;
  TimeQueue events_;  // of requests
  std::vector<PromptMark> marks_;
  ExchangeCost cost_;
};

std::string ExchangeReportOf(const ExchangePlan& plan, const std::vector<ExchangeCost>& costs) {
  JsonWriter w;
  w.BeginObject().Key("ranks").Unsigned(plan.ranks).Key("rate").Unsigned(plan.rate);
  w.Key("tokens").Unsigned(plan.tokens).Key("runs").BeginArray();
  for (const ExchangeCost& cost : costs) {
    const auto requests = static_cast<double>(cost.requests);
    const auto others = static_cast<double>(cost.replicas - 1);
    const double telling = Seconds(cost.telling) * 1e6 / requests;
    const double hearing = Seconds(cost.hearing) * 1e6 / requests / others;
    w.BeginObject().Key("replicas").Unsigned(cost.replicas).Key("requests").Unsigned(cost.requests);
    w.Key("telling_us").Number(telling).Key("hearing_us").Number(hearing);
    // Each hears all requests but its own.
    w.Key("replica_us_per_own_request").Number(telling + others * hearing);
    w.Key("messages").Number(static_cast<double>(cost.messages) / requests);
    w.Key("bytes").Number(static_cast<double>(cost.bytes) / requests);
    const double share = static_cast<double>(plan.rate) / static_cast<double>(cost.replicas);
    w.Key("core_percent").Number((telling + others * hearing) * share / 1e4);
    w.Key("quiet").Bool(cost.quiet).EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace

int RunBenchExchange(std::span<const std::string_view> args) {
  ExchangePlan plan;
  const BenchSetting settings[] = {
      {"replicas", &plan.replicas},          {"ranks", &plan.ranks, 1, 16384},
      {"rate", &plan.rate, 1, 1e6},          {"seconds", &plan.seconds, 1, 3600},
      {"tokens", &plan.tokens, 64, 1 << 20}, {"answer", &plan.answer, 10, 1 << 20}};
  if (const auto set = ReadSettings(args, settings); !set) {
    return RefuseBench(set.error().what, kExchangeUsage);
  }
  std::vector<ExchangeCost> costs;
  for (const std::string_view word : SplitAny(plan.replicas, ",")) {
    const auto number = ParseDecimal(word);
    if (!number || *number < 2 || *number > OriginGate::kMostOrigins) {
      return RefuseBench(fmt::format("'{}' is not a number of replicas", word), kExchangeUsage);
    }
    costs.push_back(ExchangeRun(plan, *number).Run());
    if (!costs.back().quiet) {
      fmt::print(stderr, "fathom bench: a load was left with {} replicas\n", *number);
      return kExitFailed;
    }
  }
  fmt::print("{}\n", ExchangeReportOf(plan, costs));
  return kExitFine;
}

}  // namespace fathom
