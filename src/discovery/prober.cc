#include "discovery/prober.h"

#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "discovery/capability.h"
#include "http/fetch.h"

namespace fathom {

struct Prober::Patient {
  std::shared_ptr<Worker> worker;
  std::shared_ptr<const Endpoint> endpoint;
  uint32_t failures = 0;  // in a row
  bool routable = false;
  bool reported_ill = false;
  bool forgotten = false;
};

Fleet::ModelReport ReadModels(int status, std::string_view body) {
  Fleet::ModelReport report;
  const auto json = status == 200 ? Json::Parse(body) : Result<Json>(Json());
  const Json* const data = json ? json->Find("data") : nullptr;
  if (data == nullptr || data->array() == nullptr) {
    report.any_model = true;
    return report;
  }
  std::vector<std::pair<std::string, std::string>> found;
  for (const Json& card : *data->array()) {
    const Json* const id = card.Find("id");
    if (id == nullptr || id->string() == nullptr) continue;
    std::string text;
    card.WriteTo(text);
    found.emplace_back(*id->string(), std::move(text));
    const Json* const parent = card.Find("parent");  // vLLM: the model that an adapter changes
    if (parent == nullptr || parent->string() == nullptr) continue;
    report.adapters.push_back(*id->string());
    report.bases[*id->string()] = *parent->string();
  }
  std::sort(report.adapters.begin(), report.adapters.end());
  std::sort(found.begin(), found.end());
  const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
  found.erase(std::unique(found.begin(), found.end(), same_id), found.end());
  for (auto& [id, card] : found) {
    report.models.push_back(std::move(id));
    report.cards.push_back(std::move(card));
  }
  return report;
}

namespace {

constexpr Duration kProbeTime = std::chrono::seconds(5);

// Adapters share the cache of the model that they change.
std::vector<std::string> BaseModels(const Fleet::ModelReport& report) {
  std::vector<std::string> models;
  std::ranges::set_difference(report.models, report.adapters, std::back_inserter(models));
  if (models.empty()) models.emplace_back();  // it cannot say: all of those are taken for one
  return models;
}

}  // namespace

void Prober::Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint) {
  auto patient = std::make_shared<Patient>();
  patient->worker = std::move(worker);
  patient->endpoint = std::move(endpoint);
  loop_.Post([this, patient = std::move(patient)] {
    patients_[patient->worker->id()] = patient;
    Spawn(WatchForever(patient));
  });
}

void Prober::Forget(WorkerId id) {
  loop_.Post([this, id] {
    const auto found = patients_.find(id);
    if (found == patients_.end()) return;
    found->second->forgotten = true;
    patients_.erase(found);
  });
}

Task<void> Prober::WatchForever(std::shared_ptr<Patient> patient) {
  while (!patient->forgotten) {
    auto checking = Check(*patient);
    const auto checked = co_await checking;
    if (patient->forgotten) co_return;
    if (checked) {
      const bool came = !patient->routable;
      Succeeded(*patient);
      if (came && sizes_ != nullptr) {
        auto asking = AskWhatItCan(*patient);
        co_await asking;
        if (patient->forgotten) co_return;
      }
    } else {
      Failed(*patient, checked.error().what);
    }
    co_await loop_.Sleep(options_.interval);
  }
}

Task<Result<void>> Prober::Check(Patient& patient) {
  FetchRequest request;
  request.path = options_.path;
  const TimePoint deadline = loop_.now() + options_.timeout;
  auto asking = Fetch(loop_, resolver_, *patient.endpoint, request, deadline);
  auto health = co_await asking;
  if (!health) co_return std::unexpected(std::move(health).error());
  if (health->status >= 400) {
    co_return Fail(Blame::kPeer, "{} answered {}", options_.path, health->status);
  }
  request.path = "/v1/models";
  const std::string& key = patient.worker->spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint models_deadline = loop_.now() + options_.timeout;
  auto listing = Fetch(loop_, resolver_, *patient.endpoint, request, models_deadline);
  auto models = co_await listing;
  if (!models) co_return std::unexpected(std::move(models).error());
  if (models->status == 401 || models->status == 403) {
    co_return Fail(Blame::kPeer,
                   "/v1/models answered {}: the worker wants an API key; set api_key_env in its "
                   "workers: entry",
                   models->status);
  }
  if (models->status >= 500) co_return Fail(Blame::kPeer, "/v1/models answered {}", models->status);
  Fleet::ModelReport report = ReadModels(models->status, models->body);
  if (sizes_ != nullptr) sizes_->Serves(patient.worker->id(), BaseModels(report), loop_.now());
  fleet_.SetModels(patient.worker->id(), std::move(report));
  co_return Result<void>();
}

// It is not asked where nobody needs to know. Who waits for it waits no longer than it wants to, so
// it may take its time: a page may take half of it.
Task<void> Prober::AskWhatItCan(Patient& patient) {
  sizes_->Answered(patient.worker->id(), loop_.now());
  if (!sizes_->watched()) {
    sizes_->Reported(patient.worker->id(), {}, loop_.now());
    co_return;
  }
  const TimePoint deadline = loop_.now() + std::max(kProbeTime, 2 * sizes_->wait());
  auto asking = AskCapability(loop_, resolver_, *patient.worker, *patient.endpoint, deadline);
  const EngineReport report = co_await asking;
  if (patient.forgotten) co_return;
  Worker& worker = *patient.worker;
  if (report.engine != EngineKind::kUnknown) worker.report.Publish(report, loop_.now());
  sizes_->Reported(worker.id(), report, loop_.now());
}

void Prober::Succeeded(Patient& patient) {
  patient.failures = 0;
  patient.worker->gone_since.store(0, std::memory_order_relaxed);
  if (patient.routable) return;
  patient.routable = true;
  patient.reported_ill = false;
  fleet_.SetHealthy(patient.worker->id());
  log_.Info("Worker is healthy",
            {{"worker_id", patient.worker->id().value()}, {"url", patient.worker->spec().url}});
}

void Prober::Failed(Patient& patient, const std::string& cause) {
  ++patient.failures;
  if (cause.find("connection refused") != std::string::npos &&
      patient.worker->gone_since.load(std::memory_order_relaxed) == 0) {
    patient.worker->gone_since.store(loop_.now().time_since_epoch().count(),
                                     std::memory_order_relaxed);
  }
  // A newcomer that is not well is reported at once; one that was well gets another chance.
  if (patient.routable && patient.failures < options_.failures) return;
  patient.routable = false;
  if (sizes_ != nullptr) sizes_->Failed(patient.worker->id(), loop_.now());
  fleet_.SetUnhealthy(patient.worker->id(), cause);  // which may be another than before
  if (std::exchange(patient.reported_ill, true)) return;
  log_.Warn("Worker is not healthy; no requests are sent to it",
            {{"worker_id", patient.worker->id().value()},
             {"url", patient.worker->spec().url},
             {"cause", cause},
             {"docs", RunbookOf(TrustCause::kUnhealthy)}});
}

}  // namespace fathom
