#include "router/discovery/prober.h"

#include <algorithm>
#include <utility>

#include "codec/json.h"
#include "engine/model_name.h"
#include "io/http/fetch.h"
#include "io/net/wakeable_wait.h"
#include "router/discovery/capability.h"

namespace fathom {

struct Prober::Patient {
  Patient(Prober& prober, std::shared_ptr<Worker> of, std::shared_ptr<const Endpoint> at)
      : worker(std::move(of)), endpoint(at), caller(prober.loop_, prober.resolver_, at) {}

  std::shared_ptr<Worker> worker;
  std::shared_ptr<const Endpoint> endpoint;
  Caller caller;
  uint32_t failures = 0;  // in a row
  bool routable = false;
  bool reported_ill = false;
  bool outside = false;      // it serves none of the models that are followed
  bool was_outside = false;  // until it has been asked after that
  bool forgotten = false;
  bool doubted = false;           // its next success is followed by an interview
  WakeableWait* pause = nullptr;  // while it waits for the next check
  bool held = false;              // until it has been examined
  WakeableWait* hold = nullptr;   // the bound of that
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
    if (id->string()->size() > kLongestModel) continue;  // no request can name it
    std::string text;
    card.WriteTo(text);
    found.emplace_back(*id->string(), std::move(text));
    const Json* const parent = card.Find("parent");  // vLLM: the base model of an adapter
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
constexpr Duration kWhileDoubted = std::chrono::milliseconds(250);

// Adapters share the cache of their base model.
std::vector<std::string> BaseModels(const Fleet::ModelReport& report) {
  std::vector<std::string> models;
  std::ranges::set_difference(report.models, report.adapters, std::back_inserter(models));
  if (models.empty()) models.emplace_back();  // none reported: one unnamed model for all
  return models;
}

}  // namespace

Prober::Prober(Loop& control, Resolver& resolver, Fleet& fleet, const ProbeOptions& options,
               Log& log, BlockSizes* sizes)
    : loop_(control),
      resolver_(resolver),
      fleet_(fleet),
      options_(options),
      log_(log),
      sizes_(sizes) {
  if (sizes_ != nullptr) sizes_->SetInterview([this](WorkerId id) { Interview(id); });
}

void Prober::Interview(WorkerId id) {
  loop_.Post([this, id] {
    const auto found = patients_.find(id);
    if (found == patients_.end()) return;
    found->second->doubted = true;
    if (found->second->pause != nullptr) found->second->pause->WakeNow();
  });
}

void Prober::Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint) {
  auto patient = std::make_shared<Patient>(*this, std::move(worker), std::move(endpoint));
  loop_.Post([this, patient = std::move(patient)] {
    patients_[patient->worker->id()] = patient;
    fleet_.Release(patient->worker->id());  // one that has left may have been held
    Spawn(WatchForever(patient));
  });
}

void Prober::Forget(WorkerId id) {
  loop_.Post([this, id] {
    const auto found = patients_.find(id);
    if (found == patients_.end()) return;
    const std::shared_ptr<Patient> left = found->second;
    left->forgotten = true;
    patients_.erase(found);
    if (left->hold != nullptr) left->hold->WakeNow();
    if (check_ != nullptr) check_->Forget(id);
  });
}

Task<void> Prober::WatchForever(std::shared_ptr<Patient> patient) {
  while (!patient->forgotten) {
    auto checking = Check(*patient);
    const auto checked = co_await checking;
    if (patient->forgotten) co_return;
    if (checked && patient->outside) {
      Succeeded(*patient);  // it is not asked for more
      patient->doubted = false;
    } else if (checked) {
      const bool doubted = std::exchange(patient->doubted, false);
      const bool entered = std::exchange(patient->was_outside, false);
      const bool came = !patient->routable || doubted || entered;
      if (came) Hold(patient);
      Succeeded(*patient);
      if (came && sizes_ != nullptr) {
        auto asking = AskWhatItCan(*patient);
        co_await asking;
        if (patient->forgotten) co_return;
      }
      if (came) {
        Examine(patient);
      } else if (check_ != nullptr) {
        check_->Repeat(patient->worker);
      }
    } else if (checked.error().cause != NetCause::kNoResources) {  // else nothing was learned of it
      Failed(*patient, checked.error());
    }
    // A process that is being replaced is back sooner than the next regular check.
    const Duration pause =
        patient->doubted ? std::min(kWhileDoubted, options_.interval) : options_.interval;
    WakeableWait wait(loop_, loop_.now() + pause);
    patient->pause = &wait;
    co_await wait;
    patient->pause = nullptr;
  }
}

// Before it is reported as healthy: from then on it may get requests.
void Prober::Hold(const std::shared_ptr<Patient>& patient) {
  if (check_ == nullptr || !check_->Concerns(*patient->worker)) return;
  fleet_.Hold(patient->worker->id());
  patient->held = true;
}

