#include "discovery/directory.h"

namespace fathom {

WorkerPlan WorkerPlan::At(const std::string& address) const {
  WorkerPlan plan = *this;
  plan.endpoint.name = endpoint.url.host;
  plan.endpoint.url.host = address;
  plan.spec.url = plan.endpoint.url.ToString();
  return plan;
}

Result<WorkerPlan> Directory::Plan(const WorkerRequest& request) const {
  TRY(Url url, Url::Parse(request.url));
  WorkerSpec spec;
  spec.url = url.ToString();
  spec.host_header = url.HostHeader();
  spec.base_path = url.path;
  spec.ca_file = request.ca_file;
  spec.api_key_env = request.api_key_env;
  spec.kv_events = request.kv_events;
  spec.kv_events_replay = request.kv_events_replay;
  spec.kv_events_topic = request.kv_events_topic;
  if (!request.api_key_env.empty()) {
    const auto key = environment_(request.api_key_env);
    if (!key || key->empty()) {
      return Fail(Blame::kCaller, "worker {}: api_key_env names {}, which is not set", spec.url,
                  request.api_key_env);
    }
    spec.api_key = *key;
  }
  std::shared_ptr<const TlsClientContext> tls;
  if (url.tls()) {
    TRY(tls, TlsClientContext::Create(request.ca_file));
  } else if (!request.ca_file.empty()) {
    return Fail(Blame::kCaller, "worker {}: ca_file is for https:// workers", spec.url);
  }
  return WorkerPlan{std::move(spec), Endpoint{std::move(url), std::move(tls)}};
}

Result<std::shared_ptr<Worker>> Directory::Join(const WorkerRequest& request) {
  TRY(WorkerPlan plan, Plan(request));
  return Join(std::move(plan));
}

Result<std::shared_ptr<Worker>> Directory::Join(WorkerPlan plan) {
  auto endpoint = std::make_shared<const Endpoint>(std::move(plan.endpoint));
  const std::lock_guard lock(mutex_);
  TRY(auto worker, fleet_.Add(std::move(plan.spec)));
  endpoints_[worker->id()] = endpoint;
  log_.Info("Worker added", {{"worker_id", worker->id().value()},
                             {"url", worker->spec().url},
                             {"host", worker->spec().host_header}});
  if (sizes_ != nullptr) sizes_->Join(worker, std::chrono::steady_clock::now());
  if (load_watch_ != nullptr) load_watch_->Watch(worker, endpoint);
  prober_.Watch(worker, std::move(endpoint));
  return worker;
}

bool Directory::Leave(WorkerId id, std::string_view cause) {
  const std::lock_guard lock(mutex_);
  if (!fleet_.Remove(id)) return false;
  const auto left = endpoints_.extract(id);
  prober_.Forget(id);
  if (load_watch_ != nullptr) load_watch_->Forget(id);
  if (sizes_ != nullptr) sizes_->Leave(id, std::chrono::steady_clock::now());
  log_.Info("Worker removed",
            {{"worker_id", id.value()}, {"url", left.mapped()->url.ToString()}, {"cause", cause}});
  return true;
}

std::shared_ptr<const Endpoint> Directory::Find(WorkerId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : found->second;
}

}  // namespace fathom
