#include "lab/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/random.h"
#include "text/tokens/key_chain.h"

namespace fathom {
namespace {

constexpr size_t kNobody = ~size_t{0};
// Tokens that are told to the books together: a lock for each would be most of the work.
constexpr uint32_t kGrowBy = 16;

// Until the first arrival, so that replicas know each other.
constexpr Duration kMeeting = std::chrono::seconds(10);

class Replay {
 public:
  Replay(const std::vector<TraceRequest>& trace, const ReplayOptions& options,
         const TimingProfile& profile)
      : trace_(trace),
        options_(options),
        profile_(profile),
        begins_(options.exchange ? kMeeting : Duration::zero()),
        engines_(MakeEngines(options, profile)),
        index_(IndexOf(options.router), PointersTo(engines_)),
        balancer_(options.router.seed),
        next_number_(options.workers),
        requests_(trace.size()) {
    for (uint32_t i = 0; i < options.replicas; ++i) AddReplica(i);
    if (options.exchange) exchange_.emplace(*options.exchange, options.router.seed, Routers());
    report_.placed.assign(trace.size(), kNobody);
    report_.prefilled.assign(options.workers, 0);
  }

  ReplayReport Run() {
    while (Advance()) {
      EndSteps();
      index_.Deliver(now_);
      Exchange();
      for (const auto& replica : replicas_) replica->router.LookAtTrust(now_);
      TakeIncidents();
      TakeArrivals();
      BeginSteps();
    }
    if (exchange_) SettleExchange();
    Summarise();
    return std::move(report_);
  }

 private:
  using Engines = std::vector<std::unique_ptr<VirtualEngine>>;

  // A router with its own line of requests that wait.
  struct Replica {
    Replica(const VirtualRouterOptions& options, uint64_t number,
            std::span<VirtualEngine* const> engines, VirtualIndex& index)
        : router(options, number, engines, index) {}

    VirtualRouter router;
    std::deque<size_t> waiting;
    bool room_made = false;       // since somebody who waits was asked about
    std::vector<TokenId> prompt;  // of the request that was asked about last
    size_t prompt_of = kNobody;
  };

  struct Request {
    Replica* replica = nullptr;
    TimePoint first_token{};
    uint32_t generated = 0;
    bool at_engine = false;
    VirtualRouter::Visit visit;
  };

  static Engines MakeEngines(const ReplayOptions& options, const TimingProfile& profile) {
    Engines engines;
    for (uint32_t i = 0; i < options.workers; ++i) {
      engines.push_back(std::make_unique<VirtualEngine>(i, options.engine, profile));
    }
    return engines;
  }

  static std::vector<VirtualEngine*> PointersTo(const Engines& engines) {
    std::vector<VirtualEngine*> pointers;
    for (const auto& engine : engines) pointers.push_back(engine.get());
    return pointers;
  }

  static VirtualIndexOptions IndexOf(const VirtualRouterOptions& router) {
    return {.delay = router.event_delay,
            .faults = router.faults,
            .remembers_lost = router.trust.has_value(),
            .seed = router.seed};
  }

  void AddReplica(uint32_t number) {
    replicas_.push_back(
        std::make_unique<Replica>(options_.router, number, PointersTo(engines_), index_));
  }

  std::vector<VirtualRouter*> Routers() const {
    std::vector<VirtualRouter*> routers;
    for (const auto& replica : replicas_) routers.push_back(&replica->router);
    return routers;
  }

  TimePoint Arrival(size_t request) const {
    const auto at = static_cast<double>(trace_[request].at.count()) / options_.arrivals;
    return TimePoint(begins_ + Duration(std::llround(at)));
  }
  TimePoint TimeOf(const Incident& incident) const { return TimePoint(begins_ + incident.at); }

  // To the next moment at which something happens; false when nothing does any more.
  bool Advance() {
    TimePoint next = index_.next();
    if (next_arrival_ < trace_.size()) next = std::min(next, Arrival(next_arrival_));
    if (next_incident_ < options_.incidents.size()) {
      next = std::min(next, TimeOf(options_.incidents[next_incident_]));
    }
    next = std::min({next, returns_.next(), steps_.next()});
    if (next == kNever) return false;
    for (const auto& replica : replicas_) {
      next = std::min(next, std::max(now_, replica->router.next_look()));
    }
    if (exchange_) next = std::min(next, std::max(now_, exchange_->next()));
    now_ = next;
    return true;
  }

  void EndSteps() {
    while (const auto number = steps_.Pop(now_)) {
      VirtualEngine& engine = *engines_[*number];
      // An engine that went took its step with it.
      if (engine.step_end() > now_) continue;
      EngineStep& step = engine.EndStep();
      for (const EngineOutput& output : step.outputs) Take(engine.OwnerOf(output.sequence), output);
      if (options_.router.policy == ReplayPolicy::kKv) index_.Hear(*number, step.events, now_);
      touched_.push_back(*number);
    }
  }

