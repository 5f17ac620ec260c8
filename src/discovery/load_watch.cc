#include "discovery/load_watch.h"

#include <algorithm>
#include <utility>

#include "discovery/engine_pages.h"
#include "http/fetch.h"

namespace fathom {
namespace {

// How soon a worker that is not ready, or finds too many being asked, is looked at again. Less and
// less often: a large fleet may have many that never become ready.
constexpr Duration kSoon = std::chrono::milliseconds(50);

// How to start an engine so that it keeps the caches of its prompts.
std::string_view CachingRemedy(EngineKind engine) {
  switch (engine) {
    case EngineKind::kVllm:
      return "start vLLM with --enable-prefix-caching";
    case EngineKind::kSglang:
      return "start SGLang without --disable-radix-cache";
    case EngineKind::kTrtllm:
      return "give TensorRT-LLM kv_cache_config: {enable_block_reuse: true}";
    case EngineKind::kUnknown:
      return "turn prefix caching on in the engine";
  }
  std::unreachable();
}

}  // namespace

struct LoadWatch::Subject {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<const Endpoint> endpoint;
  bool forgotten = false;
  Duration patience = kSoon;  // until it is looked at again without having been asked
  uint64_t life = 0;          // as the fleet counts them
  bool caching_off = false;   // as the log says

  // In this life.
  struct Said {
    EngineReport facts;          // without loads
    TimePoint facts_due{};       // when to ask for them again
    bool has_loads_page = true;  // SGLang: until it turns out that it has none
    bool published = false;
  } said;
};

// What a worker says at a path, for a reader of its own kind.
struct LoadWatch::Page {
  bool reached = false;  // it answered, and asking again soon would bring nothing else
  bool gone = false;     // nobody listens
  std::optional<std::string> body;
  std::optional<EngineReport> report;
};

void LoadWatch::Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint) {
  auto subject = std::make_shared<Subject>();
  subject->worker = std::move(worker);
  subject->endpoint = std::move(endpoint);
  loop_.Post([this, subject = std::move(subject)] {
    subjects_[subject->worker->id()] = subject;
    Spawn(WatchForever(subject));
  });
}

void LoadWatch::Forget(WorkerId id) {
  loop_.Post([this, id] {
    const auto found = subjects_.find(id);
    if (found == subjects_.end()) return;
    found->second->forgotten = true;
    subjects_.erase(found);
  });
}

bool LoadWatch::Ready(Subject& subject) {
  const Member* const member = fleet_.Get()->Find(subject.worker->id());
  if (member == nullptr || member->state != WorkerState::kReady) return false;
  // It may have been away for less time than passes between two looks.
  if (std::exchange(subject.life, member->lives) != member->lives) subject.said = {};
  return true;
}

Task<void> LoadWatch::WatchForever(std::shared_ptr<Subject> subject) {
  while (!subject->forgotten) {
    Duration pause = std::min(subject->patience, options_.interval);
    if (Ready(*subject) && asking_ < options_.at_once) {
      ++asking_;
      auto asking = Ask(*subject);
      pause = co_await asking;
      --asking_;
      subject->patience = kSoon;
    } else {
      subject->patience = std::min(2 * pause, options_.interval);
    }
    if (subject->forgotten) co_return;
    co_await loop_.Sleep(pause);
  }
}

Task<Duration> LoadWatch::Ask(Subject& subject) {
  if (subject.said.facts_due <= loop_.now()) {
    auto asking_facts = AskFacts(subject);
    co_await asking_facts;
  }
  auto asking_load = AskLoad(subject);
  Page page = co_await asking_load;
  Subject::Said& said = subject.said;
  if (page.gone) said = {};  // even where the prober has more patience
  if (!page.reached) co_return options_.interval;
  if (!page.report) {
    PublishFacts(subject);
    co_return options_.quiet_interval;
  }
  const EngineKind engine = page.report->engine;
  if (said.facts.engine != engine && said.facts.engine != EngineKind::kUnknown) {
    said.facts = {};
    said.facts_due = {};
  }
  EngineReport report = Joined(*std::move(page.report), said.facts);
  said.facts = report;
  said.facts.loads.clear();
  Publish(subject, std::move(report));
  if (engine != EngineKind::kTrtllm) co_return options_.interval;
  co_return std::max(options_.interval, options_.draining_interval);
}

