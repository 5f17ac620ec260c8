// Asks each worker periodically: are you healthy, and which models do you serve?
//
// A worker is routable once it has passed its health check, has reported its models, and has been
// asked for its capabilities: its block size should be known before the first request. It is
// excluded after `failures` failed checks in a row, and returns with the first successful one. A
// worker whose address may have another process now (BlockSizes::Doubt) is asked again at once. An
// AdmissionCheck, where there is one, may hold a worker for a moment each time that it is asked.
//
// Threads  Watch() and Forget() from any thread; workers are asked on the control loop.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "io/http/client_connection.h"
#include "router/discovery/admission_check.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/fleet.h"

namespace fathom {

struct ProbeOptions {
  Duration interval = std::chrono::seconds(2);
  Duration timeout = std::chrono::seconds(2);
  uint32_t failures = 2;
  std::string path = "/health";
};

// Reads a /v1/models answer. If it is not one, the worker accepts every model.
Fleet::ModelReport ReadModels(int status, std::string_view body);

class Prober {
 public:
  // Without `sizes`, or if they are not watched, workers are not asked for their capabilities.
  Prober(Loop& control, Resolver& resolver, Fleet& fleet, const ProbeOptions& options, Log& log,
         BlockSizes* sizes = nullptr);

  // Before the control loop runs.
  void SetCheck(AdmissionCheck* check) { check_ = check; }

  void Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint);
  void Forget(WorkerId id);

 private:
  struct Patient;

  void Interview(WorkerId id);
  Task<void> WatchForever(std::shared_ptr<Patient> patient);
  Task<NetResult<void>> Check(Patient& patient);
  void TakeModels(Patient& patient, Fleet::ModelReport report);
  Task<void> AskWhatItCan(Patient& patient);
  void Hold(const std::shared_ptr<Patient>& patient);
  Task<void> ReleaseInTime(std::shared_ptr<Patient> patient);
  void Examine(const std::shared_ptr<Patient>& patient);
  void Succeeded(Patient& patient);
  void Failed(Patient& patient, const NetError& error);

  Loop& loop_;
  Resolver& resolver_;
  Fleet& fleet_;
  const ProbeOptions options_;
  Log& log_;
  BlockSizes* const sizes_;
  AdmissionCheck* check_ = nullptr;
  std::unordered_map<WorkerId, std::shared_ptr<Patient>> patients_;  // on the control loop only
};

}  // namespace fathom