Task<void> Prober::ReleaseInTime(std::shared_ptr<Patient> patient) {
  WakeableWait wait(loop_, loop_.now() + AdmissionCheck::kHeldAtMost);
  patient->hold = &wait;
  co_await wait;
  patient->hold = nullptr;
  patient->held = false;
  if (!patient->forgotten) fleet_.Release(patient->worker->id());
}

void Prober::Examine(const std::shared_ptr<Patient>& patient) {
  if (check_ == nullptr) return;
  if (patient->held && patient->hold == nullptr) Spawn(ReleaseInTime(patient));
  check_->Begin(patient->worker, [patient] {
    if (patient->hold != nullptr) patient->hold->WakeNow();
  });
}

Task<NetResult<void>> Prober::Check(Patient& patient) {
  FetchRequest request;
  request.path = options_.path;
  const TimePoint deadline = loop_.now() + options_.timeout;
  auto asking = patient.caller.Fetch(request, deadline);
  auto health = co_await asking;
  if (!health) co_return std::unexpected(std::move(health).error());
  if (health->status >= 400) {
    co_return NetFail(NetCause::kBadAnswer, "{} answered {}", options_.path, health->status);
  }
  request.path = "/v1/models";
  const std::string& key = patient.worker->spec().api_key;
  if (!key.empty()) request.headers.emplace_back("authorization", "Bearer " + key);
  const TimePoint models_deadline = loop_.now() + options_.timeout;
  auto listing = patient.caller.Fetch(request, models_deadline);
  auto models = co_await listing;
  if (!models) co_return std::unexpected(std::move(models).error());
  if (models->status == 401 || models->status == 403) {
    co_return NetFail(NetCause::kBadAnswer,
                      "/v1/models answered {}: the worker requires an API key; set api_key_env in "
                      "its workers: entry",
                      models->status);
  }
  if (models->status >= 500) {
    co_return NetFail(NetCause::kBadAnswer, "/v1/models answered {}", models->status);
  }
  TakeModels(patient, fleet_.Narrow(ReadModels(models->status, models->body)));
  co_return NetResult<void>();
}

// A worker that changes its models may leave those that are followed, and come back.
void Prober::TakeModels(Patient& patient, Fleet::ModelReport report) {
  const Worker& worker = *patient.worker;
  const bool left = report.outside && !patient.outside;
  const bool entered = patient.outside && !report.outside;
  patient.outside = report.outside;
  patient.was_outside = patient.was_outside || report.outside;
  if (sizes_ != nullptr) {
    if (left) sizes_->SetAside(worker, loop_.now());
    if (entered) sizes_->TakeUp(worker, loop_.now());
    if (!report.outside) sizes_->Serves(worker.id(), BaseModels(report), loop_.now());
  }
  fleet_.SetModels(worker.id(), std::move(report));
  if (!left) return;
  if (check_ != nullptr) check_->Forget(worker.id());
  log_.Info("Worker serves no model of --models; its events are not followed",
            {{"worker_id", worker.id().value()}, {"url", worker.spec().url}});
}

// The worker is not asked if the block size is not needed. Callers that wait for the answer have
// their own timeout, so the deadline here can be long: a single page may take half of it.
Task<void> Prober::AskWhatItCan(Patient& patient) {
  sizes_->Answered(patient.worker->id(), loop_.now());
  if (!sizes_->watched()) {
    sizes_->Reported(patient.worker->id(), {}, loop_.now());
    co_return;
  }
  const TimePoint deadline = loop_.now() + std::max(kProbeTime, 2 * sizes_->wait());
  auto asking = AskCapability(loop_, resolver_, *patient.worker, patient.endpoint, deadline);
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

void Prober::Failed(Patient& patient, const NetError& error) {
  ++patient.failures;
  if (error.cause == NetCause::kRefused &&
      patient.worker->gone_since.load(std::memory_order_relaxed) == 0) {
    patient.worker->gone_since.store(loop_.now().time_since_epoch().count(),
                                     std::memory_order_relaxed);
  }
  // A new worker that fails is reported at once; a routable one gets options_.failures attempts.
  if (patient.routable && patient.failures < options_.failures) return;
  patient.routable = false;
  if (sizes_ != nullptr) sizes_->Failed(patient.worker->id(), loop_.now());
  fleet_.SetUnhealthy(patient.worker->id(), error.what);  // the cause may have changed
  if (patient.outside) return;                            // other replicas report it
  if (std::exchange(patient.reported_ill, true)) return;
  log_.Warn("Worker is not healthy; no requests are sent to it",
            {{"worker_id", patient.worker->id().value()},
             {"url", patient.worker->spec().url},
             {"cause", error.what},
             {"docs", log_.docs().To(RunbookOf(TrustCause::kUnhealthy))}});
}

}  // namespace fathom