// The page is called the same by two engines; old versions of one call it otherwise. A worker that
// has no such page is not asked for it again.
Task<void> LoadWatch::AskFacts(Subject& subject) {
  subject.said.facts_due = kNever;
  for (const char* const path : {"/server_info?config_format=json", "/get_server_info"}) {
    auto getting = Get(subject, path);
    const Page page = co_await getting;
    if (!page.reached) subject.said.facts_due = loop_.now() + options_.interval;
    if (!page.reached) co_return;
    if (!page.body) continue;
    auto report = ReadSglangServerInfo(*page.body);
    if (!report) report = ReadVllmServerInfo(*page.body);
    if (!report) co_return;
    subject.said.facts = *std::move(report);
    subject.said.facts_due = loop_.now() + options_.facts_interval;
    co_return;
  }
}

Task<LoadWatch::Page> LoadWatch::AskLoad(Subject& subject) {
  if (subject.said.facts.engine == EngineKind::kSglang && subject.said.has_loads_page) {
    auto getting_loads = Get(subject, "/v1/loads");
    Page loads = co_await getting_loads;
    if (loads.body) loads.report = ReadSglangLoads(*loads.body);
    if (loads.report || !loads.reached) co_return loads;
    subject.said.has_loads_page = false;
  }
  auto getting_metrics = Get(subject, "/metrics");
  Page metrics = co_await getting_metrics;
  if (metrics.body) metrics.report = ReadMetrics(*metrics.body);
  co_return metrics;
}

Task<LoadWatch::Page> LoadWatch::Get(Subject& subject, std::string path) {
  FetchRequest request;
  request.path = std::move(path);
  const std::string& key = subject.worker->spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint deadline = loop_.now() + options_.timeout;
  auto asking = Fetch(loop_, resolver_, *subject.endpoint, request, deadline);
  auto answer = co_await asking;
  Page page;
  page.reached = answer && answer->status < 500;
  page.gone = !answer && answer.error().what.find("connection refused") != std::string::npos;
  if (answer && answer->status == 200) page.body = std::move(answer->body);
  co_return page;
}

uint64_t LoadWatch::ContextLengthOf(WorkerId id) {
  uint64_t longest = 0;
  const Member* const member = fleet_.Get()->Find(id);
  if (member == nullptr) return longest;
  for (const std::string& card : member->model_cards) {
    longest = std::max(longest, ReadContextLength(card));
  }
  return longest;
}

// Of a worker that does not tell its load.
void LoadWatch::PublishFacts(Subject& subject) {
  if (subject.said.published) return;
  if (subject.said.facts.engine == EngineKind::kUnknown) {
    subject.worker->report.Forget();  // what is there is of an earlier life
  } else {
    Publish(subject, subject.said.facts);
  }
}

void LoadWatch::Publish(Subject& subject, EngineReport report) {
  Worker& worker = *subject.worker;
  if (report.context_length == 0) {
    report.context_length = subject.said.facts.context_length = ContextLengthOf(worker.id());
  }
  if (!std::exchange(subject.said.published, true)) {
    log_.Info("Worker says which engine it is", {{"worker_id", worker.id().value()},
                                                 {"url", worker.spec().url},
                                                 {"engine", Name(report.engine)},
                                                 {"ranks", report.ranks},
                                                 {"block_size", report.block_size},
                                                 {"kv_tokens", report.kv_tokens},
                                                 {"max_running", report.max_running},
                                                 {"batch_tokens", report.batch_tokens}});
  }
  SayPrefixCaching(subject, report);
  worker.report.Publish(std::move(report), loop_.now());
}

void LoadWatch::SayPrefixCaching(Subject& subject, const EngineReport& report) {
  if (!report.prefix_caching || *report.prefix_caching != subject.caching_off) return;
  subject.caching_off = !*report.prefix_caching;
  const Worker& worker = *subject.worker;
  if (subject.caching_off) {
    log_.Warn("Prefix caching is off on a worker: its cache cannot help, it is routed by load",
              {{"worker_id", worker.id().value()},
               {"url", worker.spec().url},
               {"fix", CachingRemedy(report.engine)}});
  } else {
    log_.Info("Prefix caching is on again on a worker",
              {{"worker_id", worker.id().value()}, {"url", worker.spec().url}});
  }
}

}  // namespace fathom
