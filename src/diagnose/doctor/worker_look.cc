#include "diagnose/doctor/worker_look.h"

#include <algorithm>

#include "diagnose/doctor/page_members.h"
#include "engine/engine_pages.h"

namespace fathom {
namespace {

constexpr std::string_view kWorkerKeyOption = "--worker-api-key";
constexpr uint32_t kMostGuessed = 64;  // ranks

bool ListsNothing(std::string_view page) {
  const auto json = Json::ParseWithLargeNumbers(page);
  return json && json->object() != nullptr && json->object()->empty();
}

// One engine's pages, one after the other, into one look.
class Visit {
 public:
  explicit Visit(ReadOnlyClient& client) : client_(client) { look_.url = client.url(); }

  Task<WorkerLook> Run();

 private:
  Task<std::string> Page(std::string path);
  Task<bool> Models();
  Task<void> EventSources();
  Task<void> ServerInfo();
  Task<void> Version();
  Task<void> Metrics();
  Task<void> Loads();
  Task<void> Health();

  void ReadModels(std::string_view page);
  void ReadVllmSources(std::string_view page);
  bool ReadServerInfo(std::string_view page);
  void ReadSglangSettings(std::string_view page);
  void TakeMetrics(std::string page);
  void Learn(const std::optional<EngineReport>& report);
  void DecideOnEvents();
  void GuessSources();