  // Of engines that have got work since their last step.
  void BeginSteps() {
    for (const size_t engine : touched_) {
      if (engines_[engine]->BeginStep(now_)) steps_.Push(engines_[engine]->step_end(), engine);
    }
    touched_.clear();
  }

  void Exchange() {
    if (!exchange_) return;
    exchange_->Advance(now_);
    for (size_t i = 0; i < replicas_.size(); ++i) {
      if (exchange_->TakeHeard(i)) replicas_[i]->room_made = true;
    }
  }

  void SettleExchange() {
    const TimePoint end = now_ + ReplayReport::kSettles;
    for (; exchange_->next() <= end; exchange_->Advance(now_)) now_ = exchange_->next();
  }

  void Take(size_t number, const EngineOutput& output) {
    Request& request = requests_[number];
    if (request.generated++ == 0) {
      request.first_token = now_;
      report_.first_token.push_back(now_ - Arrival(number));
      report_.missed_tokens += std::max(request.visit.expected - output.cached_tokens, 0.0);
      request.replica->router.FirstByte(request.visit, now_);
      request.replica->room_made = true;
    } else if (request.visit.booked && request.generated % kGrowBy == 0) {
      request.visit.booked->Grow(kGrowBy);
    }
    // As vLLM says it: what a preempted request had found is forgotten.
    if (output.finished) Finish(request, output.preempted ? 0 : output.cached_tokens);
  }

  void Finish(Request& request, uint32_t cached) {
    if (request.generated > 1) {
      report_.between_tokens.push_back((now_ - request.first_token) / (request.generated - 1));
    }
    request.replica->router.End(request.visit, cached, now_);
    request.at_engine = false;
    ++report_.requests;
    report_.lasted = now_ - Arrival(0);
    request.replica->room_made = true;
  }

  void TakeIncidents() {
    while (const auto back = returns_.Pop(now_)) {
      for (const auto& replica : replicas_) {
        replica->router.Return(*back);
        replica->room_made = true;
      }
    }
    for (; next_incident_ < options_.incidents.size(); ++next_incident_) {
      const Incident& incident = options_.incidents[next_incident_];
      if (TimeOf(incident) > now_) break;
      Suffer(incident);
    }
  }

  void Suffer(const Incident& incident) {
    EndAllAt(incident.engine);
    std::unique_ptr<VirtualEngine>& engine = engines_[incident.engine];
    Count(incident.engine);
    auto next = incident.kind == Incident::Kind::kRestart
                    ? std::make_unique<VirtualEngine>(*engine, profile_)
                    : std::make_unique<VirtualEngine>(next_number_++, options_.engine, profile_);
    if (incident.kind == Incident::Kind::kRestart) {
      index_.Restart(incident.engine);
    } else {
      index_.Replace(incident.engine, *next);
    }
    for (const auto& replica : replicas_) replica->router.Replace(incident.engine, *next);
    // Somebody may still speak of it.
    gone_.push_back(std::exchange(engine, std::move(next)));
    returns_.Push(now_ + incident.away, incident.engine);
  }

  // Those without a token go to another engine, the oldest first.
  void EndAllAt(size_t engine) {
    for (size_t i = next_arrival_; i-- > 0;) {
      Request& request = requests_[i];
      if (!request.at_engine || request.visit.engine != engine) continue;
      Replica& replica = *request.replica;
      replica.router.End(request.visit, std::nullopt, now_);
      request.at_engine = false;
      if (request.generated == 0) {
        replica.waiting.push_front(i);
      } else {
        ++report_.broken;
      }
      replica.room_made = true;
    }
  }

  // Whoever waits is asked about when room was made; who comes behind him waits too.
  void TakeArrivals() {
    for (const auto& replica : replicas_) {
      if (std::exchange(replica->room_made, false)) DispatchWaiting(*replica);
    }
    for (; next_arrival_ < trace_.size() && Arrival(next_arrival_) <= now_; ++next_arrival_) {
      Replica& replica = *replicas_[balancer_.Below(replicas_.size())];
      requests_[next_arrival_].replica = &replica;
      replica.waiting.push_back(next_arrival_);
      if (replica.waiting.size() == 1) DispatchWaiting(replica);
    }
  }

  void DispatchWaiting(Replica& replica) {
    while (!replica.waiting.empty() && Dispatch(replica, replica.waiting.front())) {
      replica.waiting.pop_front();
    }
  }

