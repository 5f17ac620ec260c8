#include "diagnose/doctor/live_look.h"

#include <algorithm>

#include "base/peer_text.h"

namespace fathom {
namespace {

class Looking {
 public:
  explicit Looking(const LiveTargets& targets) : targets_(targets) {}

  LiveView Run() {
    loop_.Post([this] { Spawn(LookAtAll()); });
    loop_.Run();
    view_.sent = sent_.All();
    return std::move(view_);
  }

 private:
  Task<void> LookAtAll();
  Task<void> LookAtTheRouter(ReadOnlyClient& client);
  Task<void> LookAtTheRouterAgain(ReadOnlyClient& client);
  Task<void> LookAtTheDynamo();
  Task<void> LookAtOne(std::string url, LookedAtWorker& worker);
  Task<void> Listen(ReadOnlyClient& client, LookedAtWorker& worker);

  std::vector<std::string> WorkerUrls();
  ReadOnlyClient::Target TargetOf(ServerKind server, Endpoint endpoint, std::string key) const;
  bool listens() const { return targets_.listen > Duration::zero(); }
  uint64_t Vocabulary() const {
    return targets_.model == nullptr ? 0 : targets_.model->tokenizer().vocabulary_size();
  }

  const LiveTargets& targets_;
  Loop loop_;
  Resolver resolver_;
  SentRequests sent_;
  LiveView view_;
};

ReadOnlyClient::Target Looking::TargetOf(ServerKind server, Endpoint endpoint,
                                         std::string key) const {
  return {.server = server,
          .endpoint = std::move(endpoint),
          .key = std::move(key),
          .patience = targets_.patience,
          .drain = targets_.drain};
}

// Each once, whoever names it.
std::vector<std::string> Looking::WorkerUrls() {
  std::vector<std::string> urls;
  const auto add = [&](const std::string& text) {
    const auto url = Url::Parse(text);
    std::string spelled = url ? url->ToString() : text;
    if (std::ranges::find(urls, spelled) == urls.end()) urls.push_back(std::move(spelled));
  };
  for (const std::string& url : targets_.worker_urls) add(url);
  if (targets_.workers_of_router && view_.router) {
    for (const RoutedWorker& worker : view_.router->workers) add(worker.url);
  }
  if (urls.size() > LiveTargets::kMaxWorkers) {
    view_.left_out.push_back(fmt::format("{} workers: only the first {} were checked", urls.size(),
                                         LiveTargets::kMaxWorkers));
    urls.resize(LiveTargets::kMaxWorkers);
  }
  return urls;
}

Task<void> Looking::LookAtTheRouter(ReadOnlyClient& client) {
  auto looking = LookAtRouter(client);
  view_.router = co_await looking;
}

Task<void> Looking::LookAtTheRouterAgain(ReadOnlyClient& client) {
  co_await loop_.Sleep(targets_.listen);
  auto asking = client.Get("/metrics");
  auto answer = co_await asking;
  if (!answer || answer->status != 200) co_return;
  const RouterCounters now = ReadRouterMetrics(MetricsPage(std::move(answer->body)));
  view_.router_meanwhile = now.Since(view_.router->counters);
}

Task<void> Looking::LookAtTheDynamo() {
  auto endpoint = EndpointOf(targets_.dynamo_url, targets_.ca_file);
  if (!endpoint) {
    view_.dynamo.emplace().url = targets_.dynamo_url;
    view_.dynamo->problem = endpoint.error().what;
    co_return;
  }
  ReadOnlyClient client(loop_, resolver_, sent_,
                        TargetOf(ServerKind::kDynamo, *std::move(endpoint), targets_.api_key));
  auto looking = LookAtDynamo(client);
  view_.dynamo = co_await looking;
}

Task<void> Looking::Listen(ReadOnlyClient& client, LookedAtWorker& worker) {
  using How = PublishedEvents::How;
  const TimePoint begun = loop_.now();
  const TimePoint until = begun + targets_.listen;
  const PublishedEvents& events = worker.look.events;
  if (events.how == How::kPolled && targets_.drain) {
    auto polling = PollUntil(client, Vocabulary(), until);
    auto heard = co_await polling;
    worker.streams.push_back(std::move(heard));
  } else if (events.how == How::kPolled) {
    worker.unheard =
        "the engine returns each event once, and a router may need them: --drain polls anyway";
  } else if (events.sources.empty()) {
    worker.unheard =
        events.problem.empty() ? "the engine does not report where its events are" : events.problem;
  }
  std::vector<Task<StreamLook>> listening;
  listening.reserve(events.sources.size());
  for (const EventSource& source : events.sources) {
    listening.push_back(ListenTo(loop_, resolver_, source, Vocabulary(), until));
  }
  for (Task<StreamLook>& one : listening) {
    auto heard = co_await one;
    worker.streams.push_back(std::move(heard));
  }
  // Also where nothing was heard: what it counts meanwhile is worth as much.
  if (loop_.now() < until) co_await loop_.Sleep(until - loop_.now());
  auto counting = CountAgain(client, worker.look);
  const auto counts = co_await counting;
  worker.seconds = Seconds(loop_.now() - begun);
  if (counts) worker.meanwhile = counts->Since(worker.look.counts);
}

Task<void> Looking::LookAtOne(std::string url, LookedAtWorker& worker) {
  auto endpoint = EndpointOf(url, targets_.ca_file);
  if (!endpoint) {
    worker.look.url = Shown(url);
    worker.look.problem = Shown(endpoint.error().what);
    co_return;
  }
  ReadOnlyClient client(loop_, resolver_, sent_,
                        TargetOf(ServerKind::kEngine, *std::move(endpoint), targets_.worker_key));
  auto looking = LookAtWorker(client);
  worker.look = co_await looking;
  if (!worker.look.reached) co_return;
  if (targets_.model != nullptr) {
    const auto& models = worker.look.models;
    auto comparing = LookAtTokens(client, *targets_.model, worker.look.report.engine,
                                  models.empty() ? "" : models.front().id);
    worker.tokens = co_await comparing;
  }
  if (!listens()) co_return;
  auto hearing = Listen(client, worker);
  co_await hearing;
}

Task<void> Looking::LookAtAll() {
  std::optional<ReadOnlyClient> router;
  if (!targets_.router_url.empty()) {
    auto endpoint = EndpointOf(targets_.router_url, targets_.ca_file);
    if (endpoint) {
      router.emplace(loop_, resolver_, sent_,
                     TargetOf(ServerKind::kRouter, *std::move(endpoint), targets_.admin_key));
      auto looking = LookAtTheRouter(*router);
      co_await looking;
    } else {
      view_.router.emplace().url = targets_.router_url;
      view_.router->problem = endpoint.error().what;
    }
  }
  const std::vector<std::string> urls = WorkerUrls();
  view_.workers.resize(urls.size());
  std::vector<Task<void>> all;
  all.reserve(urls.size() + 2);
  for (size_t i = 0; i < urls.size(); ++i) all.push_back(LookAtOne(urls[i], view_.workers[i]));
  if (!targets_.dynamo_url.empty()) all.push_back(LookAtTheDynamo());
  if (router && view_.router->reached && listens()) all.push_back(LookAtTheRouterAgain(*router));
  for (Task<void>& one : all) co_await one;
  loop_.Stop();
}

}  // namespace

LiveView LookLive(const LiveTargets& targets) { return Looking(targets).Run(); }

}  // namespace fathom
