// Everything that can be learned from what runs, at once.
//
//   LiveTargets targets{.router_url = "http://fathom:8000", .worker_urls = {...}, .listen = 10s};
//   const LiveView view = LookLive(targets);
//
// One loop on the calling thread; all targets are looked at side by side, and it returns after a
// few times `patience` and `listen` whatever they do. Only what is on ReadOnlyRequests() is sent;
// the view lists it.
//
// Errors  None: a target that cannot be reached says so in its look.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/doctor/dynamo_look.h"
#include "diagnose/doctor/router_look.h"
#include "diagnose/doctor/stream_look.h"
#include "diagnose/doctor/token_look.h"
#include "diagnose/doctor/worker_look.h"

namespace fathom {

struct LiveTargets {
  static constexpr size_t kMaxWorkers = 256;  // the others are left out, and that is said

  std::string router_url;  // empty: none
  std::vector<std::string> worker_urls;
  bool workers_of_router = false;  // look at the engines that the router names, too
  std::string dynamo_url;          // empty: none
  std::string admin_key;           // of the router
  std::string api_key;             // of routers, as a client of theirs
  std::string worker_key;          // of engines
  std::string ca_file;             // of https:// targets; empty: the system's
  Duration patience = std::chrono::seconds(5);
  Duration listen{};  // 0: not
  bool drain = false;
  std::shared_ptr<const LanguageModel> model;  // null: tokens are not compared
};

struct LookedAtWorker {
  WorkerLook look;
  std::vector<StreamLook> streams;        // by rank; empty if it did not listen
  std::string unheard;                    // why there are none although it was to listen
  std::optional<EngineCounts> meanwhile;  // what it counted while we listened
  double seconds = 0;                     // how long that was
  std::optional<TokenLook> tokens;
};

struct LiveView {
  std::optional<RouterLook> router;
  std::optional<RouterCounters> router_meanwhile;  // while we listened
  std::vector<LookedAtWorker> workers;
  std::optional<DynamoLook> dynamo;
  std::vector<SentRequest> sent;
  std::vector<std::string> left_out;  // one sentence each
};

LiveView LookLive(const LiveTargets& targets);

}  // namespace fathom
