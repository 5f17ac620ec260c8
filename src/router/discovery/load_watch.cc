#include "router/discovery/load_watch.h"

#include <algorithm>
#include <utility>

#include "engine/engine_pages.h"

namespace fathom {
namespace {

// First pause before a worker that is not ready, or a watch that exceeds at_once, is looked at
// again. The pause doubles each time: a large fleet may have many workers that never become ready.
constexpr Duration kSoon = std::chrono::milliseconds(50);

}  // namespace

struct LoadWatch::Subject {
  Subject(LoadWatch& watch, std::shared_ptr<Worker> of, std::shared_ptr<const Endpoint> endpoint)
      : worker(std::move(of)), caller(watch.loop_, watch.resolver_, std::move(endpoint)) {}

  std::shared_ptr<Worker> worker;
  Caller caller;
  bool forgotten = false;
  Duration patience = kSoon;           // pause before the next look, if the worker was not asked
  uint64_t life = 0;                   // the fleet's count of its restarts
  std::optional<TimePoint> published;  // the last report of this watch

  // Answers since the last restart.
  struct Said {
    EngineReport facts;          // without loads
    TimePoint facts_due{};       // when to ask for the facts again
    bool has_loads_page = true;  // SGLang: false once the page was not found
    bool has_prometheus = true;  // TensorRT-LLM: false once the page was not found
    bool blocks_wanted = true;   // TensorRT-LLM: false once it has reported its block size
    bool published = false;
  } said;
};

void LoadWatch::Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint) {
  auto subject = std::make_shared<Subject>(*this, std::move(worker), std::move(endpoint));
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
  if (member == nullptr || !Answers(member->checked)) return false;
  // A worker may have been away for less time than the pause between two looks.
  if (std::exchange(subject.life, member->lives) != member->lives) Begin(subject);
  return true;
}

// The prober has already read this worker's report when it joined. Start from it: TensorRT-LLM's
// metrics cannot be read a second time.
void LoadWatch::Begin(Subject& subject) {
  subject.said = {};
  const WorkerReport& report = subject.worker->report;
  const auto current = report.Current();
  if (current == nullptr || report.published() == subject.published) return;
  subject.said.facts = *current;
  subject.said.facts.loads.clear();
  subject.said.blocks_wanted = current->block_size == 0;
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
  Subject::Said& said = subject.said;
  if (subject.worker->report.TakeSuspicion()) {
    said.facts_due = {};
    said.has_loads_page = said.has_prometheus = said.blocks_wanted = true;
  }
  if (said.facts_due <= loop_.now()) {
    auto asking_facts = AskFacts(subject);
    co_await asking_facts;
  }
  auto asking_load = AskLoad(subject);
  EnginePage page = co_await asking_load;
  if (page.gone) said = {};  // even if the prober tolerates more failures
  if (!page.settled) co_return options_.interval;
  if (!page.report) {
    auto asking_whether = AskWhetherVllm(subject);
    co_await asking_whether;
    PublishFacts(subject);
    co_return options_.quiet_interval;
  }
  const EngineKind engine = page.report->engine;
  // Of several processes behind one port, the youngest counts.
  const bool another = said.facts.started != 0 && page.report->started > said.facts.started;
  if (another && sizes_ != nullptr) sizes_->Doubt(*subject.worker, loop_.now());
  if (said.facts.engine != engine && said.facts.engine != EngineKind::kUnknown) {
    said.facts = {};
    said.facts_due = {};
  }
  page.report->started = std::max(page.report->started, said.facts.started);
  EngineReport report = Joined(*std::move(page.report), said.facts);
  said.facts = report;
  said.facts.loads.clear();
  Publish(subject, std::move(report));
  if (engine != EngineKind::kTrtllm) co_return options_.interval;
  co_return std::max(options_.interval, options_.draining_interval);
}

EngineInterview LoadWatch::Interview(Subject& subject) {
  return EngineInterview(subject.caller, *subject.worker, options_.timeout);
}

// A worker without such a page is not asked for it again.
Task<void> LoadWatch::AskFacts(Subject& subject) {
  EngineInterview interview = Interview(subject);
  auto asking = interview.ServerInfo();
  EnginePage page = co_await asking;
  Subject::Said& said = subject.said;
  said.facts_due = page.settled ? kNever : loop_.now() + options_.interval;
  if (!page.report) co_return;
  said.facts = *std::move(page.report);
  said.facts_due = loop_.now() + options_.facts_interval;
}

Task<EnginePage> LoadWatch::AskLoad(Subject& subject) {
  if (subject.said.facts.engine == EngineKind::kSglang && subject.said.has_loads_page) {
    EngineInterview interview = Interview(subject);
    auto asking_loads = interview.SglangLoads();
    EnginePage loads = co_await asking_loads;
    if (loads.report || !loads.settled) co_return loads;
    subject.said.has_loads_page = false;
  }
  auto asking_metrics = AskMetrics(subject);
  EnginePage metrics = co_await asking_metrics;
  co_return metrics;
}

// TensorRT-LLM may be configured to report its block size on another page only, or on none.
Task<EnginePage> LoadWatch::AskMetrics(Subject& subject) {
  EngineInterview interview = Interview(subject);
  auto asking = interview.Metrics();
  EnginePage metrics = co_await asking;
  if (!metrics.report || metrics.report->engine != EngineKind::kTrtllm) co_return metrics;
  Subject::Said& said = subject.said;
  if (said.facts.engine != EngineKind::kTrtllm) said.blocks_wanted = true;
  if (metrics.report->block_size > 0) said.blocks_wanted = false;
  if (!said.blocks_wanted || !said.has_prometheus) co_return metrics;
  auto asking_more = interview.TrtllmPrometheus();
  const EnginePage more = co_await asking_more;
  if (more.settled) said.has_prometheus = more.found;
  if (!more.report) co_return metrics;
  said.blocks_wanted = more.report->block_size == 0;
  metrics.report = Joined(*std::move(metrics.report), *more.report);
  co_return metrics;
}

// A worker without statistics can still be identified by another page.
Task<void> LoadWatch::AskWhetherVllm(Subject& subject) {
  if (subject.said.facts.engine != EngineKind::kUnknown) co_return;
  EngineInterview interview = Interview(subject);
  auto asking = interview.VllmEventSources();
  EnginePage page = co_await asking;
  if (page.report) subject.said.facts = *std::move(page.report);
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

// For a worker that does not report its load.
void LoadWatch::PublishFacts(Subject& subject) {
  if (subject.said.published) return;
  if (subject.said.facts.engine == EngineKind::kUnknown) {
    subject.worker->report.Forget();  // the published report is from before the restart
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
    log_.Info("Worker identified", {{"worker_id", worker.id().value()},
                                    {"url", worker.spec().url},
                                    {"engine", Name(report.engine)},
                                    {"ranks", report.ranks},
                                    {"block_size", report.event_block_size()},
                                    {"kv_tokens", report.kv_tokens},
                                    {"max_running", report.max_running},
                                    {"batch_tokens", report.batch_tokens}});
  }
  if (sizes_ != nullptr) sizes_->Mentioned(worker.id(), report, loop_.now());
  subject.published = loop_.now();
  worker.report.Publish(std::move(report), *subject.published);
}

}  // namespace fathom
