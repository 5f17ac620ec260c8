// Asks each worker, again and again: are you well, and what do you serve?
//
// A worker can be routed to once it has answered its health check, said which models it has, and
// been asked what it can do: what its block size is must be known before the first request, if it
// can be. It is taken out after `failures` failed checks in a row, and comes back with the first
// good one.
//
// Threads  Watch() and Forget() from any; the questions are asked on the control loop.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "fleet/block_sizes.h"
#include "fleet/fleet.h"
#include "http/client_connection.h"

namespace fathom {

struct ProbeOptions {
  Duration interval = std::chrono::seconds(2);
  Duration timeout = std::chrono::seconds(2);
  uint32_t failures = 2;
  std::string path = "/health";
};

// What a /v1/models answer says. An answer that is none means: anything goes.
Fleet::ModelReport ReadModels(int status, std::string_view body);

class Prober {
 public:
  // Without `sizes`, or where they are not watched, nobody is asked what it can do.
  Prober(Loop& control, Resolver& resolver, Fleet& fleet, const ProbeOptions& options, Log& log,
         BlockSizes* sizes = nullptr)
      : loop_(control),
        resolver_(resolver),
        fleet_(fleet),
        options_(options),
        log_(log),
        sizes_(sizes) {}

  void Watch(std::shared_ptr<Worker> worker, std::shared_ptr<const Endpoint> endpoint);
  void Forget(WorkerId id);

 private:
  struct Patient;

  Task<void> WatchForever(std::shared_ptr<Patient> patient);
  Task<Result<void>> Check(Patient& patient);
  Task<void> AskWhatItCan(Patient& patient);
  void Succeeded(Patient& patient);
  void Failed(Patient& patient, const std::string& cause);

  Loop& loop_;
  Resolver& resolver_;
  Fleet& fleet_;
  const ProbeOptions options_;
  Log& log_;
  BlockSizes* const sizes_;
  std::unordered_map<WorkerId, std::shared_ptr<Patient>> patients_;  // on the control loop only
};

}  // namespace fathom
