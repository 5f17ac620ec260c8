// The router, put together: loops, fleet, gateway and servers, made from settings.
//
// Threads  One per loop, one for control (probes and admin pages), one for KV events (and ZeroMQ's
//          own), two for names. Built and stopped on the caller's thread.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "config/settings.h"
#include "config/sources.h"
#include "discovery/directory.h"
#include "discovery/dns_watch.h"
#include "discovery/load_watch.h"
#include "discovery/prober.h"
#include "events/intake.h"
#include "fleet/block_sizes.h"
#include "fleet/feed_board.h"
#include "fleet/fleet.h"
#include "fleet/trust_keeper.h"
#include "gateway/gateway.h"
#include "http/server.h"
#include "index/cache_index.h"

namespace fathom {

class Frontend {
 public:
  // Everything that can be wrong with the settings is found here: files, addresses, workers.
  static Result<std::unique_ptr<Frontend>> Create(const Settings& settings,
                                                  const Environment& environment, Log& log);
  ~Frontend();

  void Start();
  // Where clients connect to.
  const Address& address() const { return address_; }

  // Reads the certificate files again. A pair that does not work is reported and not used.
  void ReloadCertificates();

  // Refuses new work, and waits until what is in flight has ended, or `patience` is over, or
  // `impatient` says so. True if everything ended.
  bool Drain(Duration patience, const std::function<bool()>& impatient);

  void Stop();

  // The workers disagree about the size of their blocks: it has been said, and nothing is served.
  bool refused_to_start() const { return sizes_->refused_to_start(); }

  const Fleet& fleet() const { return *fleet_; }
  const GatewayContext& context() const { return *context_; }
  const FeedBoard& feeds() const { return feeds_; }

 private:
  Frontend(const Settings& settings, Log& log) : settings_(settings), log_(log) {}

  Result<void> LoadFleet(const Environment& environment);
  Result<void> AddWorkers();
  Task<void> WatchBlockSizes();
  Task<void> WatchTrust();
  std::string PieceOf(std::string_view model, TokenId token) const;
  Result<void> OpenIntake();
  Result<ModelLibrary> LoadModels() const;
  Result<void> OpenGateway();
  Result<void> OpenServers();
  void WarnAboutOpenAdmin(const Address& pages) const;

  const Settings settings_;
  Log& log_;
  std::unique_ptr<Resolver> resolver_;
  Loop control_;
  std::vector<std::unique_ptr<Loop>> loops_;
  Registry registry_;
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<BlockSizes> sizes_;
  std::unique_ptr<Prober> prober_;
  std::unique_ptr<LoadWatch> load_watch_;  // null: engines are not asked for their load
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<Resolver> name_resolver_;  // apart, for a watched name may take long to look up
  std::unique_ptr<DnsWatch> dns_watch_;
  FeedBoard feeds_;
  std::unique_ptr<TrustKeeper> trust_;
  std::unique_ptr<CacheIndex> cache_index_;  // null: KV events are not followed
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<GatewayContext> context_;
  std::vector<std::unique_ptr<Gateway>> gateways_;
  std::unique_ptr<AdminHandler> admin_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpServer> admin_server_;
  Address address_;
  std::vector<std::jthread> threads_;
};

}  // namespace fathom
