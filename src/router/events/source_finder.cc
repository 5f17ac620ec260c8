#include "router/events/source_finder.h"

#include <algorithm>

#include "base/text.h"
#include "io/http/fetch.h"

namespace fathom {
namespace {

constexpr Duration kEngineAnswerTime = std::chrono::seconds(5);
constexpr Duration kTurnAgain = std::chrono::milliseconds(50);
// A turn comes in seconds. If it does not, the engine is polled all the same, which does no harm.
constexpr Duration kLongestTurn = std::chrono::seconds(30);

// A worker's answer at a path.
struct Page {
  bool reached = false;             // the worker answered, with any status
  std::optional<std::string> body;  // of a 200
};

Task<Page> Get(IntakeContext& context, const StreamOwner& owner, std::string path) {
  FetchRequest request;
  request.path = std::move(path);
  const std::string& key = owner.worker->spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint deadline = context.loop.now() + kEngineAnswerTime;
  auto asking = Fetch(context.loop, context.resolver, *owner.endpoint, request, deadline);
  auto answer = co_await asking;
  Page page;
  page.reached = answer.has_value();
  if (answer && answer->status == 200) page.body = std::move(answer->body);
  co_return page;
}

std::string ConventionalEndpoint(const IntakeContext& context, const StreamOwner& owner) {
  return WithHost("tcp://*:" + std::to_string(context.options.port), owner.endpoint->url.host);
}

// Rank 0 at `endpoint`, the others at the following ports.
Result<std::vector<EventSource>> Spread(const WorkerSpec& spec, const std::string& endpoint,
                                        uint32_t ranks) {
  std::vector<EventSource> sources;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EventSource source{.rank = rank, .topic = spec.kv_events_topic.value_or("")};
    TRY(source.endpoint, WithPortOffset(endpoint, rank));
    if (spec.kv_events_replay) {
      TRY(source.replay, WithPortOffset(*spec.kv_events_replay, rank));
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

// The engine's own report; nullopt if the engine has no such path.
struct Report {
  bool reached = false;
  std::optional<EventSources> said;
};

Task<Report> AskEngine(IntakeContext& context, const StreamOwner& owner) {
  Report report;
  const std::string& host = owner.endpoint->url.host;
  auto asking_vllm = Get(context, owner, "/kv_event_sources");
  const Page vllm = co_await asking_vllm;
  report.reached = vllm.reached;
  if (!vllm.reached) co_return report;
  if (vllm.body) {
    auto parsed = ParseKvEventSources(*vllm.body, host);
    if (parsed) report.said = *std::move(parsed);
    if (report.said) co_return report;
  }
  auto asking_sglang = Get(context, owner, "/server_info");
  const Page sglang = co_await asking_sglang;
  if (sglang.body) {
    auto parsed = ParseServerInfo(*sglang.body, host);
    if (parsed) report.said = *std::move(parsed);
  }
  co_return report;
}

Task<uint32_t> CountRanks(IntakeContext& context, const StreamOwner& owner) {
  auto asking = Get(context, owner, "/metrics");
  const Page page = co_await asking;
  co_return page.body ? RanksInMetrics(*page.body) : 1;
}

// Whether the engine has the path of polls, without a poll: it refuses the method, where another
// engine knows no such path.
Task<bool> HasPollPath(IntakeContext& context, const StreamOwner& owner) {
  constexpr int kMethodNotAllowed = 405;
  FetchRequest request;
  request.method = "OPTIONS";
  request.path = std::string(PollStream::kPath);
  const std::string& key = owner.worker->spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint deadline = context.loop.now() + kEngineAnswerTime;
  auto asking = Fetch(context.loop, context.resolver, *owner.endpoint, request, deadline);
  const auto answer = co_await asking;
  co_return answer && answer->status == kMethodNotAllowed;
}

// Returns when it is this router's turn to poll, or when another one is heard that does.
Task<void> AwaitTurn(IntakeContext& context, const StreamOwner& owner) {
  const WorkerId worker = owner.worker->id();
  const TimePoint latest = context.loop.now() + kLongestTurn;
  while (!context.polling_ended && !context.poll_turn->Mine(worker) &&
         !context.poll_turn->Known(worker) && context.loop.now() < latest) {
    co_await context.loop.Sleep(kTurnAgain);
  }
}

// nullopt: the engine does not answer polls.
Task<std::optional<PollStream::Beginning>> BeginPolling(IntakeContext& context,
                                                        const StreamOwner& owner) {
  PollStream::Beginning beginning;
  if (context.poll_turn != nullptr) {
    auto probing = HasPollPath(context, owner);
    const bool polled = co_await probing;
    if (polled) {
      auto waiting = AwaitTurn(context, owner);
      co_await waiting;
    }
    auto known = context.poll_turn->Known(owner.worker->id());
    if (known) beginning.known = *std::move(known);
    if (polled && beginning.known.process > 0 && !context.poll_turn->Mine(owner.worker->id())) {
      co_return beginning;
    }
  }
  if (context.polling_ended) co_return std::nullopt;
  beginning.counted = context.CountPoll();
  auto polling = PollStream::Ask(context, owner);
  auto answer = co_await polling;
  if (!answer || !Trim(*answer).starts_with('[')) {
    if (context.poll_turn != nullptr) context.poll_turn->Rests(owner.worker->id());
    co_return std::nullopt;
  }
  beginning.first = *std::move(answer);
  co_return beginning;
}

void Override(const WorkerSpec& spec, std::vector<EventSource>& sources) {
  for (EventSource& source : sources) {
    if (spec.kv_events_topic) source.topic = *spec.kv_events_topic;
    if (!spec.kv_events_replay) continue;
    if (auto replay = WithPortOffset(*spec.kv_events_replay, source.rank)) {
      source.replay = *std::move(replay);
    }
  }
}

}  // namespace

uint32_t RanksInMetrics(std::string_view metrics) {
  constexpr std::string_view kName = "vllm:cache_config_info{";
  constexpr std::string_view kLabel = "engine=\"";
  uint64_t ranks = 1;
  for (const std::string_view line : SplitAny(metrics, "\n")) {
    if (!line.starts_with(kName)) continue;
    const size_t at = line.find(kLabel);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = line.substr(at + kLabel.size());
    if (const auto rank = ParseDecimal(rest.substr(0, rest.find('"')))) {
      if (*rank < kMaxEventRanks) ranks = std::max(ranks, *rank + 1);
    }
  }
  return static_cast<uint32_t>(ranks);
}

Task<SourcePlan> FindSources(IntakeContext& context, const StreamOwner& owner) {
  // Engines are set to publish at tcp://*:5557, and that is what operators copy into the entry.
  WorkerSpec spec = owner.worker->spec();
  for (auto* endpoint : {&spec.kv_events, &spec.kv_events_replay}) {
    if (*endpoint) *endpoint = WithHost(**endpoint, owner.endpoint->url.host);
  }
  SourcePlan plan;
  auto asking = AskEngine(context, owner);
  Report report = co_await asking;
  plan.final = report.reached;
  if (!spec.kv_events && report.said) {
    plan.sources = std::move(report.said->sources);
    plan.problem = std::move(report.said->problem);
    plan.publisher_off = report.said->off;
    Override(spec, plan.sources);
    co_return plan;
  }
  if (!spec.kv_events && !report.reached) co_return plan;
  if (!spec.kv_events) {
    // An engine that is polled answers late if it has no events, and then there is no replay.
    owner.worker->catch_up.Searched();
    auto polling = BeginPolling(context, owner);
    plan.poll = co_await polling;
    if (plan.poll) co_return plan;
    // Engines that connect to the router are distinguished by their topics.
    if (!context.options.bind.empty()) co_return plan;
  }
  uint32_t ranks = 1;
  if (report.said && !report.said->sources.empty()) {
    ranks = static_cast<uint32_t>(report.said->sources.size());
  } else if (report.reached) {
    auto counting = CountRanks(context, owner);
    ranks = co_await counting;
  }
  auto sources = Spread(spec, spec.kv_events.value_or(ConventionalEndpoint(context, owner)), ranks);
  if (sources) {
    plan.sources = *std::move(sources);
  } else {
    plan.problem = sources.error().what;
  }
  co_return plan;
}

}  // namespace fathom