  // False: it has to wait.
  bool Dispatch(Replica& replica, size_t number) {
    if (std::exchange(replica.prompt_of, number) != number) {
      replica.prompt = PromptOf(trace_[number]);
    }
    auto visit = replica.router.Route(replica.prompt, replica.waiting.size() - 1, now_);
    if (!visit) return false;
    replica.prompt_of = kNobody;
    if (now_ > Arrival(number)) report_.waits.push_back(now_ - Arrival(number));
    VirtualEngine& engine = *engines_[visit->engine];
    EngineRequest request{.prompt = std::move(replica.prompt), .max_tokens = trace_[number].output};
    if (!engine.Submit(number, std::move(request))) {
      ++report_.refused;
      replica.router.End(*visit, std::nullopt, now_);
      return true;
    }
    touched_.push_back(visit->engine);
    report_.placed[number] = visit->engine;
    report_.order.push_back(number);
    requests_[number].visit = *std::move(visit);
    requests_[number].at_engine = true;
    return true;
  }

  void Count(size_t engine) {
    const EngineCounters& counters = engines_[engine]->core().counters();
    report_.prompt_tokens += counters.prompt_tokens;
    report_.cached_tokens += counters.cached_tokens;
    report_.generated_tokens += counters.generated_tokens;
    report_.preemptions += counters.preemptions;
    report_.prefilled[engine] += counters.prompt_tokens - counters.cached_tokens;
  }

  void Summarise() {
    for (size_t i = 0; i < engines_.size(); ++i) Count(i);
    const VirtualTrust* const trust = replicas_.front()->router.trust();
    if (trust != nullptr) report_.trust = trust->changes();
    report_.books_empty = true;
    for (const auto& replica : replicas_) {
      const auto& decisions = replica->router.decision_times();
      report_.decisions.insert(report_.decisions.end(), decisions.begin(), decisions.end());
      report_.books_empty = report_.books_empty && replica->router.AllBooksEmpty(now_);
    }
    if (exchange_) report_.exchanged = exchange_->traffic();
    for (auto* samples :
         {&report_.first_token, &report_.between_tokens, &report_.waits, &report_.decisions}) {
      std::ranges::sort(*samples);
    }
  }

  const std::vector<TraceRequest>& trace_;
  const ReplayOptions& options_;
  const TimingProfile& profile_;
  const Duration begins_;  // the trace does
  Engines engines_;
  Engines gone_;
  VirtualIndex index_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::optional<VirtualExchange> exchange_;
  Random balancer_;
  uint32_t next_number_;  // of engines
  TimeQueue returns_;     // of engines
  size_t next_incident_ = 0;
  TimePoint now_{};
  TimeQueue steps_;              // their ends, by engine
  std::vector<size_t> touched_;  // engines that may begin a step
  size_t next_arrival_ = 0;
  std::vector<Request> requests_;  // as in the trace
  ReplayReport report_;
};

}  // namespace

double ReplayReport::reuse() const {
  return static_cast<double>(cached_tokens) /
         static_cast<double>(std::max<uint64_t>(prompt_tokens, 1));
}

double ReplayReport::imbalance() const {
  const uint64_t sum = std::accumulate(prefilled.begin(), prefilled.end(), uint64_t{0});
  if (sum == 0) return 1;
  return static_cast<double>(std::ranges::max(prefilled) * prefilled.size()) /
         static_cast<double>(sum);
}

ReplayReport RunReplay(const std::vector<TraceRequest>& trace, const ReplayOptions& options,
                       const TimingProfile& profile) {
  return Replay(trace, options, profile).Run();
}

Duration Quantile(const std::vector<Duration>& sorted, double share) {
  if (sorted.empty()) return {};
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(at, 1, sorted.size()) - 1];
}

Duration Mean(const std::vector<Duration>& samples) {
  if (samples.empty()) return {};
  return std::accumulate(samples.begin(), samples.end(), Duration{}) /
         static_cast<int64_t>(samples.size());
}

double IdealReuse(const std::vector<TraceRequest>& trace, uint32_t block_size) {
  std::unordered_set<uint64_t> known;
  std::vector<uint64_t> storage;
  const BlockShape shape{.size = block_size};
  uint64_t reused = 0;
  uint64_t all = 0;
  for (const TraceRequest& request : trace) {
    const std::vector<TokenId> prompt = PromptOf(request);
    const auto keys = KeyChain(prompt, shape, kKeySeed, storage).All();
    const auto unknown =
        std::ranges::find_if(keys, [&](uint64_t key) { return !known.contains(key); });
    const auto found = static_cast<size_t>(unknown - keys.begin()) * block_size;
    reused += std::min(found, shape.MostCached(prompt.size()));
    all += prompt.size();
    known.insert(unknown, keys.end());
  }
  return static_cast<double>(reused) / static_cast<double>(std::max<uint64_t>(all, 1));
}

}  // namespace fathom
