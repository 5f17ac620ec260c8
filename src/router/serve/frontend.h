// Assembles the router from settings: loops, fleet, gateway and servers.
//
// Threads  One per loop, one for control (probes and admin pages), one for KV events, one for
//          names, one for the other replicas. Built and stopped on the caller's thread.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "config/settings.h"
#include "config/sources.h"
#include "io/http/server.h"
#include "router/discovery/directory.h"
#include "router/discovery/load_watch.h"
#include "router/discovery/prober.h"
#include "router/events/intake.h"
#include "router/fleet/block_sizes.h"
#include "router/fleet/feed_board.h"
#include "router/fleet/fleet.h"
#include "router/fleet/trust_keeper.h"
#include "router/gateway/gateway.h"
#include "router/gateway/parity_check.h"
#include "router/index/cache_index.h"
#include "router/library/model_finder.h"
#include "router/replicas/replicas.h"
#include "router/serve/key_file.h"
#include "router/serve/listen_plan.h"
#include "router/sources/kube_door.h"
#include "router/sources/worker_sources.h"

namespace fathom {

class Frontend {
 public:
  // Whether these settings are safe together, without reading or opening anything.
  static Result<void> Check(const Settings& settings);

  // Finds all errors in the settings: files, addresses, workers.
  static Result<std::unique_ptr<Frontend>> Create(const Settings& settings,
                                                  const Environment& environment, Log& log);
  ~Frontend();

  void Start();
  // The address that clients connect to.
  const Address& address() const { return address_; }

  // Reads the files of certificates and keys again. What is invalid is reported and not used.
  void Reload();
  // Reads key files again that have changed. Call it often, from the thread that calls Reload().
  void ReloadChangedKeys();

  // Refuses new requests, and waits until those in flight have ended, or `patience` has passed.
  // True if all requests ended.
  bool Drain(Duration patience);

  void Stop();

  // The workers have different block sizes: an ERROR was logged, and no request is served.
  bool refused_to_start() const { return sizes_->refused_to_start(); }

  const Fleet& fleet() const { return *fleet_; }
  const GatewayContext& context() const { return *context_; }
  const FeedBoard& feeds() const { return feeds_; }

 private:
  Frontend(const Settings& settings, const Environment& environment, const ListenPlan& listen,
           Log& log);

  std::optional<std::string> Variable(const std::string& name) const;
  uint64_t SecretFor(std::string_view purpose) const;
  Result<void> LoadFleet();
  Result<void> TeachEtcd();
  Result<void> AddWorkers();
  Task<void> WatchBlockSizes();
  Task<void> WatchTrust();
  std::string PieceOf(std::string_view model, TokenId token) const;
  Result<void> OpenIntake();
  Result<ModelLibrary> LoadModels();
  Result<void> OpenGateway();
  Result<void> OpenReplicas();
  void ShowPeers(const ReplicaPeers& peers);
  Result<void> OpenServers();
  void WarnAboutOpenAdmin(const Address& pages) const;
  void ReloadCertificate(std::string_view prefix, HttpServer& server);
  void ReloadKeys(KeyFile& file, KeyRing& ring);
  void Retire(std::shared_ptr<const KeyRing::Keys> former);

  const Settings settings_;
  const Environment environment_;
  const ListenPlan listen_;
  KeyFile api_keys_;
  KeyFile admin_keys_;
  TimePoint next_look_{};  // at the key files
  Log& log_;
  std::unique_ptr<Resolver> resolver_;
  std::optional<ReplicasOptions> group_;  // nullopt: this router chooses alone
  Loop control_;
  std::vector<std::unique_ptr<Loop>> loops_;
  Registry registry_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<BlockSizes> sizes_;
  std::unique_ptr<Prober> prober_;
  std::unique_ptr<LoadWatch> load_watch_;  // null: engines are not asked for their load
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<Muster> muster_;
  std::unique_ptr<DnsWatch> dns_watch_;
  std::unique_ptr<KubeDoor> kube_door_;
  std::unique_ptr<WorkerSources> sources_;
  FeedBoard feeds_;
  std::unique_ptr<TrustKeeper> trust_;
  std::unique_ptr<CacheIndex> cache_index_;  // null: KV events are not followed
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<ModelFinder> model_finder_;
  std::unique_ptr<GatewayContext> context_;
  std::unique_ptr<ParityCheck> parity_;  // null: engines are not asked for tokens
  std::vector<PeerReplica> told_peers_;  // the replicas' loop's
  std::unique_ptr<Replicas> replicas_;   // null: it chooses alone
  std::unique_ptr<PageDesk> desk_;
  std::vector<std::unique_ptr<Gateway>> gateways_;
  std::unique_ptr<AdminHandler> admin_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpServer> admin_server_;
  Address address_;
  std::vector<std::jthread> threads_;
};

}  // namespace fathom
