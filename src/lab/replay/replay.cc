#include "lab/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "text/tokens/key_chain.h"

namespace fathom {
namespace {

constexpr size_t kNobody = ~size_t{0};
// Tokens that are told to the books together: a lock for each would be most of the work.
constexpr uint32_t kGrowBy = 16;

class Replay {
 public:
  Replay(const std::vector<TraceRequest>& trace, const ReplayOptions& options,
         const TimingProfile& profile)
      : trace_(trace),
        options_(options),
        profile_(profile),
        engines_(MakeEngines(options, profile)),
        pointers_(PointersTo(engines_)),
        router_(options.router, pointers_),
        next_number_(options.workers),
        returns_(options.workers, kNever),
        requests_(trace.size()) {
    report_.placed.assign(trace.size(), kNobody);
    report_.prefilled.assign(options.workers, 0);
  }

  ReplayReport Run() {
    while (Advance()) {
      EndSteps();
      router_.DeliverEvents(now_);
      router_.LookAtTrust(now_);
      TakeIncidents();
      TakeArrivals();
      for (const auto& engine : engines_) engine->BeginStep(now_);
    }
    Summarise();
    return std::move(report_);
  }

 private:
  using Engines = std::vector<std::unique_ptr<VirtualEngine>>;

  struct Request {
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

  TimePoint Arrival(size_t request) const {
    const auto at = static_cast<double>(trace_[request].at.count()) / options_.arrivals;
    return TimePoint(Duration(std::llround(at)));
  }

  // To the next moment at which something happens; false when nothing does any more.
  bool Advance() {
    TimePoint next = router_.next_event();
    if (next_arrival_ < trace_.size()) next = std::min(next, Arrival(next_arrival_));
    if (next_incident_ < options_.incidents.size()) {
      next = std::min(next, TimePoint(options_.incidents[next_incident_].at));
    }
    for (const TimePoint back : returns_) next = std::min(next, back);
    for (const auto& engine : engines_) next = std::min(next, engine->step_end());
    if (next == kNever) return false;
    now_ = std::min(next, std::max(now_, router_.next_look()));
    return true;
  }

  void EndSteps() {
    for (size_t i = 0; i < engines_.size(); ++i) {
      VirtualEngine& engine = *engines_[i];
      if (engine.step_end() > now_) continue;
      EngineStep& step = engine.EndStep();
      for (const EngineOutput& output : step.outputs) Take(engine.OwnerOf(output.sequence), output);
      router_.Hear(i, step.events, now_);
    }
  }

  void Take(size_t number, const EngineOutput& output) {
    Request& request = requests_[number];
    if (request.generated++ == 0) {
      request.first_token = now_;
      report_.first_token.push_back(now_ - Arrival(number));
      report_.missed_tokens += std::max(request.visit.expected - output.cached_tokens, 0.0);
      router_.FirstByte(request.visit, now_);
      room_made_ = true;
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
    router_.End(request.visit, cached, now_);
    request.at_engine = false;
    ++report_.requests;
    report_.lasted = now_ - Arrival(0);
    room_made_ = true;
  }

  void TakeIncidents() {
    for (size_t i = 0; i < returns_.size(); ++i) {
      if (returns_[i] > now_) continue;
      returns_[i] = kNever;
      router_.Return(i);
      room_made_ = true;
    }
    for (; next_incident_ < options_.incidents.size(); ++next_incident_) {
      const Incident& incident = options_.incidents[next_incident_];
      if (TimePoint(incident.at) > now_) break;
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
    router_.Replace(incident.engine, *next);
    // Somebody may still speak of it.
    gone_.push_back(std::exchange(engine, std::move(next)));
    returns_[incident.engine] = now_ + incident.away;
  }

  // Those without a token go to another engine, the oldest first.
  void EndAllAt(size_t engine) {
    for (size_t i = next_arrival_; i-- > 0;) {
      Request& request = requests_[i];
      if (!request.at_engine || request.visit.engine != engine) continue;
      router_.End(request.visit, std::nullopt, now_);
      request.at_engine = false;
      if (request.generated == 0) {
        waiting_.push_front(i);
      } else {
        ++report_.broken;
      }
      room_made_ = true;
    }
  }

  // Whoever waits is asked about when room was made; who comes behind him waits too.
  void TakeArrivals() {
    if (std::exchange(room_made_, false)) DispatchWaiting();
    for (; next_arrival_ < trace_.size() && Arrival(next_arrival_) <= now_; ++next_arrival_) {
      waiting_.push_back(next_arrival_);
      if (waiting_.size() == 1) DispatchWaiting();
    }
  }

  void DispatchWaiting() {
    while (!waiting_.empty() && Dispatch(waiting_.front())) waiting_.pop_front();
  }

  // False: it has to wait.
  bool Dispatch(size_t number) {
    if (std::exchange(prompt_of_, number) != number) prompt_ = PromptOf(trace_[number]);
    auto visit = router_.Route(prompt_, waiting_.size() - 1, now_);
    if (!visit) return false;
    prompt_of_ = kNobody;
    if (now_ > Arrival(number)) report_.waits.push_back(now_ - Arrival(number));
    VirtualEngine& engine = *engines_[visit->engine];
    EngineRequest request{.prompt = std::move(prompt_), .max_tokens = trace_[number].output};
    if (!engine.Submit(number, std::move(request))) {
      ++report_.refused;
      router_.End(*visit, std::nullopt, now_);
      return true;
    }
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
    if (router_.trust() != nullptr) report_.trust = router_.trust()->changes();
    report_.decisions = router_.decision_times();
    report_.books_empty = router_.AllBooksEmpty(now_);
    for (auto* samples :
         {&report_.first_token, &report_.between_tokens, &report_.waits, &report_.decisions}) {
      std::ranges::sort(*samples);
    }
  }

  const std::vector<TraceRequest>& trace_;
  const ReplayOptions& options_;
  const TimingProfile& profile_;
  Engines engines_;
  Engines gone_;
  const std::vector<VirtualEngine*> pointers_;
  VirtualRouter router_;
  uint32_t next_number_;            // of engines
  std::vector<TimePoint> returns_;  // of each engine; kNever: it is there
  size_t next_incident_ = 0;
  TimePoint now_{};
  size_t next_arrival_ = 0;
  std::vector<Request> requests_;  // as in the trace
  std::deque<size_t> waiting_;
  bool room_made_ = false;  // since somebody who waits was asked about
  std::vector<TokenId> prompt_;
  size_t prompt_of_ = kNobody;
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