  ReadOnlyClient& client_;
  WorkerLook look_;
  EngineKind owner_ = EngineKind::kUnknown;  // as /v1/models has it
};

void Visit::Learn(const std::optional<EngineReport>& report) {
  if (!report) return;
  auto loads = report->loads.empty() ? look_.report.loads : report->loads;
  look_.report = Joined(std::move(look_.report), *report);
  look_.report.loads = std::move(loads);
}

// Empty: there is none.
Task<std::string> Visit::Page(std::string path) {
  auto asking = client_.Get(std::move(path));
  auto answer = co_await asking;
  if (!answer || answer->status != 200) co_return std::string();
  co_return std::move(answer->body);
}

void Visit::ReadModels(std::string_view page) {
  const auto json = Json::ParseWithLargeNumbers(page);
  if (!json) return;
  for (const Json& card : ListOf(*json, "data")) {
    if (look_.models.size() == WorkerLook::kMaxModels) break;
    ServedModel model{.id = TextOf(card, "id"),
                      .root = TextOf(card, "root"),
                      .context_length = CountOf(card, "max_model_len")};
    if (model.id.empty()) continue;
    if (owner_ == EngineKind::kUnknown) owner_ = EngineOwnedBy(TextOf(card, "owned_by"));
    look_.models.push_back(std::move(model));
  }
}

// False: nobody is there.
Task<bool> Visit::Models() {
  auto asking = client_.Get("/v1/models");
  const auto answer = co_await asking;
  if (!answer) {
    look_.problem = WhyNot(answer, kWorkerKeyOption);
    co_return false;
  }
  look_.reached = true;
  if (answer->status == 200) {
    ReadModels(answer->body);
  } else {
    look_.unseen.push_back("its models: /v1/models " + WhyNot(answer, kWorkerKeyOption));
  }
  co_return true;
}

void Visit::ReadVllmSources(std::string_view page) {
  Learn(ReadVllmEventSources(page));
  auto found = ParseKvEventSources(page, client_.host());
  if (!found) {
    look_.events.problem = Shown(found.error().what);
    return;
  }
  using How = PublishedEvents::How;
  if (ListsNothing(page)) {
    if (owner_ == EngineKind::kUnknown) owner_ = EngineKind::kVllm;  // no other engine has the page
    look_.events = {How::kOff, {}, "GET /kv_event_sources answers {}: no rank publishes", true};
    return;
  }
  const bool any = !found->sources.empty();
  look_.events.how = any ? How::kStream : found->off ? How::kOff : How::kUnknown;
  look_.events.sources = std::move(found->sources);
  look_.events.problem = Shown(found->problem);
}

Task<void> Visit::EventSources() {
  auto asking = Page("/kv_event_sources");
  const std::string page = co_await asking;
  if (!page.empty()) ReadVllmSources(page);
}

void Visit::ReadSglangSettings(std::string_view page) {
  const auto json = Json::ParseWithLargeNumbers(page);
  if (!json) return;
  look_.version = TextOf(*json, "version");
  look_.levels.cache_dtype = TextOf(*json, "kv_cache_dtype");
  if (const auto fraction = NumberOf(*json, "mem_fraction_static")) {
    look_.levels.memory_fraction = fmt::format("{:g}", *fraction);
  }
}

bool Visit::ReadServerInfo(std::string_view page) {
  if (const auto vllm = ReadVllmServerInfo(page)) {
    Learn(vllm);
    return true;
  }
  const auto sglang = ReadSglangServerInfo(page);
  if (!sglang) return false;
  Learn(sglang);
  ReadSglangSettings(page);
  const auto found = fathom::ParseServerInfo(page, client_.host());
  if (!found) {
    look_.events.problem = Shown(found.error().what);
    return true;
  }
  using How = PublishedEvents::How;
  look_.events.how = found->sources.empty() ? How::kOff : How::kStream;
  look_.events.sources = found->sources;
  look_.events.problem = Shown(found->problem);
  return true;
}

Task<void> Visit::ServerInfo() {
  auto asking = Page("/server_info?config_format=json");
  const std::string page = co_await asking;
  if (ReadServerInfo(page)) co_return;
  if (look_.report.engine != EngineKind::kUnknown) co_return;
  auto asking_old = Page("/get_server_info");
  const std::string old = co_await asking_old;
  ReadServerInfo(old);
}

Task<void> Visit::Version() {
  if (!look_.version.empty()) co_return;
  auto asking = Page("/version");
  const std::string page = co_await asking;
  const auto json = Json::ParseWithLargeNumbers(page);
  if (json) look_.version = TextOf(*json, "version");
}

void Visit::TakeMetrics(std::string page) {
  Learn(look_.report.engine == EngineKind::kTrtllm ? ReadTrtllmPrometheus(page)
                                                   : ReadMetrics(page));
  const MetricsPage metrics(std::move(page));
  // vLLM without statistics answers with a page that says nothing of itself.
  look_.has_metrics =
      metrics.HasPrefix("vllm:") || metrics.HasPrefix("sglang:") || metrics.HasPrefix("trtllm_");
  const EngineLevels said = std::exchange(look_.levels, ReadLevels(metrics));
  if (look_.levels.cache_dtype.empty()) look_.levels.cache_dtype = said.cache_dtype;
  if (look_.levels.memory_fraction.empty()) look_.levels.memory_fraction = said.memory_fraction;
  look_.counts = ReadCounts(metrics);
}

Task<void> Visit::Metrics() {
  const bool trtllm = look_.report.engine == EngineKind::kTrtllm;
  const std::string path = trtllm ? "/prometheus/metrics" : "/metrics";
  auto asking = client_.Get(path);
  auto answer = co_await asking;
  if (answer && answer->status == 200) TakeMetrics(std::move(answer->body));
  if (!look_.has_metrics) {
    const std::string why = WhyNot(answer, kWorkerKeyOption);
    look_.unseen.push_back(
        fmt::format("its metrics: {} {}", path, why.empty() ? "has no engine metrics" : why));
  }
  if (!trtllm || !client_.drain()) co_return;
  auto draining = Page("/metrics");
  const std::string iterations = co_await draining;
  Learn(ReadTrtllmMetrics(iterations));
}

Task<void> Visit::Loads() {
  auto asking = Page("/v1/loads");
  const std::string page = co_await asking;
  const auto loads = ReadSglangLoads(page);
  Learn(loads);
  if (!loads || look_.levels.running) co_return;
  if (const auto total = look_.report.TotalLoad()) {
    look_.levels.running = total->running;
    look_.levels.waiting = total->waiting;
    look_.levels.cache_usage = total->cache_usage;
  }
}

Task<void> Visit::Health() {
  auto asking = client_.Get("/health");
  const auto answer = co_await asking;
  if (answer) look_.healthy = answer->status == 200;
}

void Visit::GuessSources() {
  const uint32_t ranks = std::clamp(look_.report.ranks, 1u, kMostGuessed);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EventSource source;
    source.rank = rank;
    source.endpoint = WithHost(fmt::format("tcp://*:{}", kDefaultEventPort + rank), client_.host());
    look_.events.sources.push_back(std::move(source));
  }
  look_.events.how = PublishedEvents::How::kGuessed;
}

void Visit::DecideOnEvents() {
  using How = PublishedEvents::How;
  if (look_.events.how != How::kUnknown) return;
  if (look_.report.engine == EngineKind::kTrtllm) look_.events.how = How::kPolled;
  if (look_.report.engine == EngineKind::kVllm && look_.events.problem.empty()) GuessSources();
}

Task<WorkerLook> Visit::Run() {
  auto asking_models = Models();
  const bool there = co_await asking_models;
  if (!there) co_return std::move(look_);
  auto asking_sources = EventSources();
  co_await asking_sources;
  auto asking_info = ServerInfo();
  co_await asking_info;
  auto asking_version = Version();
  co_await asking_version;
  if (look_.report.engine == EngineKind::kUnknown) look_.report.engine = owner_;
  client_.Recognise(look_.report.engine);
  auto asking_metrics = Metrics();
  co_await asking_metrics;
  if (look_.report.engine == EngineKind::kSglang) {
    auto asking_loads = Loads();
    co_await asking_loads;
  }
  auto asking_health = Health();
  co_await asking_health;
  DecideOnEvents();
  if (look_.report.context_length == 0 && !look_.models.empty()) {
    look_.report.context_length = look_.models.front().context_length;
  }
  co_return std::move(look_);
}

}  // namespace

EngineKind EngineOwnedBy(std::string_view owner) {
  if (owner == "vllm") return EngineKind::kVllm;
  if (owner == "sglang") return EngineKind::kSglang;
  if (owner == "tensorrt_llm") return EngineKind::kTrtllm;
  return EngineKind::kUnknown;
}

Task<WorkerLook> LookAtWorker(ReadOnlyClient& client) {
  Visit visit(client);
  auto visiting = visit.Run();
  auto look = co_await visiting;
  co_return std::move(look);
}

Task<std::optional<EngineCounts>> CountAgain(ReadOnlyClient& client, const WorkerLook& first) {
  if (!first.has_metrics) co_return std::nullopt;
  const bool trtllm = first.report.engine == EngineKind::kTrtllm;
  auto asking = client.Get(trtllm ? "/prometheus/metrics" : "/metrics");
  auto answer = co_await asking;
  if (!answer || answer->status != 200) co_return std::nullopt;
  co_return ReadCounts(MetricsPage(std::move(answer->body)));
}

}  // namespace fathom
