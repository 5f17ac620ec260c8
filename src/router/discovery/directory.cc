#include "router/discovery/directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "codec/event_endpoint.h"
#include "io/net/address.h"
#include "io/net/host_name.h"

namespace fathom {
namespace {

Result<void> CheckEvents(std::string_view key, const std::optional<std::string>& endpoint) {
  if (!endpoint) return {};
  auto checked = CheckEventEndpoint(*endpoint);
  if (!checked) return std::unexpected(std::move(checked).error().In(key));
  return {};
}

// Opening a pipe or a device would block the loop, and so would reading a file of any size.
Result<void> CheckFile(const std::string& path) {
  constexpr off_t kLargest = 4 << 20;
  struct stat status{};
  if (path.empty()) return {};
  if (::stat(path.c_str(), &status) != 0) {
    return Fail(Blame::kCaller, "ca_file {}: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return Fail(Blame::kCaller, "ca_file {} is not a regular file", path);
  }
  if (status.st_size <= kLargest) return {};
  return Fail(Blame::kCaller, "ca_file {} has {} bytes; certificates have at most {}", path,
              status.st_size, kLargest);
}

}  // namespace

Result<WorkerPlan> Directory::Plan(const WorkerRequest& request) const {
  TRY(Url url, Url::Parse(request.url));
  if (!Address::Numeric(url.host, url.port) && !IsHostName(url.host)) {
    return Fail(
        Blame::kCaller,
        "worker '{}': its host is neither an IP address nor a name; a name has labels of 1 to "
        "63 letters, digits, - or _, separated by dots, at most 253 bytes in all",
        url.ToString().substr(0, 100));
  }
  WorkerSpec spec;
  spec.url = url.ToString();
  Url called = url;
  if (!request.host_name.empty()) called.host = request.host_name;
  spec.host_header = called.HostHeader();
  spec.base_path = url.path;
  spec.ca_file = request.ca_file;
  spec.api_key_env = request.api_key_env;
  spec.kv_events = request.kv_events;
  spec.kv_events_replay = request.kv_events_replay;
  spec.kv_events_topic = request.kv_events_topic;
  TRY_VOID(CheckEvents("kv_events", request.kv_events));
  TRY_VOID(CheckEvents("kv_events_replay", request.kv_events_replay));
  TRY_VOID(CheckFile(request.ca_file));
  auto key = KeyOf(request);
  if (!key) return std::unexpected(std::move(key).error().In("worker " + spec.url));
  spec.api_key = *std::move(key);
  std::shared_ptr<const TlsClientContext> tls;
  if (url.tls()) {
    TRY(tls, authorities_.Of(request.ca_file));
  } else if (!request.ca_file.empty()) {
    return Fail(Blame::kCaller, "worker {}: ca_file is for https:// workers", spec.url);
  }
  return WorkerPlan{std::move(spec), Endpoint{std::move(url), std::move(tls), request.host_name}};
}

// Whether a variable that is not listed exists must not show.
Result<std::string> Directory::KeyOf(const WorkerRequest& request) const {
  const std::string& name = request.api_key_env;
  if (name.empty()) return std::string();
  if (request.from == WorkerRequest::From::kOutside &&
      std::ranges::find(outside_keys_, name) == outside_keys_.end()) {
    return Fail(Blame::kCaller,
                "api_key_env names {}, which --worker-key-env does not list; only the router's own "
                "flags and configuration file may name other variables",
                name);
  }
  auto key = environment_(name);
  if (!key || key->empty()) {
    return Fail(Blame::kCaller, "api_key_env names {}, which is not set", name);
  }
  return *std::move(key);
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
